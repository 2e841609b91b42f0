package withdraw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"hamlet/algos/model"
	"hamlet/algos/sites"
	"hamlet/cmd/internal/example"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A PartitionPlan says what a withdrawal from one partition would do: an element of what
// --json prints.
type PartitionPlan struct {
	Partition int   `json:"partition"`
	From      int64 `json:"from_offset"` // the labels are at this offset or later
	To        int64 `json:"to_offset"`   // and before this one
	Labels    int   `json:"labels"`      // of the source

	Withdrawable int `json:"withdrawable"`
	Withdrawn    int `json:"withdrawn"` // already
	Beyond       int `json:"beyond"`    // the window, or never learnt
	TooLarge     int `json:"too_large"` // as a withdrawal, for the log

	Oldest time.Time `json:"oldest,omitzero"` // when the first label that can be withdrawn was written

	Until   int64   `json:"until_offset,omitempty"` // the log's end once all was written
	Answers Answers `json:"answers"`

	part    *part
	offsets []int64  // of the labels that can be withdrawn, ascending: at most what the windows hold
	ids     []string // of the withdrawals of these labels
	recent  []int64  // of the mail whose answers are compared, ascending

	answered []model.Prediction // to that mail, before
}

// Answers compares what the model answers to recent mail of other sources, before and after.
type Answers struct {
	Events        int     `json:"events"`
	MeanChange    float64 `json:"mean_change"`    // of p, absolute
	LargestChange float64 `json:"largest_change"` // the same
	Verdicts      int     `json:"verdicts"`       // that change
	LogLossBefore float64 `json:"log_loss_before"`
	LogLossAfter  float64 `json:"log_loss_after"`
}

// A planner makes plans.
type planner struct {
	source        string
	recent        int // how many events of other sources to compare, at most
	spamAt, hamAt float64
	progress      func(p *part, offset int64)
}

// ofPart reads the log of a partition and plans the withdrawal. It holds two models, and no
// mail: what it needs again it reads again.
func (pl *planner) ofPart(ctx context.Context, p *part) (*PartitionPlan, error) {
	plan := newPlan(p)
	before, err := pl.restore(p)
	if err != nil {
		return nil, err
	}
	if err := pl.find(ctx, plan, before); err != nil {
		return nil, err
	}
	after, err := clone(before)
	if err != nil {
		return nil, err
	}
	if err := pl.try(ctx, plan, before, after); err != nil {
		return nil, err
	}
	return plan, pl.compare(ctx, plan, after)
}

func newPlan(p *part) *PartitionPlan {
	return &PartitionPlan{Partition: p.number, From: p.from, To: p.to, part: p}
}

// restore returns the saved model.
func (pl *planner) restore(p *part) (*model.Model, error) {
	m, err := model.Restore(p.head.Model)
	if err != nil {
		return nil, fmt.Errorf("partition %d: the saved model: %w", p.number, err)
	}
	if m.LeavesOut(pl.source) {
		return nil, fmt.Errorf("partition %d: the model is without source %s: it has learnt nothing from it", p.number, pl.source)
	}
	return m, nil
}

func clone(m *model.Model) (*model.Model, error) {
	b, err := m.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	return model.Restore(b)
}

// find counts the source's labels, and notes which of them m can still withdraw and which
// events are recent. Then m has learnt the log to its end.
func (pl *planner) find(ctx context.Context, plan *PartitionPlan, m *model.Model) error {
	p := plan.part
	next := p.position.Next
	recentFrom := p.end - int64(max(4*pl.recent, mostBehind/10))
	return p.read(ctx, min(p.from, recentFrom, next-1), p.end, func(r *record) error {
		pl.progress(p, r.Offset)
		if r.Offset == next-1 {
			if err := p.follows(r); err != nil {
				return err
			}
		}
		if r.Offset >= next {
			if err := r.applyTo(m); err != nil {
				return err
			}
		}
		if r.err != nil {
			return nil
		}
		learns := r.event.Action != stream.Unlearn
		switch {
		case r.event.Source != pl.source && learns && r.event.Action != stream.Assume && r.Offset >= recentFrom && pl.recent > 0:
			if plan.recent = append(plan.recent, r.Offset); len(plan.recent) >= 2*pl.recent {
				plan.recent = slices.Delete(plan.recent, 0, len(plan.recent)-pl.recent)
			}
		case r.event.Source == pl.source && learns && r.Offset >= p.from && r.Offset < p.to:
			plan.Labels++
			switch err := r.withdrawable(m); {
			case err == nil:
				plan.offsets = append(plan.offsets, r.Offset)
			case errors.Is(err, sites.ErrWithdrawn):
				plan.Withdrawn++
			default:
				plan.Beyond++
			}
		}
		return nil
	})
}

// withdrawable returns nil if m can withdraw the label r, else what sites says of it.
func (r *record) withdrawable(m *model.Model) error {
	ex := r.example
	ex.Action, ex.Of, ex.OwnOnly = model.Unlearn, ex.ID, true
	return m.Withdrawable(&ex)
}

// applyTo has m learn r as its learner will.
func (r *record) applyTo(m *model.Model) error {
	switch {
	case errors.Is(r.err, errNoEvent):
		if s, err := stream.DecodeStandingRecord(r.Headers, r.Value); err == nil {
			_ = example.Follow(m, &s) // what is refused changes nothing
		}
		return nil
	case r.err != nil:
		return nil
	}
	_, err := m.Apply(&r.example)
	return ignoreRefused(err)
}

// try withdraws from after what can be withdrawn, and answers the recent events by before.
func (pl *planner) try(ctx context.Context, plan *PartitionPlan, before, after *model.Model) error {
	p := plan.part
	plan.recent = plan.recent[max(0, len(plan.recent)-pl.recent):]
	candidates, recent := plan.offsets, plan.recent
	plan.offsets, plan.ids = nil, nil
	predictor := before.NewPredictor()
	return p.readThese(ctx, merged(candidates, recent), func(r *record) error {
		pl.progress(p, r.Offset)
		if _, found := slices.BinarySearch(recent, r.Offset); found {
			prediction, err := predictor.Predict(&r.example.Body)
			plan.answered = append(plan.answered, prediction) // zero if it is refused, as it will be again
			return ignoreRefused(err)
		}
		e := withdrawal(r)
		if _, _, err := e.EncodeRecord(); err != nil {
			plan.TooLarge++
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
			plan.Beyond++ // the events behind the saved model have pushed it out, or it is a copy
		case effect.Duplicate:
			plan.Withdrawn++
		default:
			if plan.Withdrawable++; plan.Withdrawable == 1 {
				plan.Oldest = r.Time.UTC()
			}
			plan.offsets, plan.ids = append(plan.offsets, r.Offset), append(plan.ids, e.ID)
		}
		return nil
	})
}

// compare answers the recent events by after.
func (pl *planner) compare(ctx context.Context, plan *PartitionPlan, after *model.Model) error {
	a := &plan.Answers
	defer func() { plan.answered = nil }()
	predictor := after.NewPredictor()
	i := 0
	err := plan.part.readThese(ctx, plan.recent, func(r *record) error {
		now, err := predictor.Predict(&r.example.Body)
		was := plan.answered[i]
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
		spam := r.event.Label == stream.Spam
		a.LogLossBefore += loss(was.LogOdds, spam)
		a.LogLossAfter += loss(now.LogOdds, spam)
		return nil
	})
	if n := float64(a.Events); n > 0 {
		a.MeanChange, a.LogLossBefore, a.LogLossAfter = a.MeanChange/n, a.LogLossBefore/n, a.LogLossAfter/n
	}
	return err
}

func (pl *planner) decide(p model.Prediction) stream.Decision {
	lo, _ := p.Interval(model.Z90)
	return stream.Decide(p.P(), lo, pl.spamAt, pl.hamAt)
}

// loss is the log loss of a label, in nats.
func loss(logOdds float64, spam bool) float64 {
	if spam {
		logOdds = -logOdds
	}
	return max(logOdds, 0) + math.Log1p(math.Exp(-math.Abs(logOdds)))
}

func ignoreRefused(err error) error {
	if refused := (*model.RefusedError)(nil); errors.As(err, &refused) {
		return nil
	}
	return err
}

// readThese calls each with the records at these offsets, ascending.
func (p *part) readThese(ctx context.Context, offsets []int64, each func(*record) error) error {
	if len(offsets) == 0 {
		return nil
	}
	return kafka.ReadRange(ctx, p.kafka, p.topic, p.number, offsets[0], offsets[len(offsets)-1]+1, func(r *kafka.Record) error {
		if _, found := slices.BinarySearch(offsets, r.Offset); !found {
			return nil
		}
		in := decoded(r)
		return each(&in)
	})
}

// merged returns the numbers of two ascending lists, which share none, in order.
func merged(a, b []int64) []int64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return all
}

// withdrawal returns the event that withdraws what r taught. Its id is a function of r, so
// that the same withdrawal twice is one event and a copy of it.
func withdrawal(r *record) stream.Event {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%d\n%s", r.Topic, r.Partition, r.Offset, r.event.ID))
	return stream.Event{
		ID: "withdraw-" + hex.EncodeToString(sum[:16]), Source: r.event.Source, Tenant: r.event.Tenant,
		Action: stream.Unlearn, Of: r.event.ID, OwnOnly: true, Body: r.event.Body,
	}
}
