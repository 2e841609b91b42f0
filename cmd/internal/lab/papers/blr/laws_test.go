package blr

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/lab/vblr"

	"gonum.org/v1/gonum/mat"
)

// The slow script and hamlet's fit are the same mathematics, with ARD and without.
func TestScriptIsFitBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	x, y := drawn(rng, weights(rng, 3, 1), 80)
	for _, ard := range []bool{false, true} {
		b, err := climb(t.Context(), x, y, ard)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "distance of weights", b.Twin, 0, 1e-6)
		near(t, "(30) and (24)", b.Expanded, 0, 1e-10)
		if b.Stop >= b.Fixed || b.Off == 0 {
			t.Errorf("ARD %v: the printed rule stops after %d of %d iterations, %g from the fixed point", ard, b.Stop,
				b.Fixed, b.Off)
		}
	}
}

// A hyperprior that leaves α no choice gives the prior that was asked for.
func TestKnownAlpha(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	x, y := drawn(rng, weights(rng, 4, 1), 50)
	for _, α := range []float64{.25, 1, 7} {
		fit, err := known(t.Context(), x, y, α)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "E(α)", fit.EAlpha[0], α, 1e-9)
	}
}

// With equal rows and enough iterations the scripts' answer is the largest bound.
func TestScriptedIsTheBound(t *testing.T) {
	for _, r := range []row{{0, 10}, {-2, 1}, {1.5, .3}} {
		plus, _ := vblr.Bounds(r.m, r.a)
		near(t, "p(+)", scripted([]row{r}, 0)[0], plus, 1e-4)
	}
}

// (35) with matrices as printed is the scalar bound of package blr.
func TestEquation35IsBounds(t *testing.T) {
	v := mat.NewSymDense(2, []float64{2, .5, .5, 1})
	for _, w := range [][]float64{{0, 0}, {1, -2}, {.3, 4}} {
		x := []float64{1, -.7}
		printed, err := equation35(w, v, x)
		if err != nil {
			t.Fatal(err)
		}
		vx := mat.NewVecDense(2, x)
		plus, _ := vblr.Bounds(dot(w, x), mat.Inner(vx, v, vx))
		near(t, "p(+) by (35)", printed, plus, 1e-9)
	}
}

func TestPrintedStop(t *testing.T) {
	if n := printedStop([]float64{-100, -90, -90.01, -90.0105, -90.0105}); n != 4 {
		t.Errorf("the rule stops after %d iterations, want 4: .01 is more than .001 %% of 90, .0005 is less", n)
	}
	if n := printedStop([]float64{-3, -2, -1}); n != 3 {
		t.Errorf("a fit that ended after 3 iterations stops after %d", n)
	}
}

func TestOrderAndOverlap(t *testing.T) {
	v := relevance{Relevant: []float64{1, 50}, Irrelevant: []float64{10, 100}}
	near(t, "all pairs in order", ordered(v, []float64{2, .1}, 0), .75, 0)
	near(t, "pairs of large weights", ordered(v, []float64{2, .1}, .5), 1, 0)
	near(t, "ln E(αᵢ) of irrelevant inputs above the others", higher(v), math.Log(1000./50)/2, 1e-15)
	x := [][]float64{{1, 0}, {1, 1}, {1, 2}}
	if overlap(x, []float64{-1, -1, 1}) || overlap(x, []float64{1, 1, 1}) || !overlap(x, []float64{-1, 1, -1}) {
		t.Error("overlap is wrong about three points on a line")
	}
	most, mean := ranges([][]float64{{.1, .5}, {.3, .5}, {.2, .4}})
	near(t, "largest range", most, .2, 1e-15)
	near(t, "mean range", mean, .15, 1e-15)
}
