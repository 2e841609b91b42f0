package blr

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"hamlet/algos/blr"
	"hamlet/algos/lab/vblr"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// A quality is a fit's log loss and error on new rows.
type quality struct{ Loss, Error float64 }

// A relevance is one data set with and without automatic relevance determination.
type relevance struct {
	Relevant, Irrelevant []float64 // E(αᵢ)
	Apart                float64   // share of pairs, one of each, in the right order
	Strong               float64   // the same with relevant weights of at least strong alone
	ARD, Plain, Oracle   quality   // Oracle knows the relevant inputs
	Printed              quality   // ARD where the printed rule stops
	Stop, Fixed          int       // iterations until the printed rule, and until no ξ moves
	Off                  float64   // largest distance of a weight between the two
}

// Of the data sets of blr/ard: rows, and inputs that matter, the constant among them.
const (
	ardRows     = 300
	ardRelevant = 5
	strong      = .5 // size of a weight that 300 rows surely tell from 0
)

// ard gives each weight a precision of its own.
var ard = experiment.Experiment{
	Name: "blr/ard", Title: "Automatic relevance determination", Where: "equations 39 to 50",
	Claim: "With a precision αᵢ for each weight, the fit determines which inputs matter: a high E(αᵢ) says that " +
		"input i is irrelevant.",
	Cost: 2 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		const draws = 10
		noise := []int{0, 5, 10, 20, 40}
		all, err := experiment.Steps(ctx, r, "fit", len(noise)*draws,
			func(ctx context.Context, i int) (relevance, error) {
				rng := r.Rand("rows", i)
				w := weights(rng, ardRelevant, .25)
				w = append(w, make([]float64, noise[i/draws])...)
				x, y := drawn(rng, w, ardRows)
				newX, newY := drawn(rng, w, 5000)
				return relevances(ctx, w, x, y, newX, newY)
			})
		if err != nil {
			return err
		}
		lines := map[string]*chart.Series{}
		names := []string{"with ARD", "with ARD, printed rule", "without ARD"}
		for _, name := range names {
			lines[name] = &chart.Series{Name: name, Kind: chart.Line}
		}
		for k, n := range noise {
			part, group := all[k*draws:(k+1)*draws], fmt.Sprintf("%d irrelevant inputs", n)
			mean := func(of func(relevance) float64) experiment.Statistic { return experiment.Over(part, of) }
			losses := []func(relevance) quality{
				func(v relevance) quality { return v.ARD }, func(v relevance) quality { return v.Printed },
				func(v relevance) quality { return v.Plain },
			}
			for j, name := range names {
				experiment.Point(lines[name], float64(n),
					mean(func(v relevance) float64 { return losses[j](v).Loss - v.Oracle.Loss }))
			}
			p.Show(group, "log loss with ARD", mean(func(v relevance) float64 { return v.ARD.Loss }))
			p.Show(group, "log loss without ARD", mean(func(v relevance) float64 { return v.Plain.Loss }))
			if n == 0 {
				continue // both fits are almost the same
			}
			p.Show(group, "error with ARD", mean(func(v relevance) float64 { return v.ARD.Error }))
			p.Show(group, "error without ARD", mean(func(v relevance) float64 { return v.Plain.Error }))
			p.Show(group, "printed rule: iterations", mean(func(v relevance) float64 { return float64(v.Stop) }))
			p.Show(group, "iterations until no ξ moves by 1e-6",
				mean(func(v relevance) float64 { return float64(v.Fixed) }))
			p.Show(group, "printed rule: largest distance of a weight",
				mean(func(v relevance) float64 { return v.Off }))
			p.Show(group, "share of pairs, relevant and irrelevant, whose E(αᵢ) are in order",
				mean(func(v relevance) float64 { return v.Apart }))
			p.Show(group, "the same, relevant weights of ½ and more alone",
				mean(func(v relevance) float64 { return v.Strong }))
			p.AtLeast(group, "mean ln E(αᵢ) of irrelevant inputs minus that of relevant ones", mean(higher), "0")
			p.Show(group, "log loss with ARD minus without",
				mean(func(v relevance) float64 { return v.ARD.Loss - v.Plain.Loss }))
		}
		p.Chart(chart.Chart{Title: "Log loss above that of a fit to the relevant inputs alone",
			Caption: fmt.Sprintf("%d rows, mean of %d data sets and its 95 %% interval.", ardRows, draws),
			X:       chart.Axis{Label: "irrelevant inputs"}, Y: chart.Axis{Label: "nats on new rows"},
			Series: []chart.Series{*lines[names[0]], *lines[names[1]], *lines[names[2]]}})
		if err := separable(ctx, r, p); err != nil {
			return err
		}
		p.Chart(precisions(all[len(all)-draws:], noise[len(noise)-1]))
		p.Note(fmt.Sprintf("Data sets have %d rows, a constant and %d standard normal inputs with weights from N(0, "+
			"4), and irrelevant ones of weight 0. A drawn weight may be near 0, and then no fit can tell it from an "+
			"irrelevant one. So weights of ½ and more have a row of their own. The text names no share and no log "+
			"loss, and neither has a verdict.",
			ardRows, ardRelevant-1))
		return nil
	},
}

// A creep is how far the printed rule stops from the fixed point.
type creep struct {
	Off         float64 // largest distance of a weight
	Stop, Fixed int     // iterations
}

// separable looks at the stopping rule where a plane almost separates the classes.
func separable(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	const draws, rows, d = 20, 60, 8
	all, err := experiment.Steps(ctx, r, "separable", draws, func(ctx context.Context, i int) (c creep, err error) {
		rng := r.Rand("separable", i)
		x, y := drawn(rng, weights(rng, d, 1.0/16), rows)
		full, err := vblr.Fit(ctx, x, y, vblr.Config{ARD: true, A0: a0, B0: b0, Tolerance: 1e-6})
		if err != nil {
			return c, err
		}
		c.Stop, c.Fixed = printedStop(full.Trace), full.Iterations
		printed, err := vblr.Fit(ctx, x, y, vblr.Config{ARD: true, A0: a0, B0: b0, MaxIterations: c.Stop})
		if err != nil {
			return c, err
		}
		w, early := make([]float64, d), make([]float64, d)
		full.MeanTo(w)
		printed.MeanTo(early)
		c.Off = apart(w, early)
		return c, nil
	})
	if err != nil {
		return err
	}
	group := fmt.Sprintf("nearly separable: %d rows, weights from N(0, 16)", rows)
	p.Show(group, "printed rule: mean iterations",
		experiment.Over(all, func(c creep) float64 { return float64(c.Stop) }))
	p.Show(group, "most iterations until no ξ moves by 1e-6",
		experiment.Most(all, func(c creep) float64 { return float64(c.Fixed) }))
	p.Show(group, fmt.Sprintf("printed rule: largest distance of a weight, of %d data sets", draws),
		experiment.Most(all, func(c creep) float64 { return c.Off }))
	return nil
}

// relevances fits one data set.
func relevances(ctx context.Context, truth []float64, x [][]float64, y []float64, newX [][]float64,
	newY []float64) (v relevance, err error) {
	fit := func(x [][]float64, cfg vblr.Config) *vblr.Batch {
		if err != nil {
			return nil
		}
		cfg.A0, cfg.B0, cfg.Tolerance = a0, b0, 1e-6
		var b *vblr.Batch
		b, err = vblr.Fit(ctx, x, y, cfg)
		return b
	}
	full, plain, oracle := fit(x, vblr.Config{ARD: true}), fit(x, vblr.Config{}), fit(cut(x), vblr.Config{})
	if err != nil {
		return v, err
	}
	v.Stop, v.Fixed = printedStop(full.Trace), full.Iterations
	printed := fit(x, vblr.Config{ARD: true, MaxIterations: v.Stop})
	if err != nil {
		return v, err
	}
	w, early := make([]float64, len(x[0])), make([]float64, len(x[0]))
	full.MeanTo(w)
	printed.MeanTo(early)
	v.Off = apart(w, early)
	v.ARD, v.Plain, v.Printed = measured(full, newX, newY), measured(plain, newX, newY), measured(printed, newX, newY)
	v.Oracle = measured(oracle, cut(newX), newY)
	v.Relevant, v.Irrelevant = full.EAlpha[:ardRelevant], full.EAlpha[ardRelevant:]
	v.Apart, v.Strong = ordered(v, truth, 0), ordered(v, truth, strong)
	return v, nil
}

// ordered returns the share of pairs, a relevant weight of at least the given size and an
// irrelevant one, whose E(αᵢ) are in order.
func ordered(v relevance, truth []float64, size float64) float64 {
	right, pairs := 0.0, 0.0
	for j, r := range v.Relevant {
		if math.Abs(truth[j]) < size {
			continue
		}
		for _, i := range v.Irrelevant {
			pairs++
			if r < i {
				right++
			}
		}
	}
	if pairs == 0 {
		return 1
	}
	return right / pairs
}

// higher returns by how much the mean ln E(αᵢ) of irrelevant inputs is above that of relevant ones.
func higher(v relevance) float64 {
	mean := func(all []float64) float64 {
		sum := 0.0
		for _, α := range all {
			sum += math.Log(α) / float64(len(all))
		}
		return sum
	}
	return mean(v.Irrelevant) - mean(v.Relevant)
}

// cut keeps the relevant inputs.
func cut(x [][]float64) [][]float64 {
	short := slices.Clone(x)
	for i := range short {
		short[i] = short[i][:ardRelevant]
	}
	return short
}

// printedStop is the iteration in which the scripts stop, by the bounds after each.
func printedStop(trace []float64) int {
	for i := 1; i < min(len(trace), printedIterations); i++ {
		if math.Abs(trace[i]-trace[i-1]) < printedRule*math.Abs(trace[i]) {
			return i + 1
		}
	}
	return min(len(trace), printedIterations)
}

// measured is the quality of exact predictions under the variational posterior.
func measured(fit *vblr.Batch, x [][]float64, y []float64) (q quality) {
	for n, row := range x {
		m, a := fit.Moments(row)
		q.Loss -= logSigma(y[n]*blr.Predictive(m, a)) / float64(len(x))
		if y[n]*m <= 0 {
			q.Error += 1 / float64(len(x))
		}
	}
	return q
}

// precisions draws the E(αᵢ) of some data sets.
func precisions(all []relevance, n int) chart.Chart {
	relevant, irrelevant := chart.Series{Name: "relevant", Kind: chart.Points},
		chart.Series{Name: "irrelevant", Kind: chart.Points, Faint: true}
	for i, v := range all {
		for _, α := range v.Relevant {
			relevant.X, relevant.Y = append(relevant.X, float64(i+1)), append(relevant.Y, α)
		}
		for _, α := range v.Irrelevant {
			irrelevant.X, irrelevant.Y = append(irrelevant.X, float64(i+1)), append(irrelevant.Y, α)
		}
	}
	return chart.Chart{Title: "E(αᵢ) of relevant and irrelevant inputs",
		Caption: fmt.Sprintf("%d irrelevant inputs.", n),
		X:       chart.Axis{Label: "data set"}, Y: chart.Axis{Label: "E(αᵢ)", Log: true},
		Series: []chart.Series{irrelevant, relevant}}
}
