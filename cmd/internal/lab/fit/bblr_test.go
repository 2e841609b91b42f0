package fit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// The oracles of the bblr rows are equations 16 to 44 as printed, with misprints
// corrected, computed directly by the standard library's functions.

// bblrLossOf is equation 39 with μ = a + bσ(γ·score).
func bblrLossOf(mix, theta, gamma, lambda float64, scores, y, w []float64) float64 {
	loss := 0.0
	for i, z := range scores {
		μ := mix*theta + (1-mix)*sigma(gamma*z)
		if y[i] < 0 {
			μ = 1 - μ
		}
		loss -= math.Log(μ)
	}
	for _, v := range w {
		loss += lambda / 2 * v * v
	}
	return loss
}

func bblrScores(x [][]float64, w []float64) []float64 {
	z := make([]float64, len(x))
	for i, row := range x {
		for j, v := range row {
			z[i] += v * w[j]
		}
	}
	return z
}

func bblrEqual(got, want float64) bool { return math.Abs(got-want) <= 1e-9*(1+math.Abs(want)) }

// bblrSlope is the derivative of f at 0 by differences, to about 1e-10.
func bblrSlope(f func(t float64) float64) float64 {
	const h = 1e-4
	return (8*(f(h)-f(-h)) - (f(2*h) - f(-2*h))) / (12 * h)
}

func bblrSample(seed uint64, n, d int) (x [][]float64, y, w []float64) {
	r := rand.New(rand.NewPCG(seed, 5))
	w = make([]float64, d)
	for j := range w {
		w[j] = r.NormFloat64()
	}
	for range n {
		row := make([]float64, d)
		for j := range row {
			row[j] = r.NormFloat64()
		}
		x = append(x, row)
	}
	for _, z := range bblrScores(x, w) {
		y = append(y, math.Copysign(1, z+r.NormFloat64()))
	}
	return x, y, w
}

func TestBBLRLoss(t *testing.T) {
	const α, β, n, γ, λ = 3.0, 5.0, 12.0, 1.5, 0.25
	const mix, theta = (α + β) / (α + β + n), α / (α + β)
	x, y, w := bblrSample(1, 20, 3)
	r := reply[bblrLossReply](t, requestLine(t, "bblr.loss", "x", x, "y", y, "w", w,
		"alpha", α, "beta", β, "n", n, "gamma", γ, "lambda", λ))
	if !bblrEqual(r.Mix, mix) || !bblrEqual(r.Theta, theta) || !bblrEqual(r.A, mix*theta) || !bblrEqual(r.B, 1-mix) {
		t.Errorf("a, b, mix, theta are %v, %v, %v, %v", r.A, r.B, r.Mix, r.Theta)
	}
	z := bblrScores(x, w)
	if want := bblrLossOf(mix, theta, γ, λ, z, y, w); !bblrEqual(r.Loss, want) {
		t.Errorf("loss %v, want %v", r.Loss, want)
	}
	for i := range x {
		if want := mix*theta + (1-mix)*sigma(γ*z[i]); !bblrEqual(r.P[i], want) {
			t.Errorf("p of row %d is %v, want %v", i, r.P[i], want)
		}
	}
	for j := range w {
		want := bblrSlope(func(t float64) float64 {
			moved := slices.Clone(w)
			moved[j] += t
			return bblrLossOf(mix, theta, γ, λ, bblrScores(x, moved), y, moved)
		})
		if math.Abs(r.Grad[j]-want) > 1e-7*(1+math.Abs(want)) {
			t.Errorf("grad[%d] is %v, want %v", j, r.Grad[j], want)
		}
	}
	for name, c := range map[string]struct{ got, want float64 }{
		"mix":   {r.HyperGrad.Mix, bblrSlope(func(t float64) float64 { return -bblrLossOf(mix+t, theta, γ, 0, z, y, w) })},
		"theta": {r.HyperGrad.Theta, bblrSlope(func(t float64) float64 { return -bblrLossOf(mix, theta+t, γ, 0, z, y, w) })},
		"gamma": {r.HyperGrad.Gamma, bblrSlope(func(t float64) float64 { return -bblrLossOf(mix, theta, γ+t, 0, z, y, w) })},
	} {
		if math.Abs(c.got-c.want) > 1e-7*(1+math.Abs(c.want)) {
			t.Errorf("hyper_grad %s is %v, want %v", name, c.got, c.want)
		}
	}
}

func TestBBLRKernel(t *testing.T) {
	const s2, γ, λ = 0.7, 2.0, 0.1
	x, y, _ := bblrSample(2, 12, 2)
	_, _, coef := bblrSample(3, 1, 12)
	k := make([][]float64, len(x))
	for i := range k {
		for j := range x {
			d := 0.0
			for q := range x[i] {
				d += (x[i][q] - x[j][q]) * (x[i][q] - x[j][q])
			}
			k[i] = append(k[i], math.Exp(-d/(2*s2)))
		}
	}
	r := reply[bblrKernelReply](t, requestLine(t, "bblr.kernel", "x", x, "y", y, "coef", coef,
		"bandwidth", s2, "gamma", γ, "lambda", λ))
	loss := func(a []float64) float64 { return bblrLossOf(2.0/102, 0.5, γ, λ, bblrScores(k, a), y, a) }
	if want := loss(coef); !bblrEqual(r.Loss, want) {
		t.Errorf("loss %v, want %v", r.Loss, want)
	}
	for j := range coef {
		if !bblrEqual(r.K0[j], k[0][j]) {
			t.Errorf("k0[%d] is %v, want %v", j, r.K0[j], k[0][j])
		}
		want := bblrSlope(func(t float64) float64 {
			moved := slices.Clone(coef)
			moved[j] += t
			return loss(moved)
		})
		if math.Abs(r.Grad[j]-want) > 1e-7*(1+math.Abs(want)) {
			t.Errorf("grad[%d] is %v, want %v", j, r.Grad[j], want)
		}
	}
	// The bandwidth is D if not given.
	byDefault := requestLine(t, "bblr.kernel", "x", x, "y", y, "coef", coef)
	given := requestLine(t, "bblr.kernel", "x", x, "y", y, "coef", coef, "bandwidth", 2)
	if got, want := reply[bblrKernelReply](t, byDefault), reply[bblrKernelReply](t, given); got.Loss != want.Loss {
		t.Errorf("by default %v, with bandwidth D %v", got.Loss, want.Loss)
	}
}

func TestBBLRPrior(t *testing.T) {
	const πg, σg, πl, bl = 0.3, 1.4, 0.7, 0.2
	coef := []float64{0.01, -0.3, 2.5}
	parts := func(a float64) (gauss, laplace float64) {
		return πg * math.Exp(-a*a/(2*σg*σg)) / (σg * math.Sqrt(2*math.Pi)), πl * math.Exp(-math.Abs(a)/bl) / (2 * bl)
	}
	r := reply[bblrPriorReply](t, requestLine(t, "bblr.prior", "coef", coef, "pi_g", πg, "sigma_g", σg, "pi_l", πl, "b_l", bl))
	want := 0.0
	for j, a := range coef {
		gauss, laplace := parts(a)
		want += math.Log(gauss + laplace)
		if !bblrEqual(r.ResponsibilityG[j], gauss/(gauss+laplace)) {
			t.Errorf("responsibility_g[%d] is %v, want %v", j, r.ResponsibilityG[j], gauss/(gauss+laplace))
		}
		if want := (-gauss*a/(σg*σg) - laplace*math.Copysign(1, a)/bl) / (gauss + laplace); !bblrEqual(r.Grad[j], want) {
			t.Errorf("grad[%d] is %v, want %v", j, r.Grad[j], want)
		}
	}
	if !bblrEqual(r.LogPrior, want) {
		t.Errorf("log_prior %v, want %v", r.LogPrior, want)
	}
}

// bblrRidge is L2 logistic regression by Newton's method.
func bblrRidge(t *testing.T, x [][]float64, y []float64, lambda float64) []float64 {
	t.Helper()
	d := len(x[0])
	w := make([]float64, d)
	for range 50 {
		hess, grad := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
		for j, v := range w {
			hess.SetSym(j, j, lambda)
			grad.SetVec(j, lambda*v)
		}
		for i, z := range bblrScores(x, w) {
			p := sigma(y[i] * z)
			row := mat.NewVecDense(d, slices.Clone(x[i]))
			hess.SymRankOne(hess, p*(1-p), row)
			grad.AddScaledVec(grad, -y[i]*(1-p), row)
		}
		var c mat.Cholesky
		if !c.Factorize(hess) {
			t.Fatal("the Hessian is not positive definite")
		}
		var step mat.VecDense
		if err := c.SolveVecTo(&step, grad); err != nil {
			t.Fatal(err)
		}
		for j := range w {
			w[j] -= step.AtVec(j)
		}
	}
	return w
}

// The figures of bblr.fit's reply agree with its weights. Without w0 it starts at the
// logistic regression with λ, or 1e-3 if λ is less.
func TestBBLRFit(t *testing.T) {
	x, y, _ := bblrSample(4, 60, 3)
	test, _, _ := bblrSample(5, 10, 3)
	for _, variant := range []int{1, 2, 3, 4} {
		for _, w0 := range [][]float64{nil, {1, 0, -1}} {
			for _, λ := range []float64{1e-3, 0, 0.5} {
				fields := []any{"x", x, "y", y, "variant", variant, "x_test", test, "lambda", λ}
				if w0 != nil {
					fields = append(fields, "w0", w0)
				}
				line := requestLine(t, "bblr.fit", fields...)
				r := reply[bblrFitReply](t, line)
				switch {
				case variant == 1 && (!bblrEqual(r.Mix, 2.0/102) || r.Theta != 0.5):
					t.Errorf("variant 1: mix %v, theta %v", r.Mix, r.Theta)
				case variant == 2 && (r.Mix != 0.5 || !bblrEqual(r.Theta, float64(bblrPositives(y))/60)):
					t.Errorf("variant 2: mix %v, theta %v of %d positives", r.Mix, r.Theta, bblrPositives(y))
				case variant <= 2 && (r.Gamma != 200 || r.Lambda != λ):
					t.Errorf("variant %d: gamma %v, lambda %v", variant, r.Gamma, r.Lambda)
				}
				start := w0
				if w0 == nil {
					start = bblrRidge(t, x, y, max(r.Lambda, 1e-3))
				}
				loss := func(w []float64) float64 {
					return bblrLossOf(r.Mix, r.Theta, r.Gamma, r.Lambda, bblrScores(x, w), y, w)
				}
				if want := loss(r.W); !bblrEqual(r.LossEnd, want) {
					t.Errorf("variant %v: loss_end %v, want %v", variant, r.LossEnd, want)
				}
				// The start is known to a mean gradient of 1e-8, which γ = 200 makes 1e-8 of this.
				if want := loss(start); math.Abs(r.LossStart-want) > 1e-7*want {
					t.Errorf("variant %v, lambda %v: loss_start %v, want %v", variant, λ, r.LossStart, want)
				}
				if r.LossEnd > r.LossStart {
					t.Errorf("variant %v: the loss rises from %v to %v", variant, r.LossStart, r.LossEnd)
				}
				if want := bblrErrors(bblrScores(x, r.W), y); r.Errors != want {
					t.Errorf("variant %v: %d errors, want %d", variant, r.Errors, want)
				}
				bblrTested(t, line, r, bblrScores(test, r.W))
			}
		}
	}
}

// The same for kernels. Their w is the coef of bblr.kernel; they start at 0 and stay at
// gamma_min.
func TestBBLRFitKernel(t *testing.T) {
	const s2 = 2
	x, y, _ := bblrSample(4, 60, 3)
	test, _, _ := bblrSample(5, 10, 3)
	for _, variant := range []string{"kernel", "sparse_kernel"} {
		line := requestLine(t, "bblr.fit", "x", x, "y", y, "variant", variant, "bandwidth", s2, "gamma_min", 3, "x_test", test)
		r := reply[bblrFitReply](t, line)
		loss := func(coef []float64) float64 {
			return reply[bblrKernelReply](t, requestLine(t, "bblr.kernel", "x", x, "y", y, "coef", coef, "bandwidth", s2,
				"alpha", r.Mix*r.Theta, "beta", r.Mix*(1-r.Theta), "n", 1-r.Mix, "gamma", r.Gamma, "lambda", r.Lambda)).Loss
		}
		if want := loss(r.W); !bblrEqual(r.LossEnd, want) {
			t.Errorf("%s: loss_end %v, by bblr.kernel %v", variant, r.LossEnd, want)
		}
		if want := loss(make([]float64, len(x))); !bblrEqual(r.LossStart, want) {
			t.Errorf("%s: loss_start %v, by bblr.kernel %v", variant, r.LossStart, want)
		}
		λ := 1e-3
		if variant == "sparse_kernel" {
			λ = 0
		}
		if r.Gamma != 3 || r.Lambda != λ || r.Mix != 0.5 || !bblrEqual(r.Theta, float64(bblrPositives(y))/60) {
			t.Errorf("%s: gamma %v, lambda %v, mix %v, theta %v", variant, r.Gamma, r.Lambda, r.Mix, r.Theta)
		}
		var support []int
		for i, v := range r.W {
			if v != 0 {
				support = append(support, i)
			}
		}
		if !slices.Equal(r.Support, support) || len(support) == 0 || variant == "sparse_kernel" && len(support) > 20 {
			t.Errorf("%s: support %v of coefficients %v", variant, r.Support, r.W)
		}
		scores := func(rows [][]float64) []float64 {
			f := make([]float64, len(rows))
			for i, row := range rows {
				for j, other := range x {
					square := 0.0
					for q := range row {
						square += (row[q] - other[q]) * (row[q] - other[q])
					}
					f[i] += r.W[j] * math.Exp(-square/(2*s2))
				}
			}
			return f
		}
		if want := bblrErrors(scores(x), y); r.Errors != want {
			t.Errorf("%s: %d errors, want %d", variant, r.Errors, want)
		}
		bblrTested(t, line, r, scores(test))
	}
}

// bblrTested checks p_test against a + bσ(γ·score).
func bblrTested(t *testing.T, line string, r *bblrFitReply, scores []float64) {
	t.Helper()
	p := reply[struct {
		P []float64 `json:"p_test"`
	}](t, line).P
	if len(p) != len(scores) {
		t.Fatalf("%d answers to %d rows", len(p), len(scores))
	}
	for i, z := range scores {
		if want := r.Mix*r.Theta + (1-r.Mix)*sigma(r.Gamma*z); math.Abs(p[i]-want) > 1e-9 {
			t.Errorf("p_test[%d] is %v, want %v: %.200s", i, p[i], want, line)
		}
	}
}

func bblrErrors(scores, y []float64) (wrong int) {
	for i, z := range scores {
		if y[i]*z <= 0 {
			wrong++
		}
	}
	return wrong
}

func bblrPositives(y []float64) (n int) {
	for _, v := range y {
		if v > 0 {
			n++
		}
	}
	return n
}
