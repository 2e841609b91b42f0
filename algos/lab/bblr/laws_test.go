package bblr

import (
	"errors"
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
	last   rows // the last events
	fitted rows // those of the last fit
	events uint32
	now    classifier // fit of fitted; nil before the first
}

type rows struct {
	x [][]float64
	y []float64
}

func (c *windowed) Prob(x []float64) float64 {
	if c.now == nil {
		return 0.5
	}
	return c.now.Prob(x)
}

func (c *windowed) Update(x []float64, y float64) {
	c.last.x, c.last.y = append(c.last.x, slices.Clone(x)), append(c.last.y, y)
	if len(c.last.x) > window {
		c.last.x, c.last.y = c.last.x[1:], c.last.y[1:]
	}
	if c.events++; c.events%rebuild != 0 {
		return
	}
	switch now, err := c.fit(c.last.x, c.last.y); {
	case errors.Is(err, ErrOneClass):
	case err != nil:
		panic(err)
	default:
		c.fitted, c.now = rows{slices.Clone(c.last.x), slices.Clone(c.last.y)}, now
	}
}

func (c *windowed) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Uint32(c.events)
	for _, r := range []rows{c.last, c.fitted} {
		w.Uint32(uint32(len(r.x)))
		for i, x := range r.x {
			w.Float64(x...)
			w.Float64(r.y[i])
		}
	}
	return w.Finish()
}

func (c *windowed) restore(b []byte) error {
	r := codec.NewReader(b, errors.New("not a window"))
	c.events = r.Uint32()
	for _, to := range []*rows{&c.last, &c.fitted} {
		n := uint64(r.Uint32())
		if n > window {
			r.Fail("%d rows", n)
			break
		}
		for range n {
			v := r.Finites(inputs + 1)
			if r.Err() != nil {
				break
			}
			to.x, to.y = append(to.x, v[:inputs]), append(to.y, v[inputs])
		}
	}
	if err := r.Close(); err != nil || len(c.fitted.x) == 0 {
		return err
	}
	var err error
	c.now, err = c.fit(c.fitted.x, c.fitted.y)
	return err
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
		near   float64 // descents end at a tolerance, on their way rounding grows
		exempt map[algotest.Law]string
	}{
		"BBLR1": {linear(BBLR1), 1e-6, map[algotest.Law]string{
			algotest.PermutedInputs: "probes take the coordinates in order, and the first that improves wins",
		}},
		"BBLR2":   {linear(BBLR2), 1e-6, nil},
		"BBLR4":   {linear(BBLR4), 1e-6, nil},
		"sigmoid": {linear(Sigmoid), 1e-6, nil},
		// As many coefficients as rows, hardly penalised, leave a flat valley: where in it
		// a mean gradient falls below 10⁻⁴ is settled by rounding. So λ is 1 here.
		"kernel": {kernel(false), 2e-3, nil},
		"sparse kernel": {kernel(true), 2e-3, map[algotest.Law]string{
			algotest.PermutedInputs: "of rows that would do equally well rounding chooses the one to keep",
			algotest.FlippedLabels:  "of rows that would do equally well rounding chooses the one to keep",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			algotest.Run(t, algotest.Subject{
				Dim: inputs,
				New: func() algotest.Classifier { return &windowed{fit: c.fit} },
				Restore: func(b []byte) (algotest.Classifier, error) {
					r := &windowed{fit: c.fit}
					return r, r.restore(b)
				},
				Near:   c.near,
				Exempt: c.exempt,
			})
		})
	}
}
