package slides

import (
	"context"
	"math"
	"time"

	"hamlet/algos/boost"
	"hamlet/algos/lab/boosting"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// anyboost runs gradient descent in the space of functions with each cost and step.
var anyboost = experiment.Experiment{
	Name: "slides/anyboost", Title: "AnyBoost: gradient descent with each cost", Where: "slides 54 to 60",
	Claim: "Descent along the weak learner of least weighted error lowers the cost in every round. With the " +
		"exponential cost the weights are AdaBoost's. With a bounded, Lipschitz differentiable cost and steps −⟨∇C, " +
		"h⟩/(L‖h‖²) the cost converges, and −⟨∇C, h⟩ goes to 0.",
	Sets: []string{"ionosphere", "pima"}, Cost: 8 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		for _, name := range []string{"ionosphere", "pima"} {
			x, y, err := r.Data.Table(name)
			if err != nil {
				return err
			}
			runs, err := experiment.Steps(ctx, r, name, len(ways), func(ctx context.Context, i int) (slope, error) {
				return slide(ctx, divide(x, y, r.Rand(name, 0)), ways[i].cost, ways[i].step)
			})
			if err != nil {
				return err
			}
			for i := range runs {
				runs[i].report(p, name+", "+ways[i].name, ways[i].cost, ways[i].step)
			}
			if name == "pima" {
				p.Chart(over(chart.Chart{Title: "The cost falls in every round",
					Y: chart.Axis{Label: "cost", Log: true, Min: experiment.End(.1)}}, runs, func(v slope) []float64 {
					return v.Cost
				}))
				p.Chart(over(chart.Chart{Title: "−⟨∇C, h⟩ goes to 0",
					Y: chart.Axis{Label: "−⟨∇C, h⟩", Log: true}}, runs,
					func(v slope) []float64 { return v.Descent }))
			}
		}
		p.Note("Slide 57 prints C(f) without the cost function, and slide 59 divides D by a wrong sum. Here C(f) is " +
			"the mean of C(yf), and D = C′(yf)/ΣC′(yf).")
		p.Note("The exponential cost is neither bounded nor Lipschitz: the theorem does not speak of it. For " +
			"ln(1+e^(−2z)) the L of the theorem is 1, for 1−tanh z it is .77.")
		p.Note("Line search from f = 0 with 1−tanh z finds no minimum, because the slope is even there. The run ends " +
			"after a round. It is not shown.")
		return nil
	},
}

// ways are the costs with the steps that suit them.
var ways = []struct {
	name string
	cost boosting.Cost
	step boosting.Step
}{
	{"exponential cost, line search", boosting.ExpCost, boosting.LineStep},
	{"logistic cost, line search", boosting.LogitCost, boosting.LineStep},
	{"logistic cost, the theorem's step", boosting.LogitCost, boosting.TheoremStep},
	{"tanh cost, the theorem's step", boosting.TanhCost, boosting.TheoremStep},
}

// A slope is a run of AnyBoost.
type slope struct {
	Cost, Descent []float64 // the cost after each round; −⟨∇C, h⟩ before it
	Test          float64   // test error at the end
	Rise          float64   // the largest rise of the cost in a round
	Off           float64   // the largest difference of the run's cost and the mean of C(yf)
	Inner         float64   // the largest difference of −⟨∇C, h⟩ and its definition
	AdaBoost      float64   // the largest difference of α to AdaBoost's, and of D
}

func slide(ctx context.Context, s split, cost boosting.Cost, step boosting.Step) (v slope, err error) {
	const rounds = 2000
	d, err := boost.NewData(s.x)
	if err != nil {
		return v, err
	}
	b, err := boosting.NewAnyBoost(d, s.y, boosting.AnyBoostConfig{Rounds: rounds, Cost: cost, Step: step})
	if err != nil {
		return v, err
	}
	if err := b.Train(ctx); err != nil {
		return v, err
	}
	train, test := newSum(s.x, s.y), newSum(s.test, s.told)
	last := train.mean(cost.Value)
	v.Rise = math.Inf(-1)
	for _, o := range b.Rounds() {
		inner := 0.0
		for i, x := range s.x {
			inner += cost.Slope(s.y[i]*train.f[i]) * s.y[i] * o.Stump.Value(x) / float64(len(s.x))
		}
		apart(&v.Inner, o.Descent, inner)
		add := func(x []float64) float64 { return o.Alpha * o.Stump.Value(x) }
		train.add(add)
		test.add(add)
		now := train.mean(cost.Value)
		apart(&v.Off, o.Cost, now)
		v.Rise = max(v.Rise, now-last)
		last = now
		v.Cost, v.Descent = append(v.Cost, now), append(v.Descent, o.Descent)
	}
	v.Test = test.errors()
	if cost == boosting.ExpCost {
		ada, err := trained(ctx, s.x, s.y, rounds)
		if err != nil {
			return v, err
		}
		any := b.Rounds()
		for k, o := range ada.Rounds() {
			if k < len(any) {
				apart(&v.AdaBoost, any[k].Alpha, o.Alpha)
			}
		}
		if len(any) != len(ada.Rounds()) {
			v.AdaBoost = math.Abs(float64(len(any) - len(ada.Rounds())))
		}
	}
	return v, nil
}

func (v *slope) report(p *experiment.Report, group string, cost boosting.Cost, step boosting.Step) {
	n := len(v.Cost)
	p.Show(group, "rounds", experiment.Exact(float64(n)))
	p.Show(group, "cost at the end", experiment.Exact(v.Cost[n-1]))
	p.Show(group, "test error at the end", experiment.Exact(v.Test))
	p.Never(group, "largest rise of the cost in a round", v.Rise, "0")
	p.Never(group, "largest difference of the cost and the mean of C(yf)", v.Off, "0")
	p.Never(group, "largest difference of −⟨∇C, h⟩ and its definition", v.Inner, "0")
	if cost == boosting.ExpCost {
		p.Never(group, "largest difference of α to AdaBoost's", v.AdaBoost, "0")
	}
	if step == boosting.TheoremStep {
		p.Show(group, "−⟨∇C, h⟩ after 2,000 rounds, as a share of the first",
			experiment.Exact(v.Descent[n-1]/v.Descent[0]))
		p.AtMost(group, "−⟨∇C, h⟩ after 2,000 rounds minus the first",
			experiment.Exact(v.Descent[n-1]-v.Descent[0]), "0")
		late := v.Cost[n/2] - v.Cost[n-1]
		p.Show(group, "what the cost falls in the second half of the rounds, as a share of all",
			experiment.Exact(late/(v.Cost[0]-v.Cost[n-1])))
	}
}

// over draws a number of each run after each round.
func over(c chart.Chart, runs []slope, of func(slope) []float64) chart.Chart {
	c.Caption, c.X = "AnyBoost on pima.", chart.Axis{Label: "round", Log: true}
	for i, v := range runs {
		c.Series = append(c.Series, experiment.Line(ways[i].name, of(v)))
	}
	return c
}
