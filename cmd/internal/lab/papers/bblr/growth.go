package bblr

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"hamlet/algos/bblr"
	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/lab/experiment"
)

// sizes are the numbers of training rows of figure 7.
var sizes = []int{100, 200, 400, 800}

// growthRuns are the random draws at each size.
const growthRuns = 20

var figure7 = experiment.Experiment{
	Name: "bblr/figure-7", Title: "Figure 7: support by the number of training rows", Where: "section 5.4, figure 7",
	Claim: "The number of rows that sparse kernel BBLR keeps grows like a logarithm of the number of training rows; that of a support vector machine grows almost linearly. The L2 penalty keeps all rows.",
	Sets:  []string{"spambase"}, Cost: 15 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		x, y, err := r.Data.Table("spambase")
		if err != nil {
			return nil, err
		}
		for _, row := range x {
			for j, v := range row {
				row[j] = math.Log1p(v)
			}
		}
		type kept struct{ Sparse, Dense, Machine float64 }
		runs, err := experiment.Steps(ctx, r, "fit", len(sizes)*growthRuns, func(ctx context.Context, step int) (k kept, err error) {
			var f fold
			for _, i := range r.Rand("rows", step%growthRuns).Perm(len(x))[:sizes[step/growthRuns]] {
				f.x, f.y = append(f.x, x[i]), append(f.y, y[i])
			}
			for _, sparse := range []bool{true, false} {
				m, err := kernelFit(ctx, f, bblr.KernelConfig{Sparse: sparse, Lambda: 0.1})
				if err != nil {
					return k, err
				}
				rows, _ := m.Support()
				if sparse {
					k.Sparse = float64(len(rows))
				} else {
					k.Dense = float64(len(rows))
				}
			}
			machine, err := fitKernelMachine(ctx, 1, f.x, f.y)
			if err != nil {
				return k, err
			}
			k.Machine = float64(machine.report.Support)
			return k, nil
		})
		if err != nil {
			return nil, err
		}
		p := &experiment.Report{}
		var sparse, dense, machine [][]float64
		for s := range sizes {
			sparse, dense, machine = append(sparse, nil), append(dense, nil), append(machine, nil)
			for _, k := range runs[s*growthRuns : (s+1)*growthRuns] {
				sparse[s], dense[s] = append(sparse[s], k.Sparse), append(dense[s], k.Dense)
				machine[s] = append(machine[s], k.Machine)
			}
		}
		lines := []chart.Series{{Name: "sparse KBBLR", Kind: chart.Line}, {Name: "KBBLR with the L2 penalty", Kind: chart.Line}, {Name: "SVM", Kind: chart.Line}}
		for s, n := range sizes {
			for i, v := range [][]float64{sparse[s], dense[s], machine[s]} {
				mean := experiment.Mean(v)
				lo, hi := mean.Interval()
				lines[i].X, lines[i].Y = append(lines[i].X, float64(n)), append(lines[i].Y, mean.Value)
				lines[i].Lo, lines[i].Hi = append(lines[i].Lo, lo), append(lines[i].Hi, hi)
				p.Show(fmt.Sprintf("%d rows", n), lines[i].Name+", rows kept", mean)
			}
		}
		var exponents [3][]float64
		var beyond []float64 // exponents of SVM minus those of sparse KBBLR
		for run := range growthRuns {
			for i, v := range [][][]float64{sparse, dense, machine} {
				exponents[i] = append(exponents[i], exponent(v, run))
			}
			beyond = append(beyond, exponents[2][run]-exponents[0][run])
		}
		const whyGrowth = "On spambase the rows kept grow about like a square root, which is faster than a logarithm. The paper's curve is of reviews."
		p.Claim("growth", "exponent, sparse KBBLR", experiment.Mean(exponents[0]), experiment.AtMost, ".25").Reason = whyGrowth
		p.Claim("growth", "exponent, KBBLR with the L2 penalty", experiment.Mean(exponents[1]), experiment.AtLeast, ".95")
		p.Claim("growth", "exponent, SVM", experiment.Mean(exponents[2]), experiment.AtLeast, ".8").Reason =
			"On these rows the classes overlap less than on reviews, and a machine keeps a smaller share of many rows than of few."
		p.Claim("growth", "exponent, SVM minus sparse KBBLR", experiment.Mean(beyond), experiment.AtLeast, "0").Reason = "The paper's curves are of reviews, these of spambase."
		p.Chart(chart.Chart{Title: "Rows kept", Caption: fmt.Sprintf("Means of %d draws from spambase, with 95 %% intervals.", growthRuns),
			X: chart.Axis{Label: "training rows", Log: true}, Y: chart.Axis{Label: "rows kept", Log: true}, Series: lines})
		if err := weights(ctx, p, x, y, r); err != nil {
			return nil, err
		}
		p.Note("The paper shows curves of one of the sets of reviews and no numbers. Here the rows are spambase's, as ln(1 + v). An exponent e says that the rows kept grow like nᵉ. From 100 to 800 rows a logarithm has the exponent .18, a square root .5 and a line 1.")
		return p, nil
	},
}

// exponent returns the exponent e of "rows kept ∝ nᵉ" in one draw, by least squares over
// all sizes. It is 0 for a constant and 1 for a line. A logarithm has .18 at these sizes.
func exponent(kept [][]float64, run int) float64 {
	var x, y []float64
	for s, n := range sizes {
		x, y = append(x, math.Log(float64(n))), append(y, math.Log(kept[s][run]))
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	return slope
}

// weights adds the right panel: the coefficients of both priors on one draw of rows.
func weights(ctx context.Context, p *experiment.Report, x [][]float64, y []float64, r *experiment.Run) error {
	const rows = 400
	type coefficients struct{ L2, Mixture []float64 }
	found, err := experiment.Steps(ctx, r, "weights", 1, func(ctx context.Context, _ int) (c coefficients, err error) {
		var f fold
		for _, i := range r.Rand("weights", 0).Perm(len(x))[:rows] {
			f.x, f.y = append(f.x, x[i]), append(f.y, y[i])
		}
		dense, err := kernelFit(ctx, f, bblr.KernelConfig{Lambda: 0.1})
		if err != nil {
			return c, err
		}
		sparse, err := kernelFit(ctx, f, bblr.KernelConfig{Sparse: true})
		if err != nil {
			return c, err
		}
		_, c.L2 = dense.Support()
		_, c.Mixture = sparse.Support()
		return c, nil
	})
	if err != nil {
		return err
	}
	c := chart.Chart{Title: "Coefficients in ascending order", Caption: fmt.Sprintf("One draw of %d rows.", rows),
		X: chart.Axis{Label: "share of the rows"}, Y: chart.Axis{Label: "coefficient"}}
	for _, s := range []struct {
		name string
		coef []float64
	}{{"L2 penalty", found[0].L2}, {"Gauss–Laplace mixture", found[0].Mixture}} {
		zero := rows - len(s.coef)
		p.Show("coefficients", "share that is 0, "+s.name, experiment.Exact(float64(zero)/rows))
		v := append(make([]float64, zero), s.coef...)
		slices.Sort(v)
		line := chart.Series{Name: s.name, Kind: chart.Line}
		for i, a := range v {
			line.X, line.Y = append(line.X, float64(i)/float64(rows-1)), append(line.Y, a)
		}
		c.Series = append(c.Series, line)
	}
	p.Claim("coefficients", "share that is 0 under the mixture", experiment.Exact(1-float64(len(found[0].Mixture))/rows), experiment.AtLeast, ".5")
	p.Chart(c)
	return nil
}
