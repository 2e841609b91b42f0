package incidents

import (
	"context"
	"fmt"
	"slices"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/model"
	"hamlet/cmd/internal/operate/now"
	"hamlet/cmd/internal/service/alert"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/nats"
)

const (
	askAgain = time.Second
	askTime  = 5 * time.Second
)

// A Log is the incidents that NATS keeps of a model, for all who look. It reads the alerts only
// when there are others than before. It asks a scorer which incidents NATS does not know.
type Log struct{ shared page.Shared[known] }

// known are incidents in the order in which they were opened.
type known struct {
	all     []*Incident
	damaged int // alerts beside all that cannot be read
	read    bool
	end     uint64 // of the stream that was read
	doubts  answered.Doubts
}

// NewLog returns the log of a model's incidents, by a clock.
func NewLog(conn *natsgo.Conn, model string, clock func() time.Time) *Log {
	read := func(ctx context.Context, before known) (known, error) {
		end, kept, err := nats.AlertsEnd(ctx, conn)
		if err != nil {
			return before, err
		}
		log := before
		if !before.read || end != before.end {
			all, damaged, err := Read(ctx, conn, model)
			if err != nil {
				return before, err
			}
			log = known{all: all, damaged: damaged, read: true, end: end}
		}
		log.doubts = Known(log.all, !kept || log.damaged > 0, Asked(ctx, conn, model), model)
		return log, nil
	}
	return &Log{page.Shared[known]{Read: read, Now: clock, Again: askAgain, Time: askTime}}
}

// Open returns the open incidents, the newest first.
func (l *Log) Open(ctx context.Context) (open now.Alarms, err error) {
	log, err := l.shared.Get(ctx)
	open.Damaged, open.Doubts = log.damaged, log.doubts
	for _, i := range slices.Backward(log.all) {
		if !i.Open() {
			continue
		}
		last := i.Last()
		one := now.Alarm{ID: i.ID(), Kind: last.Kind, Since: i.First().Time, Sentence: alert.Sentence(last)}
		if one.Kind == stream.AlertUnknown {
			one.Kind = ""
		}
		open.Open = append(open.Open, one)
	}
	return open, err
}

// acknowledgements are who acknowledged which incident, by its id.
type acknowledgements map[string]stream.AuditEntry

// newAcknowledged shares what an audit says of incidents.
func newAcknowledged(audit Audit, clock func() time.Time) *page.Shared[acknowledgements] {
	read := func(ctx context.Context, before acknowledgements) (acknowledgements, error) {
		fresh, err := audit.Acknowledged(ctx)
		if err != nil {
			return before, err
		}
		return fresh, nil
	}
	return &page.Shared[acknowledgements]{Read: read, Now: clock, Again: askAgain, Time: askTime}
}

// incidents returns the incidents in the order in which they were opened, who acknowledged them,
// and what is wrong with both, in sentences.
func (p *pages) incidents(ctx context.Context) (all []*Incident, by acknowledgements, problems []string) {
	log, err := p.Log.shared.Get(ctx)
	if log.damaged > 0 {
		problems = append(problems, fmt.Sprintf("%d alerts cannot be read, and are not shown.", log.damaged))
	}
	if err != nil {
		problems = append(problems, page.Doing("The alerts cannot be read", err))
	}
	if by, err = p.acknowledged.Get(ctx); err != nil {
		problems = append(problems, page.Doing("Who acknowledged what cannot be read", err))
	}
	return log.all, by, problems
}

// facts are what the saved model says about its alarms.
type facts struct {
	Events uint64
	Saved  time.Time
	Alarms []model.Alarm
	Pasts  []model.NoisePast
}

func factsOf(m *model.Model, c *state.Checkpoint) *facts {
	return &facts{Events: m.Events(), Saved: c.Saved, Alarms: m.Alarms(), Pasts: m.NoisePasts()}
}
