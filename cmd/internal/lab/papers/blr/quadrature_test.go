package blr

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/blr"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %v, want %v within %g", what, got, want, tolerance)
	}
}

func TestExpect(t *testing.T) {
	for _, a := range []float64{0, 1e-6, .3, 2, 50, 400} {
		for _, m := range []float64{-3, 0, 7} {
			near(t, "mean of z²", expect(m, a, func(z float64) float64 { return z * z }), m*m+a, 1e-11*(1+m*m+a))
			near(t, "mean of σ", expect(m, a, sigma), blr.Exact(m, a), 1e-10)
		}
	}
}

// The probabilities of all labels of four rows add up to 1, whatever the weights' prior.
func TestEvidenceOfAllLabelsIsOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for d := 1; d <= 2; d++ {
		x, _ := drawn(rng, make([]float64, d), 4)
		x[0][0] = -.7 // not constant, so that one weight has labels of different evidence
		sum, largest := 0.0, 0.0
		for labels := range 16 {
			y := make([]float64, 4)
			for i := range y {
				y[i] = float64(labels>>i&1)*2 - 1
			}
			p := math.Exp(exact(x, y, 2, 1).LogEvidence)
			sum += p
			largest = max(largest, p)
		}
		near(t, "sum of the evidence", sum, 1, 1e-6)
		if largest < 1.0/12 {
			t.Errorf("%d weights: no labels are more probable than others", d)
		}
	}
}

// From 100 rows on a coarser grid is used: both must agree.
func TestCoarseGrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	x, y := mixed(rng, 2, 101, 1)
	// A row of zeros multiplies the evidence by ½; dropping a row leads to the fine grid.
	fine := givenAlpha(x[:99], y[:99], .3)
	x[99], x[100] = []float64{0, 0}, []float64{0, 0}
	coarse := givenAlpha(x, y, .3)
	near(t, "log evidence", coarse.LogEvidence, fine.LogEvidence-2*math.Ln2, 1e-7)
	near(t, "mean", coarse.Mean[1], fine.Mean[1], 1e-7)
	near(t, "variance", coarse.Variance[1], fine.Variance[1], 1e-7)
}

// Two ways to the same posterior: over α outside, or with the hyperprior integrated into
// Student's t.
func TestExactIsStudentsPosterior(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, n := range []int{10, 60} {
		x, y := mixed(rng, 1, n, 1)
		got := exact(x, y, a0, b0)
		sum, first, second := 0.0, 0.0, 0.0
		const scale, step = 1e-3, .01
		for s := -13.0; s < 13; s += step { // w up to ±220, dense about 0
			w := scale * math.Sinh(s)
			log := student([]float64{w}, a0, b0)
			for i := range x {
				log += logSigma(y[i] * w * x[i][0])
			}
			p := step * scale * math.Cosh(s) * math.Exp(log)
			sum, first, second = sum+p, first+p*w, second+p*w*w
		}
		near(t, "log evidence", got.LogEvidence, math.Log(sum), 1e-6)
		near(t, "mean", got.Mean[0], first/sum, 1e-6)
		near(t, "variance", got.Variance[0], second/sum-first/sum*first/sum, 1e-6)
	}
}
