package now

import (
	"context"
	"errors"
	"fmt"

	"hamlet/cmd/internal/service/advice"
	"hamlet/state"
	"hamlet/stream"
)

// versions asks the store which checkpoint is the newest. It reads manifests only where a pointer
// has moved.
type versions struct {
	store state.Store

	head, served state.Heading // under which the last answer was read
	seen         state.Lease
	equal        int // how often the lease was read so
}

func (v *versions) ask(ctx context.Context, before Learnt) (Learnt, error) {
	now, err := v.read(ctx, before)
	if err == nil && now.Version > 0 {
		now.Idle, err = v.idle(ctx)
	}
	if err != nil {
		err = fmt.Errorf("the store does not say what it keeps of the model: %w", err)
	}
	return now, err
}

// idleLooks is how many looks find the lease unchanged before nobody is said to learn. It takes a
// learner a second to take over from another.
const idleLooks = 3

// idle reports whether no learner is active.
func (v *versions) idle(ctx context.Context) (bool, error) {
	l, err := v.store.Holder(ctx)
	if err != nil {
		return false, err
	}
	if v.equal++; !l.Same(v.seen) {
		v.seen, v.equal = l, 1
	}
	return v.equal >= idleLooks && l.Beats != state.Unbeaten, nil
}

func (v *versions) read(ctx context.Context, before Learnt) (now Learnt, err error) {
	if err := v.store.Layout(ctx); err != nil {
		return now, advice.Add(err)
	}
	head, err := v.store.Heading(ctx, state.Head)
	if errors.Is(err, state.ErrNone) {
		return now, nil
	} else if err != nil {
		return now, err
	}
	served, err := v.store.Heading(ctx, state.Served)
	if err != nil {
		return now, err
	}
	if v.head == head && v.served == served {
		return before, nil
	}
	kept, err := v.store.Versions(ctx)
	if err != nil {
		return now, err
	}
	now = Learnt{Served: served.Version, Pinned: served.Pinned != 0}
	for _, k := range kept {
		if k.Version == head.Version {
			now.Version, now.Events, now.Saved, now.Next = k.Version, k.Events, k.Saved, k.Position.Next
		}
	}
	if now.Version == 0 { // a learner replaced it meanwhile
		return Learnt{}, nil
	}
	v.head, v.served = head, served
	return now, nil
}

// setLag writes how far the model is behind the log into a. Without a model that is all of the log.
func (a *Learnt) setLag(log stream.Bounds, away string) {
	switch {
	case away != "":
		a.LagAway = away
	case a.Away != "":
		a.LagAway = "The lag is not known while the store cannot be read."
	default:
		a.Lag, a.LagKnown = max(0, log.End-max(a.Next, log.First)), true
	}
}
