package withdraw

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/algos/sites"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// A Plan says what a withdrawal would do. [Plan.Write] does it. It holds no mail, and of
// each label its offset and the id of its withdrawal. It is for one goroutine at a time.
type Plan struct {
	Model  string `json:"model"`
	Source string `json:"source"`
	From   int64  `json:"from_offset"` // the labels are at this offset or later
	To     int64  `json:"to_offset"`   // and before this one
	Labels int    `json:"labels"`      // of the source

	Withdrawable int `json:"withdrawable"`
	Withdrawn    int `json:"withdrawn"` // already
	Beyond       int `json:"beyond"`    // the window, or never learnt
	TooLarge     int `json:"too_large"` // as a withdrawal, for the log

	Oldest time.Time `json:"oldest,omitzero"` // when the first label that can be withdrawn was written

	Until   int64    `json:"until_offset,omitempty"` // the log's end once all was written
	Answers Answers  `json:"answers"`
	Traces  []string `json:"traces"` // parts of a model where an event that is withdrawn leaves a trace

	offsets []int64  // of the labels that can be withdrawn, ascending: at most what the windows hold
	ids     []string // of the withdrawals of these labels
}

// traces are what model.Receipt says of a withdrawal.
var traces = append(stream.ReceiptTraces, "flip rates and standing of sources",
	"alarms", "ensembles until they are rebuilt")

// Answers compares what the model answers to recent mail of other sources, before and after.
type Answers struct {
	Events        int     `json:"events"`
	MeanChange    float64 `json:"mean_change"`    // of p, absolute
	LargestChange float64 `json:"largest_change"` // the same
	Verdicts      int     `json:"verdicts"`       // that change
	LogLossBefore float64 `json:"log_loss_before"`
	LogLossAfter  float64 `json:"log_loss_after"`
}

// A planner makes a plan.
type planner struct {
	*savedModel
	*Plan
	wanted   *Request
	progress func(offset int64)

	recent   []int64            // of the mail whose answers are compared, ascending
	answered []model.Prediction // to that mail, before
}

// run reads the log and plans the withdrawal. It holds two models, and no mail: what it needs
// again it reads again.
func (pl *planner) run(ctx context.Context) error {
	before, err := pl.toEnd(ctx, pl.progress)
	if err != nil {
		return err
	}
	if before.LeavesOut(pl.Source) {
		return fmt.Errorf("the model is without source %s: it has learnt nothing from it", pl.Source)
	}
	if err := pl.find(ctx, before); err != nil {
		return err
	}
	after, err := clone(before)
	if err != nil {
		return err
	}
	if err := pl.try(ctx, before, after); err != nil {
		return err
	}
	return pl.compare(ctx, after)
}

func clone(m *model.Model) (*model.Model, error) {
	b, err := m.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	return model.Restore(b)
}

// find counts the source's labels, and notes which of them m can still withdraw and which
// events are recent.
func (pl *planner) find(ctx context.Context, m *model.Model) error {
	most := pl.wanted.Recent
	recentFrom := pl.end - int64(max(4*most, mostBehind/10))
	return pl.read(ctx, min(pl.From, recentFrom), pl.end, func(r *record) error {
		pl.progress(r.Offset)
		learns := r.isEvent() && r.Event.Action != stream.Unlearn
		switch {
		case !learns:
		case r.Event.Source != pl.Source:
			if most > 0 && r.Event.Action != stream.Assume && r.Offset >= recentFrom {
				if pl.recent = append(pl.recent, r.Offset); len(pl.recent) >= 2*most {
					pl.recent = slices.Delete(pl.recent, 0, len(pl.recent)-most)
				}
			}
		case r.Offset >= pl.From && r.Offset < pl.To:
			pl.Labels++
			switch err := r.withdrawable(m); {
			case err == nil:
				pl.offsets = append(pl.offsets, r.Offset)
			case errors.Is(err, sites.ErrWithdrawn):
				pl.Withdrawn++
			default:
				pl.Beyond++
			}
		}
		return nil
	})
}

// try withdraws from after what can be withdrawn, and answers the recent events by before.
func (pl *planner) try(ctx context.Context, before, after *model.Model) error {
	pl.recent = pl.recent[max(0, len(pl.recent)-pl.wanted.Recent):]
	candidates := pl.offsets
	pl.offsets = nil
	predictor := before.NewPredictor()
	return pl.readThese(ctx, merged(candidates, pl.recent), func(r *record) error {
		pl.progress(r.Offset)
		if _, found := slices.BinarySearch(pl.recent, r.Offset); found {
			prediction, err := predictor.Predict(&r.Example.Body)
			pl.answered = append(pl.answered, prediction) // zero if it is refused, as it will be again
			return ignoreRefused(err)
		}
		e := withdrawal(pl.topic, r)
		if _, _, err := e.EncodeRecord(); err != nil {
			pl.TooLarge++
			return nil
		}
		ex, _, err := example.Of(&e)
		if err != nil {
			return err
		}
		effect, err := after.Apply(&ex)
		switch {
		case err != nil && ignoreRefused(err) != nil:
			return err
		case err != nil:
			pl.Beyond++ // it is a copy
		case effect.Duplicate:
			pl.Withdrawn++
		default:
			if pl.Withdrawable++; pl.Withdrawable == 1 {
				pl.Oldest = r.Time.UTC()
			}
			pl.offsets, pl.ids = append(pl.offsets, r.Offset), append(pl.ids, e.ID)
		}
		return nil
	})
}

// compare answers the recent events by after.
func (pl *planner) compare(ctx context.Context, after *model.Model) error {
	a := &pl.Answers
	predictor := after.NewPredictor()
	i := 0
	err := pl.readThese(ctx, pl.recent, func(r *record) error {
		now, err := predictor.Predict(&r.Example.Body)
		was := pl.answered[i]
		i++
		if err != nil {
			return ignoreRefused(err)
		}
		change := math.Abs(now.P() - was.P())
		a.Events++
		a.MeanChange += change
		a.LargestChange = max(a.LargestChange, change)
		if pl.decide(now) != pl.decide(was) {
			a.Verdicts++
		}
		spam := r.Event.Label == stream.Spam
		a.LogLossBefore += eval.LogLoss(spam, was.LogOdds)
		a.LogLossAfter += eval.LogLoss(spam, now.LogOdds)
		return nil
	})
	if n := float64(a.Events); n > 0 {
		a.MeanChange, a.LogLossBefore, a.LogLossAfter = a.MeanChange/n, a.LogLossBefore/n, a.LogLossAfter/n
	}
	return err
}

func (pl *planner) decide(p model.Prediction) stream.Decision {
	lo, _ := p.Interval(model.Z90)
	return stream.Decide(p.P(), lo, pl.wanted.SpamAt, pl.wanted.HamAt)
}

// ignoreRefused returns nil for an event that the model has refused, set aside or could not read.
func ignoreRefused(err error) error {
	if model.IsRefused(err) {
		return nil
	}
	return err
}

// merged returns the numbers of two ascending lists, which share none, in order.
func merged(a, b []int64) []int64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return all
}
