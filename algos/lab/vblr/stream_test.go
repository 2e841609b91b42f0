package vblr

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// A stream of events from a logistic model: x = [1, normal…], weights of size 1.
type stream struct {
	r *rand.Rand
	w []float64
}

func newStream(seed uint64, dim int) *stream {
	s := &stream{r: rand.New(rand.NewPCG(seed, 9)), w: make([]float64, dim)}
	for j := range s.w {
		s.w[j] = s.r.NormFloat64()
	}
	return s
}

func (s *stream) next() (x []float64, y, phi float64) {
	x = make([]float64, len(s.w))
	x[0] = 1
	for j := range x[1:] {
		x[1+j] = s.r.NormFloat64()
	}
	y = -1
	if s.r.Float64() < logistic.Sigmoid(triangle.InOrder(s.w, x)) {
		y = 1
	}
	phi = 1
	if s.r.IntN(3) == 0 {
		phi = 0.02 + float64(0.98*s.r.Float64()) // the golden file depends on its bits
	}
	return x, y, phi
}

func mustNew(t testing.TB, cfg blr.Config) *blr.Posterior {
	t.Helper()
	p, err := blr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var sites = []blr.Approximation{blr.RVGA, blr.JaakkolaJordan, blr.ExactRVGA}

func relative(got, want float64) float64 { return math.Abs(got-want) / (1 + math.Abs(want)) }
