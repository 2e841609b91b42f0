package fit

import (
	"math/rand/v2"
	"slices"
)

// Parts of requests that several algorithms embed.

// examples are labelled rows.
type examples struct {
	X [][]float64 `json:"x" shape:"N×D"`
	Y []float64   `json:"y" shape:"N" in:"±1"`
}

// weighted are sample weights. A weight of k is a row that stands there k times, except
// where an algorithm says that it counts rows.
type weighted struct {
	Weights []float64 `json:"weights" shape:"N" in:"[1e-6,1e6]" default:"null"`
}

// relative returns the weights for an algorithm that uses only their proportions: nil, the
// same as none, if all are equal.
func (w *weighted) relative() []float64 {
	if slices.ContainsFunc(w.Weights, func(v float64) bool { return v != w.Weights[0] }) {
		return w.Weights
	}
	return nil
}

// tested are rows to classify.
type tested struct {
	XTest [][]float64 `json:"x_test" shape:"M×D" default:"null"`
}

func (t *tested) testRows() [][]float64 { return t.XTest }

// seeded is the seed of an algorithm that draws random numbers. The others accept a
// seed without it.
type seeded struct {
	Seed uint64 `json:"seed" default:"1"`
}

func (s *seeded) source() rand.Source { return rand.NewPCG(s.Seed, 0) }
