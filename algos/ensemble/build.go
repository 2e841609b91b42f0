package ensemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"hamlet/algos/boost"
)

// A Window is what an ensemble is built from: n rows of Dim inputs, the oldest
// first. Build neither changes nor keeps it.
type Window struct {
	Dim     int
	Inputs  []float32 // n × Dim, row-major, finite
	Labels  []float64 // n, ±1
	Weights []float64 // n weights ω, 0 to MaxWeight; hamlet's are the label trust φ. Rows of weight 0 are left out
	Rounds  int       // how many rounds at most; 0 is DefaultRounds
}

// MaxWeight bounds a row's weight; a label trust is at most 1.
const MaxWeight = 1e6

// A Result is the ensemble of one kind, or why it could not be built.
type Result struct {
	Ensemble *Ensemble
	Err      error
}

// Why no ensemble can be built from a window. Keep the old ensemble and try again with the
// next window.
var (
	ErrNoRows   = errors.New("no row has a weight above 0")
	ErrOneClass = errors.New("all rows that count have one label: want both")
	ErrConstant = errors.New("every input is constant")
	ErrNoEdge   = errors.New("no hypothesis is better than a coin")
)

// Build cuts bins from the window, once for all kinds, and builds an ensemble of each kind.
// Result i is that of kind i. If one fails, the others are still built. Each depends
// only on the window and its kind, to the last bit on every CPU.
//
// An error wraps ErrNoRows, ErrOneClass, ErrConstant, ErrNoEdge or the cause of ctx's end.
// Other errors name a bad number of the window or an unknown kind. Build checks ctx between
// rounds. It panics if the lengths of w's slices do not agree.
func Build(ctx context.Context, kinds []Kind, w *Window) []Result {
	results := make([]Result, len(kinds))
	s, err := newSample(w)
	for i, k := range kinds {
		r := &results[i]
		code := k.code()
		if code < 0 {
			r.Err = fmt.Errorf("build an ensemble: unknown kind %q: want one of %v", k, Kinds())
			continue
		}
		var f function
		failed := err
		if err == nil {
			f, failed = s.build(ctx, &boosters[code])
		}
		if failed != nil {
			r.Err = fmt.Errorf("build %s from %d rows of %d inputs: %w", k, len(w.Labels), w.Dim, failed)
			continue
		}
		r.Ensemble = &Ensemble{kind: k, dim: w.Dim, function: f}
	}
	return results
}

// A sample holds the rows of a window with weight above 0, as boosters need them.
type sample struct {
	x      [][]float32 // the window's own memory
	y, ω   []float64
	most   int                 // rounds at most
	binned map[int]*boost.Data // by data's argument; data fills it
}

// newSample leaves out the rows of weight 0. It returns an error if no ensemble can be
// built from the rest.
func newSample(w *Window) (*sample, error) {
	n := len(w.Labels)
	if w.Dim < 1 || len(w.Inputs) != n*w.Dim || len(w.Weights) != n {
		panic(fmt.Sprintf("ensemble: a window of %d inputs, %d labels and %d weights for %d inputs a row",
			len(w.Inputs), n, len(w.Weights), w.Dim))
	}
	s := &sample{
		x: make([][]float32, 0, n), y: make([]float64, 0, n), ω: make([]float64, 0, n),
		most: cmp.Or(w.Rounds, DefaultRounds), binned: make(map[int]*boost.Data),
	}
	var both [2]bool
	for i, y := range w.Labels {
		ω := w.Weights[i]
		if !(ω >= 0 && ω <= MaxWeight) {
			return nil, fmt.Errorf("weight %d is %v: want 0 to %g", i, ω, MaxWeight)
		}
		if ω == 0 {
			continue
		}
		switch y {
		case 1:
			both[1] = true
		case -1:
			both[0] = true
		default:
			return nil, fmt.Errorf("label %d is %v: want 1 or -1", i, y)
		}
		row := w.Inputs[i*w.Dim : (i+1)*w.Dim : (i+1)*w.Dim]
		for j, v := range row {
			if v-v != 0 {
				return nil, fmt.Errorf("input %d of row %d is %v: want a finite number", j, i, v)
			}
		}
		s.x, s.y, s.ω = append(s.x, row), append(s.y, y), append(s.ω, ω)
	}
	switch {
	case len(s.y) == 0:
		return nil, ErrNoRows
	case !both[0] || !both[1]:
		return nil, ErrOneClass
	case !slices.ContainsFunc(s.x, func(row []float32) bool { return !slices.Equal(row, s.x[0]) }):
		return nil, ErrConstant
	}
	return s, nil
}

// data returns the sample with each input in quantile bins, most of them at most.
func (s *sample) data(most int) (*boost.Data, error) {
	if d := s.binned[most]; d != nil {
		return d, nil
	}
	d, err := boost.Quantise(s.x, most)
	if err == nil {
		s.binned[most] = d
	}
	return d, err
}

// wide returns the inputs in float64.
func (s *sample) wide() [][]float64 {
	dim := len(s.x[0])
	x, flat := make([][]float64, len(s.x)), make([]float64, 0, len(s.x)*dim)
	for i, row := range s.x {
		for _, v := range row {
			flat = append(flat, float64(v))
		}
		x[i] = flat[i*dim : (i+1)*dim : (i+1)*dim]
	}
	return x
}

// rounds returns the number of rounds of a booster.
func (s *sample) rounds() int { return min(max(len(s.y)/rowsPerRound, 1), s.most) }

// depth returns the depth of logit-trees' trees.
func (s *sample) depth() int {
	switch n := len(s.y); {
	case n >= 4*shallowRows:
		return 4
	case n >= shallowRows:
		return 3
	}
	return 2
}

// build runs the booster of one kind.
func (s *sample) build(ctx context.Context, b *booster) (function, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var d *boost.Data
	if b.bins > 0 {
		var err error
		if d, err = s.data(b.bins); err != nil {
			return nil, err
		}
	}
	return b.build(ctx, s, d)
}
