package viboost

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"hamlet/algos/lab/viboost"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// figure6 is the test error of VIBoost and AdaBoost on spambase.
var figure6 = experiment.Experiment{
	Name: "viboost/figure-6", Title: "Figure 6: test error on spambase", Where: "section 7, figure 6",
	Claim: "VIBoost and AdaBoost perform similarly on spambase, after training on a random tenth. (The paper counts " +
		"6,401 mails; the set has 4,601.)",
	Sets: []string{"spambase"}, Cost: 6 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		x, y, err := r.Data.Table("spambase")
		if err != nil {
			return err
		}
		return compare(ctx, r, p, "spambase", x, y, len(x)/10)
	},
}

// figure7 is the same on the state documents.
var figure7 = experiment.Experiment{
	Name: "viboost/figure-7", Title: "Figure 7: test error on the state documents", Where: "section 7, figure 7",
	Claim: "VIBoost and AdaBoost perform similarly on 145 documents about Illinois or Michigan, 22,648 words present " +
		"or absent, after training on a random 30 %.",
	Sets: []string{"state"}, Cost: 5 * time.Minute,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		rows, y, width, err := r.Data.Sparse("state/state.svm")
		if err != nil {
			return err
		}
		x := make([][]float64, len(rows))
		for i, row := range rows {
			x[i] = make([]float64, width)
			for _, j := range row.Index {
				x[i][j] = 1
			}
		}
		return compare(ctx, r, p, "the state documents", x, y, len(x)*3/10)
	},
}

// at are the rounds whose errors are kept.
var at = []int{1, 2, 3, 5, 7, 10, 14, 20, 30, 40, 50, 70, 100, 140, 200}

// compared are the rounds of which the rows speak.
var compared = []int{10, 50, 100, 200}

// A pair holds the test errors of both boosters in one run, at the rounds of at.
type pair struct{ VI, Ada []float64 }

// similar is the largest difference of mean test errors that counts as "similarly": the
// figure's lines cannot be told apart at less.
const similar = ".005"

// compare trains both boosters on the first part of random orders, tests them on the rest and
// adds the rows and the picture of the errors.
func compare(ctx context.Context, r *experiment.Run, p *experiment.Report, name string, x [][]float64, y []float64,
	part int) error {
	curves, err := experiment.Steps(ctx, r, "run", runs, func(ctx context.Context, run int) (c pair, err error) {
		px, py := experiment.Shuffled(x, y, r.Rand("order", run))
		most := at[len(at)-1]
		b, err := trained(ctx, px[:part], py[:part], viboost.Config{Rounds: most})
		if err != nil {
			return c, err
		}
		terms, err := adaBoost(ctx, px[:part], py[:part], most)
		if err != nil {
			return c, err
		}
		c.VI = errorsAt(b.Ensemble().Terms(), px[part:], py[part:], at)
		c.Ada = errorsAt(terms, px[part:], py[part:], at)
		return c, nil
	})
	if err != nil {
		return err
	}
	vi, ada := func(c pair) []float64 { return c.VI }, func(c pair) []float64 { return c.Ada }
	lines := [2]chart.Series{{Name: "VIBoost", Kind: chart.Line}, {Name: "AdaBoost", Kind: chart.Line}}
	for k, n := range at {
		for j, of := range []func(pair) []float64{vi, ada} {
			experiment.Point(&lines[j], float64(n), experiment.Over(curves, func(c pair) float64 { return of(c)[k] }))
		}
	}
	for _, n := range compared {
		group, k := fmt.Sprintf("%d rounds", n), slices.Index(at, n)
		p.Show(group, "error of VIBoost", experiment.Over(curves, func(c pair) float64 { return c.VI[k] }))
		p.Show(group, "error of AdaBoost", experiment.Over(curves, func(c pair) float64 { return c.Ada[k] }))
		size := experiment.Over(curves, func(c pair) float64 { return c.VI[k] - c.Ada[k] })
		size.Value = math.Abs(size.Value)
		p.AtMost(group, "size of the mean difference", size, similar)
	}
	p.Chart(chart.Chart{Title: "Test error on " + name,
		Caption: fmt.Sprintf("Mean of %d runs and its 95 %% interval.", runs),
		X:       chart.Axis{Label: "rounds", Log: true}, Y: chart.Axis{Label: "error"}, Series: lines[:]})
	p.Note("The paper shows curves and no numbers. A mean difference of at most .005 counts as \"similarly\".")
	return nil
}
