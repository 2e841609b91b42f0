package slides

import (
	"context"
	"math"
	"time"

	"hamlet/algos/lab/boosting"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// logistic checks the five notes on boosting and logistic regression.
var logistic = experiment.Experiment{
	Name: "slides/logistic", Title: "Boosting and logistic regression: the five notes", Where: "slides 37 to 41",
	Claim: "E e^(−yf) and E ln(1+e^(−2yf)) are least at f = ½ ln p/(1−p). The two losses have the same Taylor " +
		"expansion about 0 up to second order, and the log loss is at most the exponential loss. So 1/(1+e^(−2f)) of " +
		"AdaBoost's f may be a reasonable probability.",
	Sets: []string{"pima", "spambase"}, Cost: 4 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		logLoss := func(margin float64) float64 { return boosting.LogitCost.Value(margin) }
		exp, log := 0.0, 0.0
		for k := 1; k < 100; k++ {
			q := float64(k) / 100
			want := .5 * math.Log(q/(1-q))
			apart(&exp, leastOf(func(f float64) float64 { return q*exponential(f) + (1-q)*exponential(-f) }), want)
			apart(&log, leastOf(func(f float64) float64 { return q*logLoss(f) + (1-q)*logLoss(-f) }), want)
		}
		const minimum = "notes 1 and 3, p = .01 to .99"
		p.AtMost(minimum, "largest difference of the minimum of E e^(−yf) and ½ ln p/(1−p)", experiment.Exact(exp),
			"0").Slack = 1e-6
		p.AtMost(minimum, "largest difference of the minimum of E ln(1+e^(−2yf)) and ½ ln p/(1−p)",
			experiment.Exact(log), "0").Slack = 1e-6

		// The expansions differ by a constant and a cubic term: 1 − ln 2, and −f³/6.
		const h = 1e-2
		gap := func(f float64) float64 { return exponential(f) - 1 - (logLoss(f) - math.Ln2) }
		const taylor = "note 4"
		p.AtMost(taylor, "first derivatives at 0: difference", experiment.Exact(math.Abs(gap(h)-gap(-h))/(2*h)),
			"0").Slack = h * h
		p.AtMost(taylor, "second derivatives at 0: difference", experiment.Exact(math.Abs(gap(h)+gap(-h))/(h*h)),
			"0").Slack = h * h
		constants := p.Figure(taylor, "constants: difference of e⁰ and ln 2",
			experiment.Exact(exponential(0)-logLoss(0)), "0.000", experiment.Neither)
		constants.Reason = "The slides say that the expansions are identical. They print both constants, ln 2 and 1, " +
			"which differ."

		above := math.Inf(-1)
		for k := -4000; k <= 4000; k++ {
			f := float64(k) / 100
			above = max(above, logLoss(f)-exponential(f))
		}
		p.Never("note 5, margins from −40 to 40", "largest log loss minus exponential loss", above, "0")
		for _, name := range []string{"pima", "spambase"} {
			x, y, err := r.Data.Table(name)
			if err != nil {
				return err
			}
			all, err := experiment.Steps(ctx, r, name, 5, func(ctx context.Context, i int) (calibration, error) {
				return calibrated(ctx, divide(x, y, r.Rand(name, i)))
			})
			if err != nil {
				return err
			}
			breach := experiment.Most(all, func(c calibration) float64 { return c.Breach }).Value
			p.Never("note 5, rounds of AdaBoost on "+name, "largest mean log loss minus mean exponential loss",
				breach, "0")
			p.Show("probabilities on "+name, "log loss on new rows of the share of +1",
				experiment.Over(all, func(c calibration) float64 { return c.Constant }))
			p.Show("probabilities on "+name, "log loss on new rows, 20 rounds",
				experiment.Over(all, func(c calibration) float64 { return c.Short }))
			p.Show("probabilities on "+name, "log loss on new rows, 500 rounds",
				experiment.Over(all, func(c calibration) float64 { return c.Long }))
		}
		p.Chart(losses())
		p.Note("\"Reasonable\" has a limit. After many rounds f may be far too large where the classes overlap, as " +
			"in pima, and the probabilities are then no better than the share of +1.")
		return nil
	},
}

// leastOf returns where a convex function is least, by the golden section.
func leastOf(f func(float64) float64) float64 {
	lo, hi := -10.0, 10.0
	ratio := (math.Sqrt(5) - 1) / 2
	for range 100 {
		a, b := hi-ratio*(hi-lo), lo+ratio*(hi-lo)
		if f(a) < f(b) {
			hi = b
		} else {
			lo = a
		}
	}
	return (lo + hi) / 2
}

// A calibration is what AdaBoost's probabilities are worth on new rows, as log loss.
type calibration struct {
	Breach                float64 // of note 5, over the rounds
	Short, Long, Constant float64
}

func calibrated(ctx context.Context, s split) (c calibration, err error) {
	b, err := trained(ctx, s.x, s.y, 500)
	if err != nil {
		return c, err
	}
	positive := 0.0
	for _, y := range s.y {
		if y > 0 {
			positive += 1 / float64(len(s.y))
		}
	}
	for _, y := range s.told {
		q := positive
		if y < 0 {
			q = 1 - positive
		}
		c.Constant -= math.Log(q) / float64(len(s.told))
	}
	logLoss := func(margin float64) float64 { return boosting.LogitCost.Value(margin) }
	train, test := newSum(s.x, s.y), newSum(s.test, s.told)
	c.Breach = math.Inf(-1)
	for k, o := range b.Rounds() {
		add := func(x []float64) float64 { return o.Alpha * o.Stump.Value(x) }
		train.add(add)
		test.add(add)
		c.Breach = max(c.Breach, train.mean(logLoss)-train.mean(exponential))
		if k < 20 {
			c.Short = test.mean(logLoss)
		}
	}
	c.Long = test.mean(logLoss)
	return c, nil
}

func losses() chart.Chart {
	most := 4.0
	c := chart.Chart{Title: "Losses by margin", X: chart.Axis{Label: "margin yf"},
		Y: chart.Axis{Label: "loss", Max: &most}}
	for _, s := range []struct {
		name string
		of   func(float64) float64
	}{{"exponential", exponential}, {"log loss", func(m float64) float64 { return boosting.LogitCost.Value(m) }},
		{"0-1", func(m float64) float64 {
			if m > 0 {
				return 0
			}
			return 1
		}}} {
		line := chart.Series{Name: s.name, Kind: chart.Line}
		for k := -40; k <= 60; k++ {
			m := float64(k) / 20
			line.X, line.Y = append(line.X, m), append(line.Y, s.of(m))
		}
		c.Series = append(c.Series, line)
	}
	return c
}
