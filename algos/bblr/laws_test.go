package bblr

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"hamlet/algos/algotest"
	"hamlet/algos/internal/codec"
)

const (
	window  = 200 // events that a windowed classifier remembers
	rebuild = 40  // events between two fits
	inputs  = 5
)

// A windowed classifier is fitted to the last events at every 40th, as the stream
// does. Before the first fit it knows nothing. A variant that needs both labels and
// has one keeps its last fit.
type windowed struct {
	fit    func(x [][]float64, y []float64) (classifier, error)
	empty  classifier
	x      [][]float64
	y      []float64
	events uint32
	fitted classifier
}

func (c *windowed) Prob(x []float64) float64 {
	if c.fitted == nil {
		return 0.5
	}
	return c.fitted.Prob(x)
}

func (c *windowed) Update(x []float64, y float64) {
	c.x, c.y = append(c.x, slices.Clone(x)), append(c.y, y)
	if len(c.x) > window {
		c.x, c.y = c.x[1:], c.y[1:]
	}
	if c.events++; c.events%rebuild != 0 {
		return
	}
	switch fitted, err := c.fit(c.x, c.y); {
	case errors.Is(err, ErrOneClass):
	case err != nil:
		panic(err)
	default:
		c.fitted = fitted
	}
}

func (c *windowed) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Uint32(c.events, uint32(len(c.x)))
	for i, x := range c.x {
		w.Float64(x...)
		w.Float64(c.y[i])
	}
	w.Bool(c.fitted != nil)
	if c.fitted != nil {
		w.Append(c.fitted)
	}
	return w.Finish()
}

func (c *windowed) restore(b []byte) error {
	le := binary.LittleEndian
	const row = 8 * (inputs + 1)
	if len(b) < 9 || le.Uint32(b[4:]) > window || len(b) < 9+int(le.Uint32(b[4:]))*row {
		return errors.New("short")
	}
	n := int(le.Uint32(b[4:]))
	c.events, b = le.Uint32(b), b[8:]
	for range n {
		v := make([]float64, inputs+1)
		for j := range v {
			v[j] = math.Float64frombits(le.Uint64(b[8*j:]))
		}
		c.x, c.y = append(c.x, v[:inputs:inputs]), append(c.y, v[inputs])
		b = b[row:]
	}
	if b[0] == 0 {
		if len(b) > 1 {
			return errors.New("long")
		}
		return nil
	}
	c.fitted = empty(c.empty)
	return c.fitted.UnmarshalBinary(b[1:])
}

func TestLaws(t *testing.T) {
	linear := func(v Variant) func([][]float64, []float64) (classifier, error) {
		return func(x [][]float64, y []float64) (classifier, error) {
			m, _, err := Fit(t.Context(), Config{Variant: v}, x, y, nil)
			return m, err
		}
	}
	kernel := func(sparse bool) func([][]float64, []float64) (classifier, error) {
		return func(x [][]float64, y []float64) (classifier, error) {
			m, _, err := FitKernel(t.Context(), KernelConfig{Sparse: sparse, Lambda: 1}, x, y, nil)
			return m, err
		}
	}
	for name, c := range map[string]struct {
		fit    func([][]float64, []float64) (classifier, error)
		empty  classifier
		near   float64 // descents end at a tolerance, on their way rounding grows
		exempt map[algotest.Law]string
	}{
		"BBLR1": {linear(BBLR1), &Linear{}, 1e-6, map[algotest.Law]string{
			algotest.PermutedInputs: "probes take the coordinates in order, and the first that improves wins",
		}},
		"BBLR2":   {linear(BBLR2), &Linear{}, 1e-6, nil},
		"BBLR4":   {linear(BBLR4), &Linear{}, 1e-6, nil},
		"sigmoid": {linear(Sigmoid), &Linear{}, 1e-6, nil},
		// As many coefficients as rows, hardly penalised, leave a flat valley: where in it
		// a mean gradient falls below 10⁻⁴ is settled by rounding. So λ is 1 here.
		"kernel": {kernel(false), &KernelMachine{}, 2e-3, nil},
		"sparse kernel": {kernel(true), &KernelMachine{}, 2e-3, map[algotest.Law]string{
			algotest.PermutedInputs: "of rows that would do equally well rounding chooses the one to keep",
			algotest.FlippedLabels:  "of rows that would do equally well rounding chooses the one to keep",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			algotest.Run(t, algotest.Subject{
				Dim: inputs,
				New: func() algotest.Classifier { return &windowed{fit: c.fit, empty: c.empty} },
				Restore: func(b []byte) (algotest.Classifier, error) {
					r := &windowed{fit: c.fit, empty: c.empty}
					return r, r.restore(b)
				},
				Near:   c.near,
				Exempt: c.exempt,
			})
		})
	}
}
