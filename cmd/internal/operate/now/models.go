package now

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/stream"
)

// versions asks the store which checkpoint is the newest. It reads manifests only where a pointer
// has moved.
type versions struct {
	store state.Store

	head, served state.Heading // under which now was read; only ask uses them
	seen         state.Lease
	equal        int // how often the lease was read so; only ask uses seen and equal

	mu  sync.Mutex
	now Learnt
}

func (v *versions) get() Learnt {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// rest says that there is no answer yet. What was learnt stays, as last read.
func (v *versions) rest() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.now.Away = redisSilent; v.store == nil {
		v.now.Away = noRedis
	}
}

func (v *versions) ask(ctx context.Context) {
	if v.store == nil {
		return
	}
	now, err := v.read(ctx)
	if err == nil && now.Version > 0 {
		now.Idle, err = v.idle(ctx)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.now.Away = page.Sentence(fmt.Errorf("the store does not say what it keeps of the model: %w", err))
		return
	}
	v.now = now
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

func (v *versions) read(ctx context.Context) (now Learnt, err error) {
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
		now = v.get()
		now.Away = ""
		return now, nil
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

// lag asks where the log begins and ends.
type lag struct {
	bounds func(context.Context) (stream.Bounds, error)

	mu   sync.Mutex
	now  stream.Bounds
	away string
}

// rest says that there is no answer yet.
func (l *lag) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away = kafkaSilent; l.bounds == nil {
		l.away = noKafka
	}
}

func (l *lag) ask(ctx context.Context) {
	if l.bounds == nil {
		return
	}
	now, err := l.bounds(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away = ""; err != nil {
		l.away = page.Sentence(fmt.Errorf("the length of the log is not known: %w", err))
		return
	}
	l.now = now
}

// show writes the lag into a. Without a model it is all of the log.
func (l *lag) show(a *Learnt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.away != "":
		a.LagAway = l.away
	case a.Away != "":
		a.LagAway = "The lag is not known while the store cannot be read."
	default:
		a.Lag, a.LagKnown = max(0, l.now.End-max(a.Next, l.now.First)), true
	}
}
