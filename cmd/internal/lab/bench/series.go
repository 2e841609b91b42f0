package bench

import (
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
	opened []int     // events at which the model opened an incident, suspected or named
	names  []naming  // the incidents that it named
}

// A naming is an incident that was given its name.
type naming struct {
	at       int
	kind     string
	incident uint64
}

// The model's own detectors: whether it suspects, whether it names, and three names.
var ownDetectors = []struct {
	name  string
	kinds []string // nil: every incident, from when it was opened
}{
	{"suspected", nil},
	{"named", []string{drift.KindLabelNoise, drift.KindSource, drift.KindCovariate, drift.KindConcept}},
	{"label noise", []string{drift.KindLabelNoise, drift.KindSource}},
	{"covariate", []string{drift.KindCovariate}},
	{"concept", []string{drift.KindConcept}},
}

// ownSuspected and ownNamed are the indices of two of them.
const ownSuspected, ownNamed = 0, 1

// own returns the events at which the model's detector number i raised an alarm.
func (s *series) own(i int) []int {
	kinds := ownDetectors[i].kinds
	if kinds == nil {
		return s.opened
	}
	var at []int
	for _, n := range s.names {
		if slices.Contains(kinds, n.kind) {
			at = append(at, n.at)
		}
	}
	return at
}

// note takes the transitions of incidents at the last event.
func (s *series) note(alerts []model.Alert) {
	at := len(s.loss)
	for i := range alerts {
		a := &alerts[i]
		if a.Transition == 1 {
			s.opened = append(s.opened, at)
		}
		named := func(n naming) bool { return n.incident == a.Incident }
		if a.State == drift.Raised && !slices.ContainsFunc(s.names, named) {
			s.names = append(s.names, naming{at, a.Kind, a.Incident})
		}
	}
}

// firstName returns the first name that an incident was given after event at, up to event end.
func (s *series) firstName(at, end int) (kind string, ok bool) {
	for _, n := range s.names {
		if n.at > at && n.at <= end {
			return n.kind, true
		}
	}
	return "", false
}

// extend applies n events to m and appends its answers.
func (s *series) extend(ctx context.Context, m *model.Model, next func() (model.Example, error), alter change, n int,
	done *atomic.Int64) error {
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
		s.note(effect.Alerts)
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
	if err := s.extend(ctx, m, next, keepAll, n, done); err != nil {
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
	if err := before.extend(ctx, m, next, keepAll, at, done); err != nil {
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
		if err := s.extend(ctx, m, next, alter, n, done); err != nil {
			return nil, fmt.Errorf("%s, seed %d, %s: %w", w.name, seed, f.name, err)
		}
		all[i] = s
	}
	return all, nil
}

func (s *series) clone() *series {
	return &series{
		wrong: slices.Clone(s.wrong), loss: slices.Clone(s.loss), opened: slices.Clone(s.opened),
		names: slices.Clone(s.names),
	}
}
