package vblr

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
)

// Reference: eqs. 35–38 with their matrices, iterated as printed, for either
// label, against the scalars of Bounds.
func TestBoundsAreEquation35(t *testing.T) {
	const dim = 4
	p := mustNew(t, blr.Config{Dim: dim})
	s := newStream(21, dim)
	for range 30 {
		p.Update(s.next())
	}
	w, v := make([]float64, dim), &mat.SymDense{}
	p.MeanTo(w)
	p.CovarianceTo(v)
	for range 20 {
		x, _, _ := s.next()
		m, a := p.Moments(x)
		plus, minus := Bounds(m, a)
		if d := math.Abs(plus - math.Exp(slow35(t, w, v, x, 1))); d > 1e-12 {
			t.Errorf("m=%v a=%v: bound of +1 is %v, off by %g", m, a, plus, d)
		}
		if d := math.Abs(minus - math.Exp(slow35(t, w, v, x, -1))); d > 1e-12 {
			t.Errorf("m=%v a=%v: bound of −1 is %v, off by %g", m, a, minus, d)
		}
		if got, want := Predict(m, a, 0.9).Normalised, plus/(plus+minus); math.Abs(got-want) > 1e-14 {
			t.Errorf("m=%v a=%v: normalised %v, want %v", m, a, got, want)
		}
	}
}

// slow35 is ln p(y | x) of (35), its ξ by a hundred thousand steps of (38).
func slow35(t *testing.T, w []float64, v *mat.SymDense, x []float64, y float64) float64 {
	t.Helper()
	d := len(w)
	wv, xv := mat.NewVecDense(d, w), mat.NewVecDense(d, x)
	var chol, chol2 mat.Cholesky
	if !chol.Factorize(v) {
		t.Fatal("V is not positive definite")
	}
	var lambdaN mat.SymDense
	if err := chol.InverseTo(&lambdaN); err != nil {
		t.Fatal(err)
	}
	var eta mat.VecDense
	eta.MulVec(&lambdaN, wv)
	var etaT mat.VecDense
	etaT.AddScaledVec(&eta, y/2, xv)
	ξ := 0.0
	for range 100_000 {
		λ := 0.125
		if ξ > 1e-6 {
			λ = math.Tanh(ξ/2) / (4 * ξ)
		}
		var lambdaT mat.SymDense
		lambdaT.SymRankOne(&lambdaN, 2*λ, xv)
		if !chol2.Factorize(&lambdaT) {
			t.Fatal("not positive definite")
		}
		var wt, vx mat.VecDense
		if err := chol2.SolveVecTo(&wt, &etaT); err != nil {
			t.Fatal(err)
		}
		if err := chol2.SolveVecTo(&vx, xv); err != nil {
			t.Fatal(err)
		}
		m := mat.Dot(&wt, xv)
		next := math.Sqrt(mat.Dot(xv, &vx) + m*m)
		if math.Abs(next-ξ) < 1e-14 {
			return -0.5*chol2.LogDet() - 0.5*chol.LogDet() - 0.5*mat.Dot(wv, &eta) + 0.5*mat.Dot(&wt, &etaT) +
				logistic.LogSigmoid(ξ) - ξ/2 + λ*ξ*ξ
		}
		ξ = next
	}
	t.Fatal("ξ does not converge")
	return 0
}

// Reference: ERRATA, eq. 35: both bounds at m = 0, a = 10 are .4365; they lie
// below the probabilities; and for a ≤ 50 the probit is off by at most .017, the
// normalised bounds by .037 (ERRATA cuts both digits).
func TestWhatEachPredictionIsWorth(t *testing.T) {
	if plus, minus := Bounds(0, 10); math.Abs(plus-0.4365) > 5e-5 || plus != minus {
		t.Errorf("bounds at m=0 a=10 are %v and %v, want .4365 twice", plus, minus)
	}
	var probit, normalised float64
	for m := -40.0; m <= 40; m += 0.25 {
		for _, a := range []float64{0, 1e-6, 0.1, 0.5, 1, 2, 3, 5, 8, 12, 20, 30, 50} {
			p := Predict(m, a, 0.95)
			probit = max(probit, math.Abs(p.Probit-p.Exact))
			normalised = max(normalised, math.Abs(p.Normalised-p.Exact))
			if p.BoundPlus > p.Exact+1e-14 || p.BoundMinus > blr.Exact(-m, a)+1e-14 {
				t.Errorf("m=%v a=%v: %+v: a bound above the probability", m, a, p)
			}
			if (p.Probit-0.5)*m < 0 || (p.Normalised-0.5)*m < 0 || (p.Exact-0.5)*m < 0 {
				t.Errorf("m=%v a=%v: %+v: on the wrong side of ½", m, a, p)
			}
		}
	}
	t.Logf("largest error for a ≤ 50: probit %.4f, normalised bounds %.4f", probit, normalised)
	if probit > 0.017 || normalised > 0.037 {
		t.Errorf("largest error of the probit %.4f, want .017; of the normalised bounds %.4f, want .037", probit, normalised)
	}
}

// Every function is finite at ±800 and beyond.
func TestPredictFarOut(t *testing.T) {
	for _, m := range []float64{-1e300, -1e6, -800, 0, 800, 1e6, 1e300} {
		for _, a := range []float64{0, 1e-300, 1e-9, 1, 800, 1e9, 1e100} {
			p := Predict(m, a, 0.95)
			for _, v := range []float64{p.BoundPlus, p.BoundMinus, p.Normalised, p.Probit, p.Exact, p.Lo, p.Hi} {
				if !(v >= 0 && v <= 1) {
					t.Errorf("m=%v a=%v: %+v", m, a, p)
				}
			}
			if p.Lo > p.Hi {
				t.Errorf("m=%v a=%v: interval [%v, %v]", m, a, p.Lo, p.Hi)
			}
		}
	}
}

func TestInterval(t *testing.T) {
	lo, hi := Interval(0.4, 2.25, 0.9)
	for _, c := range [][2]float64{{lo, 0.4 - 1.5*1.6448536269514722}, {hi, 0.4 + 1.5*1.6448536269514722}} {
		if math.Abs(c[0]-logistic.Sigmoid(c[1])) > 1e-15 {
			t.Errorf("end of the 90 %% interval is %v, want %v", c[0], logistic.Sigmoid(c[1]))
		}
	}
	for _, level := range []float64{0, 1, -1, 2, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for level %v", level)
				}
			}()
			Interval(0, 1, level)
		}()
	}
}
