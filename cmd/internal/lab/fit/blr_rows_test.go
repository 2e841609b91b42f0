package fit

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// Reference: Drugowitsch eqs. 31, 35; Lambert, Bonnabel and Bach 2022, theorem 1.
func TestSiteEqualsItsDefinition(t *testing.T) {
	for _, m := range []float64{-40, -3, -0.2, 0, 0.7, 5, 40} {
		for _, a := range []float64{0, 1e-8, 0.3, 2, 50} {
			for _, y := range []float64{-1, 1} {
				t.Run(fmt.Sprintf("m=%v,a=%v,y=%v", m, a, y), func(t *testing.T) {
					r := reply[blrSiteReply](t, requestLine(t, "blr.site", "m", m, "a", a, "y", y))
					λ := lambdaOf(r.Xi)
					q := 1 + 2*λ*a
					near(t, "xi", r.Xi, math.Sqrt(a/q+math.Pow((m+y*a/2)/q, 2)), 1e-10)
					near(t, "lambda", r.Lambda, λ, 1e-12)
					bound := func(z float64) float64 {
						return math.Exp(logSigma(r.Xi) + (y*z-r.Xi)/2 - λ*(z*z-r.Xi*r.Xi))
					}
					near(t, "exp log_bound", math.Exp(r.LogBound), expect(m, a, bound), 1e-10)
					if truth := math.Log(expect(m, a, func(z float64) float64 { return sigma(y * z) })); r.LogBound > truth+1e-11*(1-truth) {
						t.Errorf("log_bound %v is above ln p(y) = %v", r.LogBound, truth)
					}
					mean, v := m+a*r.RVGAR, a/(1+a*r.RVGAH)
					near(t, "rvga_r", r.RVGAR, (1+y)/2-expect(mean, v, sigma), 1e-9)
					near(t, "rvga_h", r.RVGAH, expect(mean, v, func(u float64) float64 { return sigma(u) * sigma(-u) }), 1e-9)
				})
			}
		}
	}
}

// Reference: eqs. 51–56 and 60 with matrices and an inverse for every event.
func TestIncrementalEqualsTheMatrices(t *testing.T) {
	for _, d := range []int{1, 3, 6} {
		x, y := sample(uint64(d), 40, d)
		for _, c := range []struct {
			name   string
			fields []any
			rule   func(int, float64, float64, float64, float64) bool
			prior  float64
		}{
			{"fixed point", nil, fixedPoint, float64(d)},
			{"fixed point, precision 0.5", []any{"prior_precision", 0.5}, fixedPoint, 0.5},
			{"fixed point, in blocks", []any{"block", 7}, fixedPoint, float64(d)},
			{"fixed point, one block", []any{"block", 1000}, fixedPoint, float64(d)},
			{"the paper's rule, in blocks", []any{"xi_tolerance", 1e-5, "block", 16}, paperRule(1e-5), float64(d)},
			{"the paper's rule", []any{"xi_tolerance", 1e-5}, paperRule(1e-5), float64(d)},
			{"a coarse rule", []any{"xi_tolerance", 0.1}, paperRule(0.1), float64(d)},
		} {
			t.Run(fmt.Sprintf("%s,d=%d", c.name, d), func(t *testing.T) {
				r := reply[blrIncrementalReply](t, requestLine(t, "blr.incremental", append([]any{"x", x, "y", y, "x_test", x[:3]}, c.fields...)...))
				g, terms := prior(d, c.prior), 0.0
				first := g.energy()
				for n := range x {
					var ξ float64
					g, ξ = g.learn(x[n], y[n], c.rule)
					terms += logSigma(ξ) - ξ/2 + lambdaOf(ξ)*ξ*ξ
					near(t, fmt.Sprintf("xi[%d]", n), r.Xi[n], ξ, 1e-9)
					near(t, fmt.Sprintf("log_det_v[%d]", n), r.LogDetV[n], g.logDetV(), 1e-10)
					near(t, fmt.Sprintf("log_evidence[%d]", n), r.LogEvidence[n], g.energy()-first+terms, 1e-9)
					nearAll(t, fmt.Sprintf("w_trace[%d]", n), r.WTrace[n], g.w, 1e-9)
				}
				nearAll(t, "w", r.W, g.w, 1e-9)
				nearAll(t, "eta", r.Eta, g.eta, 1e-12)
				nearMatrix(t, "v", r.V, g.v, 1e-9)
				nearMatrix(t, "precision", r.Precision, g.lambda, 1e-9)
				if r.RVGAH != nil || r.RVGAR != nil {
					t.Error("a reply with the sites of R-VGA")
				}
				p := reply[pTest](t, requestLine(t, "blr.incremental", append([]any{"x", x, "y", y, "x_test", x[:3]}, c.fields...)...))
				for i := range p.P {
					near(t, fmt.Sprintf("p_test[%d]", i), p.P[i], g.exactOf(x[i]), 1e-9)
				}
			})
		}
	}
}

type pTest struct {
	P []float64 `json:"p_test"`
}

// Reference: the site's definition. h and r must satisfy it at every event, with moments
// computed by an inverse.
func TestIncrementalRVGAIsItsDefinition(t *testing.T) {
	const d = 4
	x, y := sample(9, 40, d)
	for _, block := range []int{1, 16} {
		r := reply[blrIncrementalReply](t, requestLine(t, "blr.incremental", "x", x, "y", y, "site", "rvga", "prior_precision", 1, "block", block))
		g, evidence := prior(d, 1), 0.0
		for n := range x {
			m, a := g.moments(x[n])
			h, step := r.RVGAH[n], r.RVGAR[n]
			mean, v := m+a*step, a/(1+a*h)
			near(t, fmt.Sprintf("rvga_r[%d]", n), step, (1+y[n])/2-expect(mean, v, sigma), 1e-9)
			near(t, fmt.Sprintf("rvga_h[%d]", n), h, expect(mean, v, func(u float64) float64 { return sigma(u) * sigma(-u) }), 1e-9)
			before := g
			g = g.plus(x[n], h, step+h*mean)
			evidence += expect(mean, v, func(u float64) float64 { return logSigma(y[n] * u) }) - g.divergence(before)
			near(t, fmt.Sprintf("log_evidence[%d]", n), r.LogEvidence[n], evidence, 1e-9)
			near(t, fmt.Sprintf("log_det_v[%d]", n), r.LogDetV[n], g.logDetV(), 1e-10)
			nearAll(t, fmt.Sprintf("w_trace[%d]", n), r.WTrace[n], g.w, 1e-9)
		}
		nearMatrix(t, "v", r.V, g.v, 1e-9)
		nearMatrix(t, "precision", r.Precision, g.lambda, 1e-9)
		nearAll(t, "eta", r.Eta, g.eta, 1e-9)
		if r.Xi != nil {
			t.Error("a reply of R-VGA with xi")
		}
	}
}

// slowBatch iterates eqs. 15, 16, 20–23 and 31, or 42–45, with matrices.
func slowBatch(x [][]float64, y []float64, a0, b0, tolerance float64, ard bool) (g *gauss, eα, bN, ξ, trace []float64) {
	d := len(x[0])
	lnΓ := func(v float64) float64 { l, _ := math.Lgamma(v); return l }
	aN := a0 + float64(d)/2
	if ard {
		aN = a0 + 0.5
	}
	eα, bN, ξ = make([]float64, d), make([]float64, d), make([]float64, len(x))
	for j := range eα {
		eα[j] = a0 / b0
	}
	fit := func() {
		g = &gauss{lambda: mat.NewDense(d, d, nil), eta: make([]float64, d)}
		for j := range d {
			g.lambda.Set(j, j, eα[j])
		}
		for n := range x {
			for i := range d {
				g.eta[i] += y[n] / 2 * x[n][i]
				for j := range d {
					g.lambda.Set(i, j, g.lambda.At(i, j)+2*lambdaOf(ξ[n])*x[n][i]*x[n][j])
				}
			}
		}
		g.solved()
	}
	for fit(); ; {
		moved := 0.0
		for n := range x {
			m, a := g.moments(x[n])
			next := math.Sqrt(a + m*m)
			moved = math.Max(moved, math.Abs(next-ξ[n]))
			ξ[n] = next
		}
		all := 0.0
		for j := range d {
			bN[j] = g.w[j]*g.w[j] + g.v.At(j, j)
			all += bN[j]
		}
		for j := range d {
			if !ard {
				bN[j] = all
			}
			bN[j] = b0 + 0.5*bN[j]
			eα[j] = aN / bN[j]
		}
		fit()
		bound := g.energy()
		for n := range x {
			bound += logSigma(ξ[n]) - ξ[n]/2 + lambdaOf(ξ[n])*ξ[n]*ξ[n]
		}
		for j := range d {
			if j == 0 || ard {
				bound += -lnΓ(a0) + a0*math.Log(b0) - b0*aN/bN[j] - aN*math.Log(bN[j]) + lnΓ(aN) + aN
			}
		}
		trace = append(trace, bound)
		if moved < tolerance {
			return g, eα, bN, ξ, trace
		}
	}
}

// Reference: eqs. 15–31 iterated in the order of the contract.
func TestBatchEqualsTheMatrices(t *testing.T) {
	x, y := sample(3, 60, 3)
	for _, c := range []struct {
		fields []any
		a0, b0 float64
		tol    float64
	}{
		{[]any{}, 1e-2, 1e-4, 1e-11},
		{[]any{"a0", 2, "b0", 0.5, "tolerance", 1e-6}, 2, 0.5, 1e-6},
	} {
		r := reply[blrBatchReply](t, requestLine(t, "blr.batch", append([]any{"x", x, "y", y}, c.fields...)...))
		g, eα, bN, ξ, trace := slowBatch(x, y, c.a0, c.b0, c.tol, false)
		nearAll(t, "w", r.W, g.w, 1e-8)
		nearMatrix(t, "v", r.V, g.v, 1e-8)
		near(t, "log_det_v", r.LogDetV, g.logDetV(), 1e-8)
		near(t, "e_alpha", r.EAlpha, eα[0], 1e-8)
		near(t, "a_n", r.AN, c.a0+1.5, 1e-14)
		near(t, "b_n", r.BN, bN[0], 1e-8)
		near(t, "bound", r.Bound, trace[len(trace)-1], 1e-10)
		nearAll(t, "xi", r.Xi, ξ, 1e-8)
		if d := r.Iterations - len(trace); d < -1 || d > 1 { // rounding may decide the last
			t.Errorf("%d iterations, the plain way takes %d", r.Iterations, len(trace))
		}
		n := min(len(trace), len(r.BoundTrace))
		nearAll(t, "bound_trace", r.BoundTrace[:n], trace[:n], 1e-10)
		if len(r.BoundTrace) != r.Iterations {
			t.Errorf("bound_trace has %d entries after %d iterations", len(r.BoundTrace), r.Iterations)
		}
	}
}

// Reference: eqs. 42–50.
func TestARDEqualsTheMatrices(t *testing.T) {
	x, y := sample(4, 80, 3)
	for i := range x { // noise that should be switched off
		x[i] = append(x[i], math.Sin(float64(i*i)))
	}
	const a0, b0, tol = 1e-2, 1e-4, 1e-8
	r := reply[blrARDReply](t, requestLine(t, "blr.ard", "x", x, "y", y, "tolerance", tol))
	g, eα, bN, ξ, trace := slowBatch(x, y, a0, b0, tol, true)
	nearAll(t, "w", r.W, g.w, 1e-6)
	nearMatrix(t, "v", r.V, g.v, 1e-6)
	nearAll(t, "e_alpha", r.EAlpha, eα, 1e-5)
	near(t, "a_n", r.AN, a0+0.5, 1e-14)
	nearAll(t, "b_n", r.BN, bN, 1e-6)
	near(t, "bound", r.Bound, trace[len(trace)-1], 1e-9)
	nearAll(t, "xi", r.Xi, ξ, 1e-6)
	if math.Abs(r.W[3]) > 0.3 || r.EAlpha[3] < 5*max(r.EAlpha[0], r.EAlpha[1], r.EAlpha[2]) {
		t.Errorf("the input of noise is on: w %v, e_alpha %v", r.W, r.EAlpha)
	}
}

// Reference: eq. 35 as an integral, and the definition of each approximation.
func TestPredictEqualsTheIntegrals(t *testing.T) {
	w := []float64{0.5, -1}
	v := [][]float64{{2, 0.3}, {0.3, 1}}
	x := [][]float64{{1, 0}, {0, 0}, {3, -2}, {-10, 4}, {0.1, 0.1}}
	r := reply[blrPredictReply](t, requestLine(t, "blr.predict", "w", w, "v", v, "x_test", x))
	p := reply[pTest](t, requestLine(t, "blr.predict", "w", w, "v", v, "x_test", x))
	for i, row := range x {
		m := dotOf(w, row)
		a := v[0][0]*row[0]*row[0] + 2*v[0][1]*row[0]*row[1] + v[1][1]*row[1]*row[1]
		at := func(name string) string { return fmt.Sprintf("%s[%d]", name, i) }
		bounds := []float64{0, 0}
		for k, y := range []float64{1, -1} {
			ξ := 0.0
			for range 3000 {
				q := 1 + 2*lambdaOf(ξ)*a
				ξ = math.Sqrt(a/q + math.Pow((m+y*a/2)/q, 2))
			}
			bounds[k] = expect(m, a, func(z float64) float64 {
				return math.Exp(logSigma(ξ) + (y*z-ξ)/2 - lambdaOf(ξ)*(z*z-ξ*ξ))
			})
		}
		near(t, at("bound_plus"), r.BoundPlus[i], bounds[0], 1e-10)
		near(t, at("bound_minus"), r.BoundMinus[i], bounds[1], 1e-10)
		near(t, at("normalised"), r.Normalised[i], bounds[0]/(bounds[0]+bounds[1]), 1e-10)
		near(t, at("probit"), r.Probit[i], sigma(m/math.Sqrt(1+math.Pi*a/8)), 1e-14)
		near(t, at("exact"), r.Exact[i], expect(m, a, sigma), 1e-10)
		near(t, at("p_test"), p.P[i], r.Exact[i], 0)
		near(t, at("interval_lo"), r.IntervalLo[i], sigma(m-1.959963984540054*math.Sqrt(a)), 1e-14)
		near(t, at("interval_hi"), r.IntervalHi[i], sigma(m+1.959963984540054*math.Sqrt(a)), 1e-14)
	}
}

// Merged parts have Λ₀ + Σ(Λₖ − Λ₀), for any number of parts.
func TestMergeAddsNaturalParameters(t *testing.T) {
	x, y := sample(5, 30, 3)
	for _, cuts := range [][]int{{}, {10}, {1, 2, 29}} {
		r := reply[blrMergeReply](t, requestLine(t, "blr.merge", "x", x, "y", y, "cuts", cuts))
		sum := prior(3, 3)
		for k, first := range append([]int{0}, cuts...) {
			last := len(x)
			if k < len(cuts) {
				last = cuts[k]
			}
			part := prior(3, 3)
			for n := first; n < last; n++ {
				part, _ = part.learn(x[n], y[n], fixedPoint)
			}
			for i := range 3 {
				sum.eta[i] += part.eta[i]
				for j := range 3 {
					sum.lambda.Set(i, j, sum.lambda.At(i, j)+part.lambda.At(i, j)-prior(3, 3).lambda.At(i, j))
				}
			}
		}
		sum.solved()
		nearAll(t, "w", r.W, sum.w, 1e-10)
		nearAll(t, "eta", r.Eta, sum.eta, 1e-12)
		nearMatrix(t, "v", r.V, sum.v, 1e-10)
		nearMatrix(t, "precision", r.Precision, sum.lambda, 1e-10)
	}
}

// Withdrawing a site subtracts it; the receipt reports the change.
func TestUnlearnSubtractsSites(t *testing.T) {
	const d = 3
	x, y := sample(6, 30, d)
	for _, forget := range [][]int{{}, {0}, {29, 3, 17}} {
		r := reply[blrUnlearnReply](t, requestLine(t, "blr.unlearn", "x", x, "y", y, "forget", forget, "prior_precision", 2))
		g, ξ := prior(d, 2), make([]float64, len(x))
		for n := range x {
			g, ξ[n] = g.learn(x[n], y[n], fixedPoint)
		}
		if len(r.Receipts) != len(forget) {
			t.Fatalf("%d receipts for %d events", len(r.Receipts), len(forget))
		}
		for k, n := range forget {
			after := g.plus(x[n], -2*lambdaOf(ξ[n]), -y[n]/2)
			if r.Receipts[k].Index != n {
				t.Errorf("receipt %d is of event %d, want %d", k, r.Receipts[k].Index, n)
			}
			near(t, fmt.Sprintf("receipts[%d].xi", k), r.Receipts[k].Xi, ξ[n], 1e-10)
			near(t, fmt.Sprintf("receipts[%d].kl", k), r.Receipts[k].KL, g.divergence(after), 1e-9)
			g = after
		}
		nearAll(t, "w", r.W, g.w, 1e-9)
		nearMatrix(t, "v", r.V, g.v, 1e-9)
	}
}
