package scorer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"

	"hamlet/algos/model"
	"hamlet/state"
)

// A follower keeps the model that a scorer answers from: its own, or the one that an operator
// has promoted. What is promoted is asked at each poll.
//
//	answering own ──cand is promoted, and whole in memory──> answering cand
//	     ^                                                        │
//	     └──own is promoted, or nothing is, and whole in memory───┘
//
// Until the other model is whole in memory, the one before answers. Only then is one pointer
// swapped, so no request meets a gap. A model of newer numerics than this program's is not
// taken: it decodes perhaps, and the answers would be others than its learner's.
//
// Only one promotion is followed: what is promoted for the promoted model says nothing here.
type follower struct {
	store   Store  // of the own model
	name    string // its name
	metrics *metrics
	log     *slog.Logger

	handed atomic.Pointer[handed] // by the learner of this process; nil: nothing since the last poll

	// Written by the polling goroutine, read by all.
	answering atomic.Pointer[loader]
	promotion atomic.Pointer[state.Promotion] // nil: the own model answers
	behind    atomic.Bool                     // another model is to answer, or it is not known which

	// Of the polling goroutine alone.
	wanted state.Promotion // as the store said last
	next   *loader         // of the wanted model, which is not whole yet; nil: it answers, or has no store
	unfit  string          // what was logged last of why it does not answer
	unread string          // what was logged last of why it is not known, or has no store
}

func newFollower(store Store, name string, m *metrics, log *slog.Logger) *follower {
	c := &follower{store: store, name: name, metrics: m, log: log, wanted: state.Promotion{Model: name}}
	c.answering.Store(newLoader(store, name, m, log))
	return c
}

// current returns the model that answers, nil before the first.
func (c *follower) current() *snapshot { return c.answering.Load().current.Load() }

// stale reports whether what is served is not what the store says, or that cannot be asked.
func (c *follower) stale() bool { return c.behind.Load() || c.answering.Load().stale.Load() }

// poll asks what is promoted, and brings the served model up to date once.
func (c *follower) poll(ctx context.Context) {
	given := c.handed.Swap(nil) // before the store is asked, which names it by now
	if given != nil && given.taken != nil {
		defer func() {
			select {
			case given.taken <- nil: // it was not taken
			default:
			}
		}()
	}
	err := c.ask(ctx)
	answering := c.answering.Load()
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, state.ErrTransient) && c.current() == nil: // nobody knows yet which model is to answer
		answering.unreachable(ctx, err)
		return
	case err != nil && !errors.Is(err, state.ErrTransient): // the loader logs what is transient
		c.complain("it cannot be read which model is promoted", err)
	case err == nil:
		c.follow()
	}
	if c.next != nil {
		if c.next.poll(ctx); c.swap() {
			answering = nil
		}
	}
	if answering != nil {
		if answering.name == c.name {
			answering.handed = given
		}
		answering.poll(ctx)
		answering.handed = nil
	}
	c.behind.Store(err != nil || c.wanted.Model != c.answering.Load().name)
}

// ask notes what is promoted: the own model if nothing is.
func (c *follower) ask(ctx context.Context) error {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	p, err := c.store.Promotion(ask)
	switch {
	case errors.Is(err, state.ErrNone):
		if c.wanted.Model != c.name {
			c.log.Warn("the state has lost which model is promoted: the own model answers again; "+
				"hamlet model promote says it anew",
				"model", c.name, "promoted", c.wanted.Model)
		}
		c.wanted = state.Promotion{Model: c.name}
		return nil
	case err == nil:
		c.wanted = p
	}
	return err
}

// follow makes next the model that is wanted, if another one answers.
func (c *follower) follow() {
	switch {
	case c.wanted.Model == c.answering.Load().name:
		c.next, c.unfit, c.unread = nil, "", ""
		c.note()
	case c.next != nil && c.next.name == c.wanted.Model:
	case c.wanted.Model == c.name:
		c.next, c.unfit, c.unread = newLoader(c.store, c.name, c.metrics, c.log), "", ""
	default:
		c.next = nil
		store, err := c.store.Beside(c.wanted.Model)
		if err != nil {
			c.complain("the promoted model has no store", err)
			return
		}
		c.next, c.unfit, c.unread = newLoader(store, c.wanted.Model, c.metrics, c.log), "", ""
	}
}

// note notes since when and by whom the model that answers is promoted.
func (c *follower) note() {
	if c.wanted.Model == c.name {
		c.promotion.Store(nil)
	} else if before := c.promotion.Load(); before == nil || *before != c.wanted {
		p := c.wanted
		c.promotion.Store(&p)
	}
}

// swap lets next answer if it is whole in memory, and reports whether it does.
func (c *follower) swap() bool {
	answering := c.answering.Load().name
	if why := c.next.unfit(); why != "" {
		if c.unfit != why {
			c.unfit = why
			c.log.Warn("the promoted model does not answer yet",
				"model", c.name, "promoted", c.next.name, "answering", answering, "reason", why)
		}
		return false
	}
	c.answering.Store(c.next)
	c.note()
	c.log.Info("answers come from another model",
		"model", c.name, "before", answering, "now", c.next.name, "by", c.wanted.By)
	c.next, c.unfit, c.unread = nil, "", ""
	return true
}

// complain logs an error once.
func (c *follower) complain(what string, err error) {
	if c.unread != what {
		c.unread = what
		c.log.Warn(what+": the model before answers", "model", c.name, "answering", c.answering.Load().name, "error", err)
	}
}

// unfit says why the loader's model may not take the place of another yet; "" if it may.
func (l *loader) unfit() string {
	current := l.current.Load()
	switch {
	case current == nil:
		return "no version of it could be loaded"
	case l.stale.Load():
		return "not all of it could be loaded"
	}
	if numerics := current.info.Numerics; newer(numerics) {
		return fmt.Sprintf("it is of numerics %s, and this program knows those up to %s: upgrade the scorers first",
			numerics, model.CurrentNumerics())
	}
	return ""
}

// newer reports whether numerics are newer than this program's. Old names have the architecture
// behind the number.
func newer(numerics string) bool {
	here, _ := strconv.Atoi(model.CurrentNumerics())
	there, err := strconv.Atoi(numerics)
	return err == nil && there > here
}
