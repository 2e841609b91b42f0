package viboost

import (
	"context"
	"fmt"
	"time"

	"hamlet/algos/viboost"
	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/lab/experiment"
)

// figure6 is the test error of VIBoost and AdaBoost on spambase.
var figure6 = experiment.Experiment{
	Name: "viboost/figure-6", Title: "Figure 6: test error on spambase", Where: "section 7, figure 6",
	Claim: "VIBoost and AdaBoost perform similarly on spambase, after training on a random tenth. (The paper counts 6,401 mails; the set has 4,601.)",
	Sets:  []string{"spambase"}, Cost: 6 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		x, y, err := r.Data.Table("spambase")
		if err != nil {
			return nil, err
		}
		curves, err := compare(ctx, r, x, y, len(x)/10)
		if err != nil {
			return nil, err
		}
		return report(curves, "spambase"), nil
	},
}

// figure7 is the same on the state documents.
var figure7 = experiment.Experiment{
	Name: "viboost/figure-7", Title: "Figure 7: test error on the state documents", Where: "section 7, figure 7",
	Claim: "VIBoost and AdaBoost perform similarly on 145 documents about Illinois or Michigan, 22,648 words present or absent, after training on a random 30 %.",
	Sets:  []string{"state"}, Cost: 5 * time.Minute,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		rows, y, width, err := r.Data.Sparse("state/state.svm")
		if err != nil {
			return nil, err
		}
		x := make([][]float64, len(rows))
		for i, row := range rows {
			x[i] = make([]float64, width)
			for _, j := range row.Index {
				x[i][j] = 1
			}
		}
		curves, err := compare(ctx, r, x, y, len(x)*3/10)
		if err != nil {
			return nil, err
		}
		return report(curves, "the state documents"), nil
	},
}

// at are the rounds whose errors are kept.
var at = []int{1, 2, 3, 5, 7, 10, 14, 20, 30, 40, 50, 70, 100, 140, 200}

// compared are the rounds of which the rows speak.
var compared = []int{10, 50, 100, 200}

// A pair holds the test errors of both boosters in one run, at the rounds of at.
type pair struct{ VI, Ada []float64 }

// compare trains both boosters on the first part of random orders and tests them on the
// rest.
func compare(ctx context.Context, r *experiment.Run, x [][]float64, y []float64, part int) ([]pair, error) {
	return experiment.Steps(ctx, r, "run", runs, func(ctx context.Context, run int) (p pair, err error) {
		px, py := make([][]float64, len(x)), make([]float64, len(x))
		for i, k := range r.Rand("order", run).Perm(len(x)) {
			px[i], py[i] = x[k], y[k]
		}
		most := at[len(at)-1]
		b, err := trained(ctx, px[:part], py[:part], viboost.Config{Rounds: most})
		if err != nil {
			return p, err
		}
		terms, err := adaBoost(ctx, px[:part], py[:part], most)
		if err != nil {
			return p, err
		}
		p.VI = errorsAt(b.Ensemble().Terms(), px[part:], py[part:], at)
		p.Ada = errorsAt(terms, px[part:], py[part:], at)
		return p, nil
	})
}

// similar is the largest difference of mean test errors that counts as "similarly": the
// figure's lines cannot be told apart at less.
const similar = ".005"

func report(curves []pair, name string) *experiment.Report {
	p := &experiment.Report{}
	column := func(of func(pair) []float64, k int) []float64 {
		var v []float64
		for _, c := range curves {
			v = append(v, of(c)[k])
		}
		return v
	}
	vi, ada := func(c pair) []float64 { return c.VI }, func(c pair) []float64 { return c.Ada }
	lines := [2]chart.Series{{Name: "VIBoost", Kind: chart.Line}, {Name: "AdaBoost", Kind: chart.Line}}
	for k, n := range at {
		for j, of := range []func(pair) []float64{vi, ada} {
			mean := experiment.Mean(column(of, k))
			lo, hi := mean.Interval()
			s := &lines[j]
			s.X, s.Y, s.Lo, s.Hi = append(s.X, float64(n)), append(s.Y, mean.Value), append(s.Lo, lo), append(s.Hi, hi)
		}
	}
	for k, n := range at {
		for _, c := range compared {
			if n != c {
				continue
			}
			group := fmt.Sprintf("%d rounds", n)
			p.Show(group, "error of VIBoost", experiment.Mean(column(vi, k)))
			p.Show(group, "error of AdaBoost", experiment.Mean(column(ada, k)))
			difference := column(func(c pair) []float64 { return []float64{c.VI[k] - c.Ada[k]} }, 0)
			size := experiment.Mean(difference)
			size.Value = abs(size.Value)
			p.Claim(group, "size of the mean difference", size, experiment.AtMost, similar)
		}
	}
	p.Chart(chart.Chart{Title: "Test error on " + name, Caption: fmt.Sprintf("Mean of %d runs and its 95 %% interval.", runs),
		X: chart.Axis{Label: "rounds", Log: true}, Y: chart.Axis{Label: "error"}, Series: lines[:]})
	p.Note("The paper shows curves and no numbers. A mean difference of at most .005 counts as \"similarly\".")
	return p
}

func abs(v float64) float64 {
	if v < 0 {
		return -v
	}
	return v
}
