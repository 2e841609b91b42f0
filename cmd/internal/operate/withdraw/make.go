package withdraw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/algos/model"
	"hamlet/algos/sites"
	"hamlet/state"
	"hamlet/stream"
)

// A Request says what to withdraw, and what to compare.
type Request struct {
	Model         string
	Source        string
	Since         Bound
	Until         Bound   // zero: the end of the log
	Recent        int     // compare the answers to so many last events of other sources
	SpamAt, HamAt float64 // thresholds of the verdicts that are compared
}

// Servers are those of the model.
type Servers struct {
	Kafka stream.Logs
	Store state.Store
}

// patience bounds the questions to Redis, and the first one to Kafka.
const patience = 20 * time.Second

// Progress says how far the log has been read.
type Progress struct {
	Doing  string // reading, writing, checking
	Offset int64  // of the last record
	End    int64  // of what is read
}

// reporting returns what calls progress for each record.
func reporting(progress func(Progress), doing string, end int64) func(offset int64) {
	return func(offset int64) { progress(Progress{Doing: doing, Offset: offset, End: end}) }
}

// Make reads the saved model and the log, and plans the withdrawal that r asks for. It
// writes nothing. It may read the whole log, and ends when ctx does. It calls progress for
// each record.
func Make(ctx context.Context, servers Servers, r *Request, progress func(Progress)) (*Plan, error) {
	l, err := servers.open(ctx, r.Model)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	plan := &Plan{Model: r.Model, Source: r.Source, To: l.end, Traces: traces}
	if plan.From, err = r.Since.offset(ctx, l); err != nil {
		return nil, err
	}
	if r.Until.given() {
		if plan.To, err = r.Until.offset(ctx, l); err != nil {
			return nil, err
		}
		if r.Until.event != 0 {
			plan.To++ // an event is withdrawn too
		}
	}
	pl := planner{savedModel: l, Plan: plan, wanted: r, progress: reporting(progress, "reading", l.end)}
	return plan, pl.run(ctx)
}

// Recheck returns an error unless all labels of the plan can still be withdrawn: the log
// has each where the plan found it, and no later events have pushed it out of the model's
// window. A label that was withdrawn in the meantime is no error. It writes nothing.
func (p *Plan) Recheck(ctx context.Context, servers Servers, progress func(Progress)) error {
	if len(p.offsets) == 0 {
		return nil
	}
	l, err := servers.open(ctx, p.Model)
	if err != nil {
		return err
	}
	defer l.Close()
	report := reporting(progress, "checking", l.end)
	m, err := l.toEnd(ctx, report)
	if err != nil {
		return err
	}
	gone := 0
	err = p.labels(ctx, l.eventLog, func(r *record, _ *stream.Event) error {
		report(r.Offset)
		if err := r.withdrawable(m); err != nil && !errors.Is(err, sites.ErrWithdrawn) {
			gone++
		}
		return nil
	})
	if err == nil && gone > 0 {
		err = fmt.Errorf("%d of %d labels have left the window of withdrawals since: plan again", gone, p.Withdrawable)
	}
	return err
}

// withdrawable returns nil if m can withdraw the label r, else what sites says of it.
func (r *record) withdrawable(m *model.Model) error {
	ex := r.Example
	ex.Action, ex.Of, ex.OwnOnly = model.Unlearn, ex.ID, true
	return m.Withdrawable(&ex)
}
