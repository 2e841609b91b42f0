package review

import (
	"fmt"
	"math"

	"hamlet/algos/blr"
	"hamlet/algos/internal/logistic"
	"hamlet/algos/internal/triangle"
)

// A Region is the region of interest of MacKay (1992, Information-based objective functions
// for active data selection): the inputs z about whose log-odds the belief should become
// certain, here those of recent events. It holds their second moments with weights c,
//
//	S = Σ c·zzᵀ / N,   Σ c·zᵀVz / N = tr SV,
//
// where the sum and the count N fade alike with each further event. It takes D²/2 numbers.
// It is not safe for concurrent use.
type Region struct {
	keep    float64 // ρ, what an event leaves of those before it
	count   float64 // N
	moments triangle.Matrix
	u, w    []float64 // scratch: Vx, the mean of the weights
}

// NewRegion returns an empty region of dim inputs. An event loses half its weight in
// halfLife further events; 0: never. It panics unless dim is 1 to blr.MaxDim and halfLife is 0
// or at least 1.
func NewRegion(dim int, halfLife float64) *Region {
	if dim < 1 || dim > blr.MaxDim || halfLife != 0 && !(halfLife >= 1 && halfLife <= math.MaxFloat64) {
		panic(fmt.Sprintf("review: a region of %d inputs with half-life %v", dim, halfLife))
	}
	keep := 1.0
	if halfLife != 0 {
		keep = logistic.Exp(-math.Ln2 / halfLife)
	}
	return &Region{keep: keep, moments: triangle.New(dim), u: make([]float64, dim), w: make([]float64, dim)}
}

// Add adds an event with inputs z and the weight c ≥ 0, usually [Stake]. It costs D² products.
// It panics if len(z) ≠ D or an entry is not finite. Entries beyond 2¹⁰⁰ are scaled down.
func (r *Region) Add(z []float64, c float64) {
	r.checkLength(len(z))
	if !(c >= 0 && c <= blr.MaxInput) {
		panic(fmt.Sprintf("review: an event of weight %v in a region", c))
	}
	z, _ = blr.Shortened(z)
	if r.keep != 1 {
		for i := range r.moments {
			r.moments[i] *= r.keep
		}
	}
	r.moments.AddOuter(c, z)
	r.count = float64(r.keep*r.count) + 1
}

// Fall returns how much the doubt tr SV is expected to fall if p learns the label of x. The
// doubt is the mean of c·zᵀVz over the events of r: with [Stake] as weights what a recent
// event is expected to lose in log loss, in nats, because the weights are uncertain.
//
//	Σ_y P(y)·h_y/(1 + h_y·a) · uᵀSu,   u = Vx,  a = xᵀVx,
//
// with P(y) by [blr.Predictive] and h_y the curvature of p's site for the label y of full
// trust. Rounding and a half-life of p, which lets the doubt grow, are left out. Fall is at
// least 0, and 0 for an empty region. It costs 3D²/2 products and two sites. It changes
// nothing, and panics as blr's Moments does, or if r and p have different numbers of inputs.
// If an entry of x exceeds 2¹⁰⁰, x is scaled down as by Update.
func (r *Region) Fall(p *blr.Posterior, x []float64) float64 {
	r.checkLength(p.Dim())
	r.checkLength(len(x))
	x, _ = blr.Shortened(x)
	if r.count == 0 {
		return 0
	}
	p.CovarianceMul(r.u, x)
	p.MeanTo(r.w)
	m, a := triangle.InOrder(r.w, x), max(triangle.Dot(x, r.u), 0)
	z := blr.Predictive(m, a)
	shrink := 0.0
	for _, y := range [2]float64{-1, 1} {
		h := p.Approximation().Solve(m, a, y, 1).H
		shrink += float64(logistic.Sigmoid(float64(y*z)) * (h / (1 + float64(h*a))))
	}
	return shrink * max(r.moments.Quadratic(r.u), 0) / r.count
}

func (r *Region) checkLength(n int) {
	if n != len(r.u) {
		panic(fmt.Sprintf("review: a vector of length %d in a region of %d inputs", n, len(r.u)))
	}
}

// Stake returns ½·E[σ′(z)], z ~ N(m, a), by the probit approximation: with t = km and k =
// 1/√(1+πa/8), it is ½·kσ(t)σ(−t), in [0, ⅛]. For small a it is the derivative by a of
// [blr.Information], which is what the doubt about z is expected to add to the log loss.
func Stake(m, a float64) float64 {
	const farthest = 1e140 // keeps the squares in range
	m, a = min(max(m, -farthest), farthest), min(a, farthest)
	k := 1 / math.Sqrt(1+float64(math.Pi/8*a))
	e := logistic.Exp(-math.Abs(float64(k * m)))
	return float64(0.5*k) * (e / float64((1+e)*(1+e)))
}
