package slides

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// margins is about the margins of AdaBoost and the bounds on its error on new rows.
var margins = experiment.Experiment{
	Name: "slides/margins", Title: "Margins, the margin bound, the VC bound and generalisation",
	Where: "slides 19 to 23",
	Claim: "The generalisation error is at most the training error plus Õ(√(Td/m)), which grows with the rounds T. " +
		"It is also at most the share of margins up to θ plus Õ(√(d/mθ²)), which does not. With more rounds the low " +
		"margins grow, also when the training error is 0.",
	Sets: []string{"ionosphere", "letter-ab"}, Cost: 12 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		for _, name := range []string{"ionosphere", "letter-ab"} {
			x, y, err := r.Data.Table(name)
			if err != nil {
				return err
			}
			runs, err := experiment.Steps(ctx, r, name, 5, func(ctx context.Context, i int) (spread, error) {
				return spreadOf(ctx, divide(x, y, r.Rand(name, i)))
			})
			if err != nil {
				return err
			}
			reportMargins(p, name, runs)
			if name == "letter-ab" {
				p.Chart(runs[0].chart("letters A and B, one split"))
			}
		}
		all, err := experiment.Steps(ctx, r, "many rows", len(lengths),
			func(ctx context.Context, i int) (generalisation, error) {
				return generalise(ctx, r, lengths[i])
			})
		if err != nil {
			return err
		}
		reportGeneralisation(p, all)
		p.Note("The slides hide constants in Õ. Here they are those of Vapnik and Chervonenkis (1971) and of " +
			"Koltchinskii and Panchenko (2002), δ = .05. Both say nothing on sets of some hundred rows, where they " +
			"are above 1.")
		p.Note("The bounds on new rows are compared on 40,000 synthetic rows of two features, with the error on as " +
			"many others.")
		return nil
	},
}

// stages are the rounds whose margins are shown (slides 22 and 23).
var stages = []int{5, 20, 100, 1000}

// thetas are the margins at which the distribution is looked at.
var thetas = []float64{-.5, -.2, -.1, 0, .05, .1, .2, .3, .5, .8}

// A spread is the distribution of margins at each stage.
type spread struct {
	Margins [][]float64 // of the training rows, ascending
	Test    []float64   // test error
	Above   float64     // the largest share(θ) − e^(θΣα)∏Z
}

func spreadOf(ctx context.Context, s split) (v spread, err error) {
	d, err := boost.NewData(s.x)
	if err != nil {
		return v, err
	}
	b, err := boost.NewAdaBoost(d, s.y, boost.AdaBoostConfig{Rounds: stages[len(stages)-1]})
	if err != nil {
		return v, err
	}
	v.Above = math.Inf(-1)
	done := 0
	for _, stage := range stages {
		for done < stage && b.Round() {
			done++
		}
		if err := ctx.Err(); err != nil {
			return v, err
		}
		rounds := b.Rounds()
		train, test := newSum(s.x, s.y), newSum(s.test, s.told)
		alphas, product := 0.0, 1.0
		for _, o := range rounds {
			add := func(x []float64) float64 { return o.Alpha * o.Stump.Value(x) }
			train.add(add)
			test.add(add)
			alphas += o.Alpha
			product *= 2 * math.Sqrt(o.Epsilon*(1-o.Epsilon))
		}
		var m []float64
		for i, f := range train.f {
			m = append(m, train.y[i]*f/alphas)
		}
		slices.Sort(m)
		for _, θ := range thetas {
			v.Above = max(v.Above, share(m, θ)-math.Exp(θ*alphas)*product)
		}
		v.Margins, v.Test = append(v.Margins, m), append(v.Test, test.errors())
	}
	return v, nil
}

// share returns the part of the ascending margins that is at most θ.
func share(m []float64, θ float64) float64 {
	k, _ := slices.BinarySearchFunc(m, θ, func(v, θ float64) int {
		if v <= θ {
			return -1
		}
		return 1
	})
	return float64(k) / float64(len(m))
}

func reportMargins(p *experiment.Report, name string, runs []spread) {
	above := experiment.Most(runs, func(v spread) float64 { return v.Above }).Value
	p.Never(name, "largest share of margins up to θ minus e^(θΣα)∏Z, over θ and T", above, "0")
	for k, stage := range stages {
		p.Show(name, "least margin "+after(stage),
			experiment.Over(runs, func(v spread) float64 { return v.Margins[k][0] }))
		p.Show(name, "test error "+after(stage), experiment.Over(runs, func(v spread) float64 { return v.Test[k] }))
	}
	moved := func(v spread) float64 { return v.Margins[len(stages)-1][0] - v.Margins[0][0] }
	p.AtLeast(name, fmt.Sprintf("least margin after %d rounds minus that after %d", stages[len(stages)-1], stages[0]),
		experiment.Over(runs, moved), "0")
}

func after(n int) string { return fmt.Sprintf("after %d rounds", n) }

func (v *spread) chart(of string) chart.Chart {
	left, right := -1.0, 1.0
	c := chart.Chart{Title: "Cumulative distribution of margins", Caption: "AdaBoost over stumps, " + of + ".",
		X: chart.Axis{Label: "margin", Min: &left, Max: &right}, Y: chart.Axis{Label: "share of the rows"}}
	for k, stage := range stages {
		s := chart.Series{Name: fmt.Sprintf("T = %d", stage), Kind: chart.Steps}
		for at := -100; at <= 100; at++ {
			θ := float64(at) / 100
			s.X, s.Y = append(s.X, θ), append(s.Y, share(v.Margins[k], θ))
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// lengths are the numbers of rounds at which the bounds on new rows are compared.
var lengths = []int{1, 3, 10, 30, 100, 300, 1000}

// A generalisation is AdaBoost on many rows after so many rounds.
type generalisation struct{ Train, Test, VC, Margin float64 }

const (
	manyRows = 40_000
	theta    = .2
	delta    = .05
)

// generalise trains on synthetic rows of two features, uniform on a square, with the label
// of x₁+x₂ > 0.
func generalise(ctx context.Context, r *experiment.Run, rounds int) (g generalisation, err error) {
	rng := r.Rand("square", 0)
	draw := func() (x [][]float64, y []float64) {
		for range manyRows {
			a, b := 2*rng.Float64()-1, 2*rng.Float64()-1
			x, y = append(x, []float64{a, b}), append(y, math.Copysign(1, a+b))
		}
		return x, y
	}
	x, y := draw()
	fresh, told := draw()
	b, err := trained(ctx, x, y, rounds)
	if err != nil {
		return g, err
	}
	test := newSum(fresh, told)
	for _, o := range b.Rounds() {
		test.add(func(x []float64) float64 { return o.Alpha * o.Stump.Value(x) })
	}
	last := b.Rounds()[len(b.Rounds())-1]
	g.Train, g.Test = last.TrainError, test.errors()
	g.VC = boosting.VCBound(g.Train, len(b.Rounds()), manyRows, 2, delta)
	g.Margin = boosting.MarginsOf(b, y, nil).ErrorBound(theta, delta)
	return g, nil
}

func reportGeneralisation(p *experiment.Report, all []generalisation) {
	vc, margin := math.Inf(-1), math.Inf(-1)
	c := chart.Chart{Title: "Error on new rows and its bounds",
		Caption: fmt.Sprintf("%d synthetic rows of two features; θ = %v, δ = %v. A bound above 1 is drawn at 1.",
			manyRows, theta, delta),
		X: chart.Axis{Label: "rounds", Log: true}, Y: chart.Axis{Label: "error or bound"}}
	lines := [4]chart.Series{{Name: "training error"}, {Name: "error on new rows"}, {Name: "VC bound"},
		{Name: "margin bound"}}
	for k, g := range all {
		vc, margin = max(vc, g.Test-g.VC), max(margin, g.Test-g.Margin)
		for j, v := range []float64{g.Train, g.Test, min(g.VC, 1), min(g.Margin, 1)} {
			lines[j].Kind = chart.Line
			lines[j].X, lines[j].Y = append(lines[j].X, float64(lengths[k])), append(lines[j].Y, v)
		}
	}
	c.Series = lines[:]
	const group = "error on new rows"
	p.Never(group, "largest error on new rows minus the VC bound", vc, "0")
	p.Never(group, "largest error on new rows minus the margin bound", margin, "0")
	first, last := all[2], all[len(all)-1] // T = 10 and 1,000
	p.AtLeast(group, "VC bound after 1,000 rounds minus that after 10, less what the training error adds",
		experiment.Exact(last.VC-last.Train-(first.VC-first.Train)), "0")
	p.Show(group, "error on new rows after 1,000 rounds", experiment.Exact(last.Test))
	p.Show(group, "margin bound after 1,000 rounds", experiment.Exact(last.Margin))
	p.Show(group, "VC bound after 1,000 rounds", experiment.Exact(last.VC))
	p.Chart(c)
}
