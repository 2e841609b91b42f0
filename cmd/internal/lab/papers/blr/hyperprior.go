package blr

import (
	"context"
	"fmt"
	"math"
	"time"

	"hamlet/algos/blr"
	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/lab/experiment"
)

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
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		const draws = 10
		alphas := []float64{.01, .1, 1, 10, 100}
		p := &experiment.Report{}
		picture := chart.Chart{Title: "E(α) beside the α of the drawn weights", Caption: fmt.Sprintf("Geometric mean of %d data sets and its 95 %% interval.", draws),
			X: chart.Axis{Label: "α that the weights were drawn with", Log: true}, Y: chart.Axis{Label: "E(α) / (D/|w|²)", Log: true}}
		for _, size := range [][2]int{{2, 200}, {10, 200}, {10, 1000}} {
			group := of(size[0], size[1])
			all, err := experiment.Steps(ctx, r, group, len(alphas)*draws, func(ctx context.Context, i int) (precision, error) {
				rng := r.Rand(group, i)
				w := weights(rng, size[0], alphas[i/draws])
				x, y := drawn(rng, w, size[1])
				return recovered(ctx, x, y, w)
			})
			if err != nil {
				return nil, err
			}
			atMostZero(p, group, "largest relative error of (20), (21) and (22) at the fixed point", most(all, func(a precision) float64 { return a.Broken }), 1e-4)
			line, quadrature := chart.Series{Name: group, Kind: chart.Line}, chart.Series{Name: group + ", E(α) by quadrature", Kind: chart.Line, Reference: true}
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
			"What is to be recovered is the precision D/|w|² of the weights as drawn, which differs from α by chance. " +
			"By quadrature the mean of α is larger: the exact posterior keeps some of its mass at small weights, and there α may be of the size of 10,000 under this hyperprior.")
		return p, nil
	},
}

// recovered fits one data set.
func recovered(ctx context.Context, x [][]float64, y []float64, w []float64) (a precision, err error) {
	d := len(w)
	fit, err := blr.FitBatch(ctx, x, y, blr.BatchConfig{A0: a0, B0: b0, Tolerance: 1e-6})
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
func geometric(s *chart.Series, α float64, part []precision, found func(precision) float64) experiment.Estimate {
	mean := experiment.Mean(column(part, func(a precision) float64 { return math.Log(found(a) / a.Drawn) }))
	lo, hi := mean.Interval()
	v := math.Exp(mean.Value)
	s.X, s.Y, s.Lo, s.Hi = append(s.X, α), append(s.Y, v), append(s.Lo, math.Exp(lo)), append(s.Hi, math.Exp(hi))
	return experiment.Estimate{Value: v, SE: v * mean.SE, N: mean.N}
}
