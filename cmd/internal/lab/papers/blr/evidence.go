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

// levels are the three quantities of the text's chain of inequalities.
type levels struct {
	Evidence float64 // ln p(D)
	Free     float64 // L(q), (6)
	Bound    float64 // L̃(q, ξ), (30)
}

// evidence compares the bound with what it bounds.
var evidence = experiment.Experiment{
	Name: "blr/evidence", Title: "The bound beside the evidence", Where: "equations 5, 6, 11 and 30",
	Claim: "The bound (30) is below the bound (6) of the factorised posterior, which is below the log evidence: ln p(D) ≥ L(q) ≥ L̃(q, ξ).",
	Cost:  9 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		const draws = 10
		sizes := []int{5, 10, 20, 50, 100, 200, 500}
		p := &experiment.Report{}
		picture := chart.Chart{Title: "How far below the log evidence", Caption: fmt.Sprintf("Mean of %d data sets; hyperprior of the scripts.", draws),
			X: chart.Axis{Label: "rows", Log: true}, Y: chart.Axis{Label: "nats", Min: end(0)}}
		for d := 1; d <= 2; d++ {
			name := fmt.Sprintf("%d inputs", d)
			if d == 1 {
				name = "1 input"
			}
			all, err := experiment.Steps(ctx, r, name, len(sizes)*draws, func(ctx context.Context, i int) (levels, error) {
				x, y := gaussian(r, name, i, d, sizes[i/draws])
				return chain(ctx, x, y)
			})
			if err != nil {
				return nil, err
			}
			group := fmt.Sprintf("%s, %d data sets of %d to %d rows", name, len(all), sizes[0], sizes[len(sizes)-1])
			p.Claim(group, "largest L(q) − ln p(D), nats", most(all, func(l levels) float64 { return l.Free - l.Evidence }), experiment.AtMost, "0")
			p.Claim(group, "largest L̃(q, ξ) − L(q), nats", most(all, func(l levels) float64 { return l.Bound - l.Free }), experiment.AtMost, "0")
			total, local := chart.Series{Name: name + ": L̃(q, ξ)", Kind: chart.Line}, chart.Series{Name: name + ": L(q)", Kind: chart.Line}
			for k, n := range sizes {
				part := all[k*draws : (k+1)*draws]
				below := experiment.Mean(column(part, func(l levels) float64 { return l.Evidence - l.Bound }))
				free := experiment.Mean(column(part, func(l levels) float64 { return l.Evidence - l.Free }))
				point(&total, float64(n), below)
				point(&local, float64(n), free)
				if n != 10 && n != 100 && n != 500 {
					continue
				}
				group := fmt.Sprintf("%s, %d rows", name, n)
				p.Show(group, "mean log evidence, nats", experiment.Mean(column(part, func(l levels) float64 { return l.Evidence })))
				p.Show(group, "mean ln p(D) − L̃(q, ξ), nats", below)
				p.Show(group, "mean ln p(D) − L(q), nats", free)
			}
			picture.Series = append(picture.Series, total, local)
		}
		p.Chart(picture)
		p.Note("The evidence is an integral over α of integrals over the weights, by the trapezoidal rule in ln α and about each mode. " +
			"Data sets whose classes do not overlap are drawn again: with them the evidence hangs on the hyperprior's heavy tail.")
		return p, nil
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
	fit, err := blr.FitBatch(ctx, x, y, blr.BatchConfig{A0: a0, B0: b0})
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
