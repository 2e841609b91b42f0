package incidents

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/alarms"
	"hamlet/stream"
	"hamlet/stream/nats"
)

const (
	askAgain = 2 * time.Second
	askTime  = 5 * time.Second
)

// An incidentLog is the incidents that NATS keeps, and who acknowledged them. All readers
// share it. It asks NATS when somebody reads, at most every askAgain, and reads the alerts
// only when there are others than before.
type incidentLog struct {
	conn  *natsgo.Conn
	audit Audit
	model string
	now   func() time.Time

	mu           sync.Mutex // held while NATS is asked: the others wait for the same answer
	next         time.Time  // when to ask again
	read         bool       // all is of the stream that ended at end
	end          uint64
	all          []*alarms.Incident
	damaged      int // alerts beside all that cannot be read
	acknowledged map[string]stream.AuditEntry
	problems     []string // of the last time
}

// get returns the incidents in the order in which they were opened, who acknowledged them by
// id, and what is wrong with both, in sentences. Nobody may change them.
func (l *incidentLog) get(ctx context.Context) ([]*alarms.Incident, map[string]stream.AuditEntry, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now().Before(l.next) {
		return l.all, l.acknowledged, slices.Clip(l.problems)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime) // the answer is for others too
	defer cancel()
	l.problems = nil
	if l.conn == nil {
		l.problems = append(l.problems, "This console has no NATS, which keeps the alerts. Start it with --nats.")
	} else {
		l.ask(ctx)
	}
	l.next = l.now().Add(askAgain)
	return l.all, l.acknowledged, slices.Clip(l.problems)
}

func (l *incidentLog) ask(ctx context.Context) {
	end, err := nats.AlertsEnd(ctx, l.conn)
	if err == nil && (!l.read || end != l.end) {
		var all []*alarms.Incident
		var damaged int
		if all, damaged, err = alarms.Read(ctx, l.conn, l.model); err == nil {
			l.all, l.damaged, l.end, l.read = all, damaged, end, true
		}
	}
	if l.damaged > 0 {
		l.problems = append(l.problems, fmt.Sprintf("%d alerts cannot be read, and are not shown.", l.damaged))
	}
	if err != nil {
		l.problems = append(l.problems, sentence("The alerts cannot be read", err))
	}
	if l.audit == nil {
		return
	}
	acknowledged, err := l.audit.Acknowledged(ctx)
	if err != nil {
		l.problems = append(l.problems, sentence("Who acknowledged what cannot be read", err))
		return
	}
	l.acknowledged = acknowledged
}

// forget has the next reader ask.
func (l *incidentLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = time.Time{}
}
