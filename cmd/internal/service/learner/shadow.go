package learner

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/process/clock"
	"hamlet/state"
)

// A Shadow makes a learner learn beside that of another model, of the same log, so that the two
// can be compared. What others hear of a log they hear once:
//
//	                                the first learner   a shadow
//	────────────────────────────────┼──────────────────┼──────────────────────────────────
//	the order log                   │ appends           follows
//	dead letters, receipts          │ writes            none
//	labels of answers               │ tells             none
//	alerts, alarms in metrics, logs │ shows             from the time at which it is promoted
//
// The alerts of a promoted shadow and those of the first learner are both published. Each names
// its model. So an incident that began before the promotion ends as well, and nobody must be
// silent before somebody else may speak.
//
// Its configuration says whether a model has alarms, and they are part of its bytes. So a shadow
// computes them, whether or not anybody hears them.
type Shadow struct {
	Of string // the model whose log it learns

	// Promotion says which model answers in the place of Of; the error wraps state.ErrNone if
	// nobody has promoted one. nil: the shadow is never heard.
	Promotion func(context.Context) (state.Promotion, error)
	Poll      time.Duration // how often it asks; default 1 s
}

func (s *Shadow) poll() time.Duration { return cmp.Or(s.Poll, time.Second) }

// askPromotion bounds one question.
const askPromotion = 5 * time.Second

// A muting says whether a learner raises its alarms without a word: a shadow does until it is
// promoted.
type muting struct {
	silent atomic.Bool // of a shadow that is not promoted
	failed bool        // the last question failed, which was logged; of the goroutine alone that asks
}

// shadow reports whether this learner is a shadow, promoted or not.
func (l *Learner) shadow() bool { return l.cfg.Shadow != nil }

// silent reports whether nobody hears this learner's alarms.
func (l *Learner) silent() bool { return l.muting.silent.Load() }

// hear asks once which model is promoted. While that is not known, nothing changes. It reports
// whether asking again soon is of no use.
func (l *Learner) hear(ctx context.Context) (answered bool) {
	if l.cfg.Shadow.Promotion == nil {
		return true
	}
	ask, cancel := context.WithTimeout(ctx, askPromotion)
	defer cancel()
	p, err := l.cfg.Shadow.Promotion(ask)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil && !errors.Is(err, state.ErrNone):
		if !l.muting.failed {
			l.muting.failed = true
			l.cfg.Log.Warn("it cannot be read which model is promoted: alarms are heard as before", "error", err)
		}
		return !errors.Is(err, state.ErrTransient) && !errors.Is(err, context.DeadlineExceeded)
	}
	l.muting.failed = false
	promoted := err == nil && p.Model == l.cfg.Name
	if l.muting.silent.Swap(!promoted) == promoted {
		if promoted {
			l.cfg.Log.Info("promoted: answers come from this model, and its alarms are heard",
				"in_place_of", l.cfg.Shadow.Of, "by", p.By)
		} else {
			l.cfg.Log.Info("no longer promoted: nobody hears this model's alarms", "shadow_of", l.cfg.Shadow.Of)
		}
	}
	l.cfg.Metrics.shadow(l.cfg.Name, l.cfg.Shadow.Of, !promoted)
	return true
}

// beginMuted asks until the store answers, or ctx ends. A promoted shadow that began in silence
// would lose the alerts of what it learns again after it was killed.
func (l *Learner) beginMuted(ctx context.Context) {
	for !l.hear(ctx) && clock.Sleep(ctx, l.cfg.Shadow.poll()) {
	}
}

// shadowSummary says of which model a learner is the shadow; "" if it is none.
func (l *Learner) shadowSummary() string {
	switch {
	case !l.shadow():
		return ""
	case l.silent():
		return "shadow of " + l.cfg.Shadow.Of
	}
	return "shadow of " + l.cfg.Shadow.Of + ", promoted: answers come from this model"
}
