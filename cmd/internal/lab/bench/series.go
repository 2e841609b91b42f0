package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"hamlet/algos/drift"
	"hamlet/algos/eval"
	"hamlet/algos/model"
)

// A series is what the model said of each event of a stream before it learnt it,
// by the label that it was given, and what its own alarms did. Other detectors are
// replayed over it, so that the model runs once however many thresholds are tried.
type series struct {
	wrong  []bool
	loss   []float64 // nats
	raised [ownAlarms][]int
}

// The model's own alarms.
const (
	ownNoise = iota
	ownCovariate
	ownConcept
	ownAlarms // their number
)

var ownKinds = [ownAlarms]string{drift.KindLabelNoise, drift.KindCovariate, drift.KindConcept}

// own returns the raises of one of the model's alarms, or of all for ownAlarms.
func (s *series) own(alarm int) []int {
	if alarm < ownAlarms {
		return s.raised[alarm]
	}
	all := slices.Concat(s.raised[:]...)
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(a, b) })
	return all
}

// record applies n events to m and appends what came of them.
func (s *series) record(ctx context.Context, m *model.Model, next func() (model.Example, error), alter change, n int, done *atomic.Int64) error {
	for k := 0; k < n; {
		if k%64 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ex, err := next()
		if err != nil {
			return err
		}
		if !alter(&ex) {
			continue
		}
		effect, err := m.Apply(&ex)
		if err != nil {
			return fmt.Errorf("event %d: %w", len(s.loss)+1, err)
		}
		if effect.Duplicate {
			continue // the generator has made the same message twice
		}
		z := effect.Prediction.LogOdds
		s.wrong = append(s.wrong, (z >= 0) != ex.Spam)
		s.loss = append(s.loss, eval.LogLoss(ex.Spam, z))
		for _, a := range effect.Alerts {
			for i, kind := range ownKinds {
				if a.Raised && a.Kind == kind {
					s.raised[i] = append(s.raised[i], len(s.loss))
				}
			}
		}
		k++
		done.Add(1)
	}
	return nil
}

// clean records a stream without a fault.
func (w *world) clean(ctx context.Context, seed uint64, n int, done *atomic.Int64) (*series, error) {
	m, err := model.New(w.model)
	if err != nil {
		return nil, fmt.Errorf("configuration of the model: %w", err)
	}
	next, err := w.open(seed, 0, nil)
	if err != nil {
		return nil, err
	}
	s := new(series)
	if err := s.record(ctx, m, next, keepAll, n, done); err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", w.name, seed, err)
	}
	return s, nil
}

// faulty records a stream of a seed once up to event at, and from there on with
// each of the faults, for n events each: the model goes on from its bytes. What
// comes back holds the events from the first, nil for a fault that the world does
// not know.
func (w *world) faulty(ctx context.Context, seed uint64, at, n int, done *atomic.Int64) ([]*series, error) {
	m, err := model.New(w.model)
	if err != nil {
		return nil, fmt.Errorf("configuration of the model: %w", err)
	}
	next, err := w.open(seed, 0, nil)
	if err != nil {
		return nil, err
	}
	before := new(series)
	if err := before.record(ctx, m, next, keepAll, at, done); err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", w.name, seed, err)
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	all := make([]*series, len(faults))
	for i := range faults {
		f := &faults[i]
		alter := f.of(w, rand.New(rand.NewPCG(seed, faultStream+uint64(i))))
		if alter == nil {
			continue
		}
		m, err := model.Restore(b)
		if err != nil {
			return nil, err
		}
		if next, err = w.open(seed, at, f); err != nil {
			return nil, err
		}
		s := before.clone()
		if err := s.record(ctx, m, next, alter, n, done); err != nil {
			return nil, fmt.Errorf("%s, seed %d, %s: %w", w.name, seed, f.name, err)
		}
		all[i] = s
	}
	return all, nil
}

func (s *series) clone() *series {
	c := &series{wrong: append([]bool(nil), s.wrong...), loss: append([]float64(nil), s.loss...)}
	for i := range s.raised {
		c.raised[i] = append([]int(nil), s.raised[i]...)
	}
	return c
}
