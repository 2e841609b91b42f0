package blr

import (
	"context"
	"fmt"
	"math"
	"time"

	"hamlet/algos/lab/vblr"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// levels are the three quantities of the text's chain of inequalities.
type levels struct {
	Evidence float64 // ln p(D)
	Free     float64 // L(q), (6)
	Bound    float64 // L̃(q, ξ), (30)
}

// evidence compares the bound with what it bounds.
var evidence = experiment.Experiment{
	Name: "blr/evidence", Title: "The bound beside the evidence", Where: "equations 5, 6, 11 and 30",
	Claim: "The bound (30) is below the bound (6) of the factorised posterior, which is below the log evidence: ln " +
		"p(D) ≥ L(q) ≥ L̃(q, ξ).",
	Cost: 9 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		const draws = 10
		sizes := []int{5, 10, 20, 50, 100, 200, 500}
		picture := chart.Chart{Title: "How far below the log evidence",
			Caption: fmt.Sprintf("Mean of %d data sets; hyperprior of the scripts.", draws),
			X:       chart.Axis{Label: "rows", Log: true}, Y: chart.Axis{Label: "nats", Min: experiment.End(0)}}
		for d := 1; d <= 2; d++ {
			name := fmt.Sprintf("%d inputs", d)
			if d == 1 {
				name = "1 input"
			}
			all, err := experiment.Steps(ctx, r, name, len(sizes)*draws,
				func(ctx context.Context, i int) (levels, error) {
					x, y := gaussian(r, name, i, d, sizes[i/draws])
					return chain(ctx, x, y)
				})
			if err != nil {
				return err
			}
			group := fmt.Sprintf("%s, %d data sets of %d to %d rows", name, len(all), sizes[0], sizes[len(sizes)-1])
			p.AtMost(group, "largest L(q) − ln p(D), nats",
				experiment.Most(all, func(l levels) float64 { return l.Free - l.Evidence }), "0")
			p.AtMost(group, "largest L̃(q, ξ) − L(q), nats",
				experiment.Most(all, func(l levels) float64 { return l.Bound - l.Free }), "0")
			total, local := chart.Series{Name: name + ": L̃(q, ξ)", Kind: chart.Line},
				chart.Series{Name: name + ": L(q)", Kind: chart.Line}
			for k, n := range sizes {
				part := all[k*draws : (k+1)*draws]
				below := experiment.Over(part, func(l levels) float64 { return l.Evidence - l.Bound })
				free := experiment.Over(part, func(l levels) float64 { return l.Evidence - l.Free })
				experiment.Point(&total, float64(n), below)
				experiment.Point(&local, float64(n), free)
				if n != 10 && n != 100 && n != 500 {
					continue
				}
				group := fmt.Sprintf("%s, %d rows", name, n)
				p.Show(group, "mean log evidence, nats",
					experiment.Over(part, func(l levels) float64 { return l.Evidence }))
				p.Show(group, "mean ln p(D) − L̃(q, ξ), nats", below)
				p.Show(group, "mean ln p(D) − L(q), nats", free)
			}
			picture.Series = append(picture.Series, total, local)
		}
		p.Chart(picture)
		p.Note("The evidence is an integral over α of integrals over the weights, by the trapezoidal rule in ln α " +
			"and about each mode. Data sets whose classes do not overlap are drawn again: with them the evidence " +
			"hangs on the hyperprior's heavy tail.")
		return nil
	},
}

// gaussian draws rows of standard normal inputs without a constant for one weight, and
// with one for two, so that no threshold separates the classes.
func gaussian(r *experiment.Run, name string, i, d, n int) (x [][]float64, y []float64) {
	rng := r.Rand(name, i)
	for {
		w := weights(rng, 2, 1)
		x, y = drawn(rng, w, n)
		if d == 2 && overlap(x, y) {
			return x, y
		}
		if d == 1 {
			for k, row := range x {
				x[k] = row[1:]
				if y[k] = -1; rng.Float64() < sigma(w[1]*row[1]) {
					y[k] = 1
				}
			}
			if bothSigns(x, y) {
				return x, y
			}
		}
	}
}

// bothSigns reports whether no weight of a single input gives all rows their label.
func bothSigns(x [][]float64, y []float64) bool {
	plus, minus := false, false
	for i, row := range x {
		plus, minus = plus || y[i]*row[0] > 0, minus || y[i]*row[0] < 0
	}
	return plus && minus
}

// chain computes the three quantities of one data set. L(q) has E ln σ under q in the
// place of the mean of (8)'s bound.
func chain(ctx context.Context, x [][]float64, y []float64) (levels, error) {
	fit, err := vblr.Fit(ctx, x, y, vblr.Config{A0: a0, B0: b0})
	if err != nil {
		return levels{}, err
	}
	free := fit.Bound
	for n, row := range x {
		m, a := fit.Moments(row)
		free += expect(y[n]*m, a, func(z float64) float64 { return logSigma(z) - logBound(z, fit.Xi[n]) })
	}
	truth := exact(x, y, a0, b0).LogEvidence
	if math.IsNaN(truth) {
		return levels{}, fmt.Errorf("the evidence of %d rows is not a number", len(x))
	}
	return levels{truth, free, fit.Bound}, nil
}

// A precision is what a fit says of α.
type precision struct {
	Found  float64 // E(α)
	Drawn  float64 // that of the weights as drawn: D/|w|²
	Exact  float64 // E(α | D) by quadrature, with two weights
	Broken float64 // how far (20), (21) and (22) are from holding, relatively
}

// hyperprior asks whether E(α) recovers the α of the weights.
var hyperprior = experiment.Experiment{
	Name: "blr/hyperprior", Title: "The hyperprior: does E(α) recover α?", Where: "equations 4 and 17 to 23",
	Claim: "The precision α of the prior is inferred with the weights: α ~ Gam(a₀ + D/2, b₀ + ½E(wᵀw)).",
	Cost:  14 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		const draws = 10
		alphas := []float64{.01, .1, 1, 10, 100}
		picture := chart.Chart{Title: "E(α) beside the α of the drawn weights",
			Caption: fmt.Sprintf("Geometric mean of %d data sets and its 95 %% interval.", draws),
			X:       chart.Axis{Label: "α that the weights were drawn with", Log: true},
			Y:       chart.Axis{Label: "E(α) / (D/|w|²)", Log: true}}
		for _, size := range [][2]int{{2, 200}, {10, 200}, {10, 1000}} {
			group := of(size[0], size[1])
			all, err := experiment.Steps(ctx, r, group, len(alphas)*draws,
				func(ctx context.Context, i int) (precision, error) {
					rng := r.Rand(group, i)
					w := weights(rng, size[0], alphas[i/draws])
					x, y := drawn(rng, w, size[1])
					return recovered(ctx, x, y, w)
				})
			if err != nil {
				return err
			}
			atMostZero(p, group, "largest relative error of (20), (21) and (22) at the fixed point",
				experiment.Most(all, func(a precision) float64 { return a.Broken }), 1e-4)
			line, quadrature := chart.Series{Name: group, Kind: chart.Line},
				chart.Series{Name: group + ", E(α) by quadrature", Kind: chart.Line, Reference: true}
			for k, α := range alphas {
				part := all[k*draws : (k+1)*draws]
				factor := geometric(&line, α, part, func(a precision) float64 { return a.Found })
				what := fmt.Sprintf("E(α) as a multiple of the drawn weights' precision, α = %g", α)
				p.Show(group, what, factor)
				if size[0] == 2 {
					truth := geometric(&quadrature, α, part, func(a precision) float64 { return a.Exact })
					p.Show(group, fmt.Sprintf("the same of E(α | D) by quadrature, α = %g", α), truth)
				}
			}
			picture.Series = append(picture.Series, line)
			if size[0] == 2 {
				picture.Series = append(picture.Series, quadrature)
			}
		}
		p.Chart(picture)
		p.Note("The text says how α is inferred, and not how well. So only the equations have a verdict. " +
			"What is to be recovered is the precision D/|w|² of the weights as drawn, which differs from α by " +
			"chance. By quadrature the mean of α is larger: the exact posterior keeps some of its mass at small " +
			"weights, and there α may be of the size of 10,000 under this hyperprior.")
		return nil
	},
}

// recovered fits one data set.
func recovered(ctx context.Context, x [][]float64, y []float64, w []float64) (a precision, err error) {
	d := len(w)
	fit, err := vblr.Fit(ctx, x, y, vblr.Config{A0: a0, B0: b0, Tolerance: 1e-6})
	if err != nil {
		return a, err
	}
	found := make([]float64, d)
	fit.MeanTo(found)
	square := dot(found, found)
	for j := range d {
		e := make([]float64, d)
		e[j] = 1
		_, variance := fit.Moments(e)
		square += variance
	}
	aN, bN := a0+float64(d)/2, b0+square/2
	a.Found, a.Drawn = fit.EAlpha[0], float64(d)/dot(w, w)
	a.Broken = max(math.Abs(fit.AN/aN-1), math.Abs(fit.BN[0]/bN-1), math.Abs(a.Found/(aN/bN)-1))
	if d == 2 {
		a.Exact = exact(x, y, a0, b0).Alpha
	}
	return a, nil
}

// geometric adds the geometric mean of what was found, as a multiple of the drawn weights'
// precision, to a line.
func geometric(s *chart.Series, α float64, part []precision, found func(precision) float64) experiment.Statistic {
	mean := experiment.Over(part, func(a precision) float64 { return math.Log(found(a) / a.Drawn) })
	lo, hi := mean.Interval()
	v := math.Exp(mean.Value)
	s.X, s.Y, s.Lo, s.Hi = append(s.X, α), append(s.Y, v), append(s.Lo, math.Exp(lo)), append(s.Hi, math.Exp(hi))
	return experiment.Statistic{Value: v, SE: v * mean.SE, N: mean.N}
}
