package gateway

import (
	"context"
	"sync"
	"time"
)

// An outage remembers whether the scoring service answers, so that a mail server whose
// scorers are gone need not wait the whole deadline for each message.
//
//	answering ── a question failed ──> failing ── a question was answered ──> answering
//
// While it is failing, one question at a time, the probe, has the whole deadline: a
// service that answers late is found again. All others wait a tenth of it. An answer to
// any of them ends the outage.
type outage struct {
	mu      sync.Mutex
	failing bool // the last question that ended had no answer
	probing bool // a question has the whole deadline; only while failing
}

// impatience is the share of the deadline that a question has which is no probe.
const impatience = 10

// try calls ask with the deadline that is due. A refusal of the one message counts as an
// answer. A caller's ctx that ends says nothing.
func (o *outage) try(ctx context.Context, deadline time.Duration, ask func(context.Context) error) error {
	probe, wait := o.begin(deadline)
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := ask(limited)
	o.end(probe, err == nil || refused(err), ctx.Err() != nil)
	return err
}

func (o *outage) begin(deadline time.Duration) (probe bool, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !o.failing:
		return false, deadline
	case !o.probing:
		o.probing = true
		return true, deadline
	}
	return false, deadline / impatience
}

func (o *outage) end(probe, answered, unknown bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if probe {
		o.probing = false
	}
	if !unknown {
		o.failing = !answered
	}
}
