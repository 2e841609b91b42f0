package blr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"hamlet/algos/lab/vblr"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// A batchRun is one fit of the batch scripts.
type batchRun struct {
	Falls    float64   // the largest fall of the bound between iterations, negative if it always rose
	Expanded float64   // the largest difference of (30) and the sum (24)
	Stop     int       // iterations until the printed rule
	Fixed    int       // iterations until no ξ changes any more
	Off      float64   // largest distance of a weight at the printed rule from the fixed point
	Bound    float64   // nats between the bounds there
	Twin     float64   // largest distance of a weight from that of vblr.Fit
	Gap      []float64 // after each of the first iterations: nats below the fixed point
	Away     []float64 // likewise, the largest distance of a weight from the fixed point
}

// batchSizes are weights and rows.
var batchSizes = [][2]int{{2, 50}, {2, 200}, {2, 1000}, {10, 50}, {10, 200}, {10, 1000}}

// batch is the fit of all rows at once.
var batch = experiment.Experiment{
	Name: "blr/batch", Title: "The batch fit, its bound and its stopping rule",
	Where: "equations 15 to 31, section Batch Posterior Update",
	Claim: "Iterating over the updates maximises the bound (30). The scripts stop when it changes by less than .001 " +
		"%, or after 100 iterations. The result approximates the posterior.",
	Cost: 14 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		const draws = 10
		all, err := experiment.Steps(ctx, r, "fit", len(batchSizes)*draws,
			func(ctx context.Context, i int) (batchRun, error) {
				size := batchSizes[i/draws]
				rng := r.Rand("rows", i)
				x, y := drawn(rng, weights(rng, size[0], 1), size[1])
				return climb(ctx, x, y, false)
			})
		if err != nil {
			return err
		}
		group := fmt.Sprintf("%d data sets", len(all))
		atMostZero(p, group, "largest fall of the bound in an iteration, nats",
			experiment.Most(all, func(b batchRun) float64 { return b.Falls }), 1e-9)
		atMostZero(p, group, "largest difference of (30) and the sum (24) of (25) to (29), nats",
			experiment.Most(all, func(b batchRun) float64 { return b.Expanded }), 1e-8)
		p.Show(group, "largest difference of a weight from vblr.Fit",
			experiment.Most(all, func(b batchRun) float64 { return b.Twin }))
		p.AtMost(group, "most iterations until the printed rule stops",
			experiment.Most(all, func(b batchRun) float64 { return float64(b.Stop) }), fmt.Sprint(printedIterations)).
			Reason = "Where rows are few and nearly separable, the bound climbs slowly for longer than that."
		climbing := chart.Chart{Title: "The bound below its plateau",
			Caption: fmt.Sprintf("Mean of %d data sets.", draws),
			X:       chart.Axis{Label: "iteration", Log: true},
			Y:       chart.Axis{Label: "nats below the plateau", Log: true, Min: experiment.End(1e-8)}}
		moving := chart.Chart{Title: "The weights before their fixed point", Caption: "The same data sets. A mark is " +
			"where the printed rule stops on average.",
			X: chart.Axis{Label: "iteration", Log: true},
			Y: chart.Axis{Label: "largest distance of a weight", Log: true, Min: experiment.End(1e-8)}}
		for k, size := range batchSizes {
			part := all[k*draws : (k+1)*draws]
			group := of(size[0], size[1])
			off, stop := experiment.Over(part, func(b batchRun) float64 { return b.Off }),
				experiment.Over(part, func(b batchRun) float64 { return float64(b.Stop) })
			p.Show(group, "printed rule: largest distance of a weight from the fixed point", off)
			if size[0] == 2 {
				continue
			}
			p.Show(group, "printed rule: iterations", stop)
			p.Show(group, "printed rule: nats below the plateau",
				experiment.Over(part, func(b batchRun) float64 { return b.Bound }))
			p.Show(group, "iterations until no ξ moves by 1e-9",
				experiment.Over(part, func(b batchRun) float64 { return float64(b.Fixed) }))
			climbing.Series = append(climbing.Series, trace(group, part, func(b batchRun) []float64 { return b.Gap }))
			moving.Series = append(moving.Series, trace(group, part, func(b batchRun) []float64 { return b.Away }),
				chart.Series{Kind: chart.Points, X: []float64{stop.Value}, Y: []float64{off.Value}})
		}
		p.Chart(climbing)
		p.Chart(moving)
		if err := againstExact(ctx, r, p); err != nil {
			return err
		}
		p.Note("A relative change of the bound depends on its size, and so on the number of rows. The weights still " +
			"move where it stops. vblr.Fit watches ξ instead.")
		return nil
	},
}

// traced is how many iterations the charts show.
const traced = 300

// climb runs the script to its fixed point.
func climb(ctx context.Context, x [][]float64, y []float64, ard bool) (b batchRun, err error) {
	s, err := newScript(x, y, ard)
	if err != nil {
		return b, err
	}
	b.Falls = math.Inf(-1)
	var bounds []float64
	var means [][]float64
	for moved := 1.0; moved > 1e-9; b.Fixed++ {
		if b.Fixed == 20_000 {
			return b, fmt.Errorf("the fit of %d rows has not converged after %d iterations", len(x), b.Fixed)
		}
		if err := ctx.Err(); err != nil {
			return b, err
		}
		before := append([]float64(nil), s.ξ...)
		if err := s.iterate(); err != nil {
			return b, err
		}
		moved = apart(before, s.ξ)
		if n := len(bounds); n > 0 {
			b.Falls = max(b.Falls, bounds[n-1]-s.bound)
			if b.Stop == 0 && math.Abs(s.bound-bounds[n-1]) < printedRule*math.Abs(s.bound) {
				b.Stop = b.Fixed + 1
			}
		}
		b.Expanded = max(b.Expanded, math.Abs(s.bound-s.expanded))
		bounds, means = append(bounds, s.bound), append(means, append([]float64(nil), s.w...))
	}
	if b.Stop == 0 {
		b.Stop = len(bounds)
	}
	b.Off, b.Bound = apart(means[b.Stop-1], s.w), s.bound-bounds[b.Stop-1]
	for i := range min(traced, len(bounds)) {
		b.Gap, b.Away = append(b.Gap, s.bound-bounds[i]), append(b.Away, apart(means[i], s.w))
	}
	fit, err := vblr.Fit(ctx, x, y, vblr.Config{ARD: ard, A0: a0, B0: b0})
	if err != nil {
		return b, err
	}
	w := make([]float64, len(s.w))
	fit.MeanTo(w)
	b.Twin = apart(w, s.w)
	return b, nil
}

// trace returns the mean over runs after each iteration. A run that has ended counts as 0.
func trace(name string, all []batchRun, of func(batchRun) []float64) chart.Series {
	s := chart.Series{Name: name, Kind: chart.Line}
	for i := range traced {
		sum := 0.0
		for _, b := range all {
			if v := of(b); i < len(v) {
				sum += math.Max(0, v[i])
			}
		}
		if mean := sum / float64(len(all)); mean > 1e-8 {
			s.X, s.Y = append(s.X, float64(i+1)), append(s.Y, mean)
		}
	}
	return s
}

// A nearness compares the variational posterior of the weights with the exact one.
type nearness struct{ Mean, SD float64 }

// againstExact adds the comparison with quadrature, for one and two weights.
func againstExact(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	const draws = 10
	sizes := []int{10, 30, 100, 300}
	narrow := chart.Chart{Title: "Standard deviation of the weights",
		Caption: fmt.Sprintf("As a part of the exact one; mean of %d data sets.", draws),
		X:       chart.Axis{Label: "rows", Log: true}, Y: chart.Axis{Label: "ratio", Min: experiment.End(0)}}
	for d := 1; d <= 2; d++ {
		all, err := experiment.Steps(ctx, r, fmt.Sprintf("exact %d", d), len(sizes)*draws,
			func(ctx context.Context, i int) (c nearness, err error) {
				x, y := mixed(r.Rand(fmt.Sprintf("exact %d", d), i), d, sizes[i/draws], 1)
				fit, err := vblr.Fit(ctx, x, y, vblr.Config{A0: a0, B0: b0})
				if err != nil {
					return c, err
				}
				truth, w := exact(x, y, a0, b0), make([]float64, d)
				fit.MeanTo(w)
				for j := range d {
					e := make([]float64, d)
					e[j] = 1
					_, variance := fit.Moments(e)
					c.Mean = max(c.Mean, math.Abs(w[j]-truth.Mean[j])/math.Sqrt(truth.Variance[j]))
					c.SD += math.Sqrt(variance/truth.Variance[j]) / float64(d)
				}
				return c, nil
			})
		if err != nil {
			return err
		}
		name := "2 weights"
		if d == 1 {
			name = "1 weight"
		}
		line := chart.Series{Name: name, Kind: chart.Line}
		for k, n := range sizes {
			part, group := all[k*draws:(k+1)*draws], fmt.Sprintf("posterior by quadrature, %s, %d rows", name, n)
			off := experiment.Over(part, func(c nearness) float64 { return c.Mean })
			p.Show(group, "mean of the largest distance of a weight, in standard deviations", off)
			experiment.Point(&line, float64(n), experiment.Over(part, func(c nearness) float64 { return c.SD }))
		}
		narrow.Series = append(narrow.Series, line)
	}
	p.Note("The text says \"approximates\" and gives no size. The rows by quadrature have no verdict.")
	p.Chart(narrow)
	return density(ctx, r, p)
}

// density draws the posterior of one weight.
func density(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	x, y := drawn(r.Rand("density", 0), []float64{0}, 20)
	for i := range x {
		x[i][0], y[i] = 1, 1
		if i%5 == 0 {
			y[i] = -1
		}
	}
	fit, err := vblr.Fit(ctx, x, y, vblr.Config{A0: a0, B0: b0})
	if err != nil {
		return err
	}
	m, a := fit.Moments([]float64{1})
	evidence := exact(x, y, a0, b0).LogEvidence
	truth := experiment.Curve("exact", -1, 4, .02, func(w float64) float64 {
		log := student([]float64{w}, a0, b0) - evidence
		for i := range x {
			log += logSigma(y[i] * w)
		}
		return math.Exp(log)
	})
	truth.Reference = true
	ours := experiment.Curve("variational", -1, 4, .02, func(w float64) float64 {
		return math.Exp(-(w-m)*(w-m)/(2*a)) / math.Sqrt(2*math.Pi*a)
	})
	p.Chart(chart.Chart{Title: "Posterior of one weight", Caption: "The only input is 1; 16 of 20 labels are +1. The " +
		"hyperprior's peak at 0 is part of the exact posterior.",
		X: chart.Axis{Label: "weight"}, Y: chart.Axis{Label: "density", Min: experiment.End(0),
			Max: experiment.End(1.2)}, Series: []chart.Series{truth, ours}})
	return nil
}

// A script is the batch fit as the text has it, with matrices: (15), (16), (20) to (23),
// (30) and (31), or with ARD (42) to (45) and (50). It is the slow twin of vblr.Fit.
type script struct {
	x   [][]float64
	y   []float64
	ard bool

	ξ        []float64
	aN       float64
	bN       []float64 // of each weight; without ARD all are equal
	w        []float64
	v        *mat.SymDense
	logDetV  float64
	bound    float64 // (30) or (50)
	expanded float64 // (24): the sum of (25) to (29), or of (46) to (49)
}

// newScript returns the fit before the first iteration: ξ = 0 and E(α) = a₀/b₀.
func newScript(x [][]float64, y []float64, ard bool) (*script, error) {
	d := len(x[0])
	s := &script{x: x, y: y, ard: ard, ξ: make([]float64, len(x)), bN: make([]float64, d), w: make([]float64, d),
		aN: a0 + float64(d)/2}
	if ard {
		s.aN = a0 + .5
	}
	for j := range s.bN {
		s.bN[j] = s.aN * b0 / a0
	}
	return s, s.solve()
}

// λ is (8)'s λ(ξ), and 1/8 at 0.
func λ(ξ float64) float64 {
	if ξ < 1e-4 {
		return .125 - ξ*ξ/96
	}
	return math.Tanh(ξ/2) / (4 * ξ)
}

// solve sets V and w, (15) and (16).
func (s *script) solve() error {
	d := len(s.w)
	precision, half := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
	for j := range d {
		precision.SetSym(j, j, s.aN/s.bN[j])
	}
	for n, row := range s.x {
		v := mat.NewVecDense(d, row)
		precision.SymRankOne(precision, 2*λ(s.ξ[n]), v)
		half.AddScaledVec(half, s.y[n]/2, v)
	}
	var factor mat.Cholesky
	if !factor.Factorize(precision) {
		return errors.New("the precision (15) is not positive definite")
	}
	s.v = mat.NewSymDense(d, nil)
	if err := factor.InverseTo(s.v); err != nil {
		return err
	}
	if err := factor.SolveVecTo(mat.NewVecDense(d, s.w), half); err != nil {
		return err
	}
	s.logDetV = -factor.LogDet()
	s.measure(mat.Dot(mat.NewVecDense(d, s.w), half))
	return nil
}

// iterate updates ξ, then b_N, then V and w.
func (s *script) iterate() error {
	for n, row := range s.x {
		s.ξ[n] = math.Sqrt(s.square(row))
	}
	sum := 0.0
	for j, w := range s.w {
		s.bN[j] = b0 + .5*(w*w+s.v.At(j, j))
		sum += w*w + s.v.At(j, j)
	}
	if !s.ard {
		for j := range s.bN {
			s.bN[j] = b0 + .5*sum
		}
	}
	return s.solve()
}

// square is xᵀ(V + wwᵀ)x.
func (s *script) square(row []float64) float64 {
	m, v := dot(s.w, row), mat.NewVecDense(len(row), row)
	return m*m + mat.Inner(v, s.v, v)
}

// measure evaluates the bound in both forms; quadratic is wᵀV⁻¹w.
func (s *script) measure(quadratic float64) {
	d := float64(len(s.w))
	local, energy := 0.0, 0.0 // energy: E(ln h) of (10), under q(w) itself
	for n, ξ := range s.ξ {
		constant := logSigma(ξ) - ξ/2 + λ(ξ)*ξ*ξ
		local += constant
		energy += s.y[n]/2*dot(s.w, s.x[n]) - λ(ξ)*s.square(s.x[n]) + constant
	}
	s.bound = quadratic/2 + s.logDetV/2 + local
	s.expanded = energy + s.logDetV/2 + d/2*(1+math.Log(2*math.Pi))
	for j, bN := range s.bN {
		logα := mathext.Digamma(s.aN) - math.Log(bN)
		s.expanded += logα/2 - math.Log(2*math.Pi)/2 - s.aN/bN*(s.w[j]*s.w[j]+s.v.At(j, j))/2
		if j > 0 && !s.ard {
			continue
		}
		s.bound += a0*math.Log(b0) - lnΓ(a0) - b0*s.aN/bN - s.aN*math.Log(bN) + lnΓ(s.aN) + s.aN
		s.expanded += a0*math.Log(b0) - lnΓ(a0) + (a0-1)*logα - b0*s.aN/bN
		s.expanded -= (s.aN-1)*mathext.Digamma(s.aN) - lnΓ(s.aN) + math.Log(bN) - s.aN
	}
}

func lnΓ(v float64) float64 {
	l, _ := math.Lgamma(v)
	return l
}
