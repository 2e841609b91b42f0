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

// A series records a model over a stream: whether its prediction of each event was
// wrong, the loss, and the model's alarms. Predictions come before learning. Other
// detectors are replayed over a series, so the model runs only once.
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

// own returns when one of the model's alarms was raised; for ownAlarms, any of them.
func (s *series) own(alarm int) []int {
	if alarm < ownAlarms {
		return s.raised[alarm]
	}
	all := slices.Concat(s.raised[:]...)
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(a, b) })
	return all
}

// record applies n events to m and appends its answers.
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
			continue // a duplicate from the generator
		}
		z := effect.Prediction.LogOdds
		s.wrong = append(s.wrong, (z >= 0) != ex.Spam)
		s.loss = append(s.loss, eval.LogLoss(ex.Spam, z))
		for _, a := range effect.Alerts {
			for i, kind := range ownKinds {
				if a.State == drift.Raised && a.Kind == kind {
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
func (w *population) clean(ctx context.Context, seed uint64, n int, done *atomic.Int64) (*series, error) {
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

// faulty records a stream of a seed up to event at. For each fault it goes on for n
// events with a copy of the model. Each series begins with the first event. A fault that
// does not apply to the population gets nil.
func (w *population) faulty(ctx context.Context, seed uint64, at, n int, done *atomic.Int64) ([]*series, error) {
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
