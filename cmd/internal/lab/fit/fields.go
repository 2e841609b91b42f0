package fit

import "math/rand/v2"

// Parts of requests that several algorithms embed.

// examples are labelled rows.
type examples struct {
	X [][]float64 `json:"x" shape:"N×D"`
	Y []float64   `json:"y" shape:"N" in:"±1"`
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
