package vblr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// events draws n events of a stream.
func events(seed uint64, dim, n int) (x [][]float64, y []float64) {
	s := newStream(seed, dim)
	for range n {
		xn, yn, _ := s.next()
		x, y = append(x, xn), append(y, yn)
	}
	return x, y
}

func mustFit(t testing.TB, x [][]float64, y []float64, cfg Config) *Batch {
	t.Helper()
	b, err := Fit(t.Context(), x, y, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var hyperpriors = []Config{{}, {ARD: true}, {A0: 2, B0: 0.5}, {A0: 2, B0: 0.5, ARD: true}}

func name(cfg Config) string { return fmt.Sprintf("ard=%v/a0=%v", cfg.ARD, cfg.A0) }

// Reference: eqs. 15, 16, 20–22, 31 and 42–45: where the fit ends all of them
// hold at once.
func TestBatchIsAFixedPoint(t *testing.T) {
	x, y := events(31, 4, 150)
	for _, cfg := range hyperpriors {
		t.Run(name(cfg), func(t *testing.T) {
			b := mustFit(t, x, y, cfg)
			if !b.Converged {
				t.Fatalf("not converged after %d iterations", b.Iterations)
			}
			v := &mat.SymDense{}
			b.CovarianceTo(v)
			a0, b0 := cfg.A0, cfg.B0
			if a0 == 0 {
				a0, b0 = 1e-2, 1e-4
			}
			precision, eta := mat.NewSymDense(4, nil), mat.NewVecDense(4, nil)
			sum := 0.0
			for j := range 4 {
				square := b.mean[j]*b.mean[j] + v.At(j, j)
				sum += square
				alpha := b.EAlpha[0]
				if cfg.ARD {
					alpha = b.EAlpha[j]
					if want := b0 + square/2; relative(b.BN[j], want) > 1e-9 || b.AN != a0+0.5 {
						t.Errorf("Gam(%v, %v) for weight %d, want rate %v", b.AN, b.BN[j], j, want)
					}
				}
				precision.SetSym(j, j, alpha)
			}
			if want := b0 + sum/2; !cfg.ARD && (relative(b.BN[0], want) > 1e-9 || b.AN != a0+2) {
				t.Errorf("Gam(%v, %v), want rate %v", b.AN, b.BN[0], want)
			}
			for n := range x {
				vx := mat.NewVecDense(4, x[n])
				m := mat.Dot(vx, mat.NewVecDense(4, b.mean))
				if want := math.Sqrt(mat.Inner(vx, v, vx) + m*m); math.Abs(b.Xi[n]-want) > 1e-9 {
					t.Errorf("ξ[%d] = %v, want %v", n, b.Xi[n], want)
				}
				precision.SymRankOne(precision, math.Tanh(b.Xi[n]/2)/(2*b.Xi[n]), vx)
				eta.AddScaledVec(eta, y[n]/2, vx)
			}
			var product mat.Dense
			product.Mul(precision, v)
			for i := range 4 {
				for j := range 4 {
					want := 0.0
					if i == j {
						want = 1
					}
					if math.Abs(product.At(i, j)-want) > 1e-9 {
						t.Errorf("(V⁻¹V)[%d,%d] = %v", i, j, product.At(i, j))
					}
				}
			}
			var w mat.VecDense
			w.MulVec(v, eta)
			for j := range 4 {
				if math.Abs(w.AtVec(j)-b.mean[j]) > 1e-9 {
					t.Errorf("w[%d] = %v, want %v", j, b.mean[j], w.AtVec(j))
				}
			}
		})
	}
}

// Reference: eqs. 24–29 and 46–49 added up, digammas included, against (30) and
// (50); with ξ's terms from (10) taken under q directly.
func TestBatchBoundIsTheSumOfItsExpectations(t *testing.T) {
	x, y := events(32, 3, 60)
	for _, cfg := range hyperpriors {
		for _, iterations := range []int{1, 2, 7, 100_000} {
			cfg.MaxIterations = iterations
			b := mustFit(t, x, y, cfg)
			a0, b0 := cfg.A0, cfg.B0
			if a0 == 0 {
				a0, b0 = 1e-2, 1e-4
			}
			const d = 3.0
			v := &mat.SymDense{}
			b.CovarianceTo(v)
			bound := 0.5*b.LogDetV + d/2*(1+math.Log(2*math.Pi)) // (28)
			for n := range x {
				m, a := b.Moments(x[n])
				λ, ξ := blr.Lambda(b.Xi[n]), b.Xi[n]
				bound += y[n]*m/2 - λ*(a+m*m) + logistic.LogSigmoid(ξ) - ξ/2 + λ*ξ*ξ // E of (10)
			}
			lg := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
			for j := range 3 {
				i := j
				if !cfg.ARD {
					i = 0
				}
				mean := mathext.Digamma(b.AN) - math.Log(b.BN[i])
				bound += 0.5*mean - 0.5*math.Log(2*math.Pi) - 0.5*b.AN/b.BN[i]*(b.mean[j]*b.mean[j]+v.At(j, j)) // (26)
				if j == i {
					bound += -lg(a0) + a0*math.Log(b0) + (a0-1)*mean - b0*b.AN/b.BN[i]             // (27)
					bound -= -lg(b.AN) + (b.AN-1)*mathext.Digamma(b.AN) + math.Log(b.BN[i]) - b.AN // (29)
				}
			}
			if relative(b.Bound, bound) > 1e-12 {
				t.Errorf("%s after %d iterations: bound %v, by its expectations %v", name(cfg), b.Iterations, b.Bound, bound)
			}
			if b.Trace[len(b.Trace)-1] != b.Bound || len(b.Trace) != b.Iterations {
				t.Errorf("%s: %d entries in the trace of %d iterations, the last %v, bound %v",
					name(cfg), len(b.Trace), b.Iterations, b.Trace[len(b.Trace)-1], b.Bound)
			}
		}
	}
}

// The bound never falls, at no step, and ends where no ξ moves.
func TestBatchBoundNeverFalls(t *testing.T) {
	for seed := range uint64(12) {
		dim := 1 + int(seed)%5
		x, y := events(40+seed, dim, 8+20*int(seed))
		for _, cfg := range hyperpriors {
			cfg.MaxIterations = 3000
			b := mustFit(t, x, y, cfg)
			for i := 1; i < len(b.Trace); i++ {
				if b.Trace[i] < b.Trace[i-1] {
					t.Errorf("seed %d %s: the bound falls from %v to %v in iteration %d", seed, name(cfg), b.Trace[i-1], b.Trace[i], i+1)
				}
			}
		}
	}
}

// Reference: eqs. 5 and 30, 50: the bound is below the log evidence, got by
// quadrature over β in one and two dimensions with α integrated out: given the
// hyperprior, β is Student's t.
func TestBatchBoundIsBelowTheEvidence(t *testing.T) {
	lg := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	// ln ∫ N(w | 0, α⁻¹I) Gam(α | a0, b0) dα for w of d entries with square s.
	student := func(s, a0, b0, d float64) float64 {
		return lg(a0+d/2) - lg(a0) + a0*math.Log(b0) - d/2*math.Log(2*math.Pi) - (a0+d/2)*math.Log(b0+s/2)
	}
	for _, dim := range []int{1, 2} {
		for _, n := range []int{3, 20} {
			x, y := events(uint64(50+n), dim, n)
			// Both labels at one x, so that the likelihood falls in every direction.
			for j := range dim {
				e := make([]float64, dim)
				e[j] = 1
				x, y = append(x, e, e), append(y, 1, -1)
			}
			likelihood := func(w ...float64) float64 {
				sum := 0.0
				for n := range x {
					sum += logistic.LogSigmoid(y[n] * triangle.InOrder(w, x[n]))
				}
				return sum
			}
			for _, cfg := range hyperpriors {
				a0, b0 := cfg.A0, cfg.B0
				if a0 == 0 {
					a0, b0 = 1e-2, 1e-4
				}
				// Weights run over ±e^t: the t is peaked at 0 and heavy far out.
				const lo, hi, step = -16.0, 6.0, 0.1
				evidence := 0.0
				for t := lo; t < hi; t += step {
					for _, sign := range []float64{-1, 1} {
						w := sign * math.Exp(t)
						if dim == 1 {
							evidence += step * math.Exp(t+likelihood(w)+student(w*w, a0, b0, 1))
							continue
						}
						for t2 := lo; t2 < hi; t2 += step {
							for _, sign2 := range []float64{-1, 1} {
								w2 := sign2 * math.Exp(t2)
								prior := student(w*w+w2*w2, a0, b0, 2)
								if cfg.ARD {
									prior = student(w*w, a0, b0, 1) + student(w2*w2, a0, b0, 1)
								}
								if prior+t+t2 < -60 {
									continue
								}
								evidence += step * step * math.Exp(t+t2+likelihood(w, w2)+prior)
							}
						}
					}
				}
				truth := math.Log(evidence)
				b := mustFit(t, x, y, cfg)
				if b.Bound > truth {
					t.Errorf("d=%d n=%d %s: bound %v above the log evidence %v", dim, len(x), name(cfg), b.Bound, truth)
				}
				if truth-b.Bound > 3+0.05*float64(n) {
					t.Errorf("d=%d n=%d %s: bound %v far below the log evidence %v", dim, len(x), name(cfg), b.Bound, truth)
				}
			}
		}
	}
}

// Reference: the paper's section on ARD: inputs that are pure noise get a large
// α and no weight, those that matter keep theirs.
func TestARDSwitchesNoiseOff(t *testing.T) {
	const dim, relevant = 12, 4
	s := newStream(60, dim)
	for j := relevant; j < dim; j++ {
		s.w[j] = 0
	}
	s.w[0], s.w[1], s.w[2], s.w[3] = 0.7, -2, 1.5, 1
	var x [][]float64
	var y []float64
	for range 1500 {
		xn, yn, _ := s.next()
		x, y = append(x, xn), append(y, yn)
	}
	b, plain := mustFit(t, x, y, Config{ARD: true, MaxIterations: 5000}), mustFit(t, x, y, Config{})
	for j := range dim {
		α, w := b.EAlpha[j], b.mean[j]
		switch {
		case j < relevant && (α > 10 || math.Abs(w-s.w[j]) > 0.4):
			t.Errorf("input %d, of weight %v, has α = %v and weight %v", j, s.w[j], α, w)
		case j >= relevant && (α < 50 || math.Abs(w) > 0.8*math.Abs(plain.mean[j])):
			t.Errorf("input %d, pure noise, has α = %v and weight %v, without ARD %v", j, α, w, plain.mean[j])
		}
	}
}

// Degenerate events get an answer.
func TestBatchDegenerate(t *testing.T) {
	for name, c := range map[string]struct {
		x [][]float64
		y []float64
	}{
		"one event":         {[][]float64{{1, 2}}, []float64{1}},
		"one class":         {[][]float64{{1, 2}, {1, -1}, {1, 0.3}}, []float64{-1, -1, -1}},
		"zeros":             {[][]float64{{0, 0}, {0, 0}}, []float64{1, -1}},
		"duplicate rows":    {[][]float64{{1, 2}, {1, 2}, {1, 2}}, []float64{1, 1, 1}},
		"duplicate columns": {[][]float64{{1, 1}, {2, 2}, {-1, -1}}, []float64{1, 1, -1}},
		"contradiction":     {[][]float64{{1}, {1}}, []float64{1, -1}},
		"±800":              {[][]float64{{800, 1}, {-800, 1}, {800, -1}}, []float64{1, -1, 1}},
		"scales":            {[][]float64{{1e6, 1e-6}, {-1e6, 1e-6}, {1e5, -1e-6}, {1, 1}}, []float64{1, -1, -1, 1}},
	} {
		for _, cfg := range hyperpriors {
			cfg.MaxIterations = 2000
			b := mustFit(t, c.x, c.y, cfg)
			for _, v := range append(append([]float64{b.Bound, b.LogDetV}, b.mean...), b.EAlpha...) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: %+v", name, b)
				}
			}
			for n := range c.x {
				if p := b.Prob(c.x[n]); !(p >= 0 && p <= 1) {
					t.Errorf("%s: probability %v", name, p)
				}
			}
		}
	}
}

func TestBatchRefuses(t *testing.T) {
	ctx := t.Context()
	for want, f := range map[string]func() error{
		"0 events": func() error { _, err := Fit(ctx, nil, nil, Config{}); return err },
		"2 labels": func() error { _, err := Fit(ctx, [][]float64{{1}}, []float64{1, 1}, Config{}); return err },
		"event 1 has 1": func() error {
			_, err := Fit(ctx, [][]float64{{1, 2}, {1}}, []float64{1, 1}, Config{})
			return err
		},
		"input 0 of event 0 is NaN": func() error {
			_, err := Fit(ctx, [][]float64{{math.NaN()}}, []float64{1}, Config{})
			return err
		},
		"label 0 is 0": func() error { _, err := Fit(ctx, [][]float64{{1}}, []float64{0}, Config{}); return err },
		"b0 -1":        func() error { _, err := Fit(ctx, [][]float64{{1}}, []float64{1}, Config{B0: -1}); return err },
		"a0 NaN": func() error {
			_, err := Fit(ctx, [][]float64{{1}}, []float64{1}, Config{A0: math.NaN(), Tolerance: -1})
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Fit(cancelled, [][]float64{{1}}, []float64{1}, Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// Reference: mpmath's loggamma at 30 digits.
func TestLogGamma(t *testing.T) {
	for _, row := range [][2]float64{
		{1e-2, 4.5994798780420217}, {1e-4, 9.2102826586339622}, {0.51, 0.55297381792980072}, {1, 0}, {2, 0},
		{1.01, -0.0056903079460696505}, {12, 17.502307845873886}, {28.51, 66.252501195306904},
		{512.01, 2679.8845205765063}, {1e6, 12815504.569147612}, {1e-300, 690.77552789821371},
	} {
		if got := logGamma(row[0]); math.Abs(got-row[1]) > 2e-14+4e-16*math.Abs(row[1]) {
			t.Errorf("ln Γ(%v) = %v, want %v", row[0], got, row[1])
		}
	}
}

func TestGaussian(t *testing.T) {
	v := mat.NewSymDense(2, []float64{2, -0.5, -0.5, 1})
	g, err := NewGaussian([]float64{1, -1}, v)
	if err != nil {
		t.Fatal(err)
	}
	if m, a := g.Moments([]float64{2, 3}); m != -1 || a != 2*4+9-0.5*12 {
		t.Errorf("moments N(%v, %v), want N(-1, 11)", m, a)
	}
	if p := g.Prob([]float64{0, 0}); p != 0.5 {
		t.Errorf("probability at 0 is %v", p)
	}
	if _, err := NewGaussian([]float64{1, 0}, mat.NewSymDense(2, []float64{1, 1, 1, 1})); err != nil {
		t.Errorf("a singular covariance is refused: %v", err)
	}
	if _, err := NewGaussian([]float64{1, 0}, mat.NewSymDense(2, []float64{0, 0, 0, 1})); err != nil {
		t.Errorf("a weight without variance is refused: %v", err)
	}
	for want, c := range map[string]struct {
		w []float64
		v *mat.SymDense
	}{
		"3 weights":                 {[]float64{1, 2, 3}, v},
		"weight 1 is NaN":           {[]float64{1, math.NaN()}, v},
		"covariance of inputs 0":    {[]float64{1, 2}, mat.NewSymDense(2, []float64{1, math.Inf(1), math.Inf(1), 1})},
		"not positive semidefinite": {[]float64{1, 2}, mat.NewSymDense(2, []float64{1, 1.001, 1.001, 1})},
		"variance of input 0 is -1": {[]float64{1, 2}, mat.NewSymDense(2, []float64{-1, 0, 0, 1})},
		"but no variance":           {[]float64{1, 2}, mat.NewSymDense(2, []float64{0, 0.1, 0.1, 1})},
	} {
		if _, err := NewGaussian(c.w, c.v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// Far out only m/√a matters, also beyond the range of either.
func TestGaussianFarOut(t *testing.T) {
	for _, c := range []struct{ w, v float64 }{{1, 1e-4}, {1, 1}, {-1, 4}, {1e-60, 1e-120}, {1, 0}, {0, 1}} {
		g, err := NewGaussian([]float64{c.w}, mat.NewSymDense(1, []float64{c.v}))
		if err != nil {
			t.Fatal(err)
		}
		want := 0.5 * math.Erfc(-c.w/math.Sqrt(2*c.v))
		sizes := []float64{1e100, 1e155, 1e160, 1e300, math.MaxFloat64}
		if c.w == 1e-60 {
			sizes = sizes[1:]
		}
		for _, x := range sizes {
			m, a := g.Moments([]float64{x})
			p := Predict(m, a, 0.9)
			for what, got := range map[string]float64{"Prob": g.Prob([]float64{x}), "Exact": p.Exact} {
				if math.Abs(got-want) > 1e-12 {
					t.Errorf("N(%v, %v), x=%v: %s %v, want %v; moments %v, %v", c.w, c.v, x, what, got, want, m, a)
				}
			}
			for _, v := range []float64{p.BoundPlus, p.BoundMinus, p.Normalised, p.Probit, p.Lo, p.Hi} {
				if !(v >= 0 && v <= 1) {
					t.Errorf("N(%v, %v), x=%v: %+v", c.w, c.v, x, p)
				}
			}
		}
	}
}

// An event of weight k is an event that stands there k times, and weights of 1 change no
// bit.
func TestBatchWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 1))
	var x, repeated [][]float64
	var y, again, ω []float64
	for range 40 {
		row := []float64{1, r.NormFloat64(), r.NormFloat64()}
		label := math.Copysign(1, row[1]-0.5*row[2]+r.NormFloat64())
		k := 1 + r.IntN(3)
		x, y, ω = append(x, row), append(y, label), append(ω, float64(k))
		for range k {
			repeated, again = append(repeated, row), append(again, label)
		}
	}
	ones := make([]float64, len(y))
	for i := range ones {
		ones[i] = 1
	}
	for _, ard := range []bool{false, true} {
		fit := func(x [][]float64, y, ω []float64) *Batch {
			b, err := Fit(t.Context(), x, y, Config{ARD: ard, Weights: ω})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		got, want := fit(x, y, ω), fit(repeated, again, nil)
		if math.Abs(got.Bound-want.Bound) > 1e-9 || math.Abs(got.LogDetV-want.LogDetV) > 1e-9 {
			t.Errorf("ARD %v: bound %v and ln|V| %v, repeated %v and %v", ard, got.Bound, got.LogDetV, want.Bound, want.LogDetV)
		}
		for j := range got.mean {
			if math.Abs(got.mean[j]-want.mean[j]) > 1e-9 {
				t.Errorf("ARD %v: w %v, repeated %v", ard, got.mean, want.mean)
			}
		}
		if one, none := fit(x, y, ones), fit(x, y, nil); one.Bound != none.Bound || !slices.Equal(one.mean, none.mean) || !slices.Equal(one.Xi, none.Xi) {
			t.Errorf("ARD %v: weights of 1 change bits", ard)
		}
	}
	for _, bad := range [][]float64{{1}, append(slices.Clone(ω[1:]), 0), append(slices.Clone(ω[1:]), math.Inf(1))} {
		if _, err := Fit(t.Context(), x, y, Config{Weights: bad}); err == nil {
			t.Errorf("weights %v have no error", bad)
		}
	}
}
