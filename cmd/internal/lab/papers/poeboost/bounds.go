package poeboost

import (
	"context"
	"fmt"
	"math"
	"time"

	"hamlet/algos/boost"
	"hamlet/algos/lab/poe"
	"hamlet/algos/poeboost"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// bounds follows the paper's inequalities through runs of POEBoost.CS and POEBoost.DS.
var bounds = experiment.Experiment{
	Name: "poeboost/bounds", Title: "Equations 6, 13, 16, 30, 31 and 32 along a run",
	Where: "sections 3 to 5, appendices A and B",
	Claim: "An expert joins only if Σ D/P is at most 2 (6), so the likelihood of the training data never falls. For " +
		"hypotheses that answer with probabilities, two chords bound (6) from above (30), and the bound is at most 2 " +
		"for ε_c ≤ P_e ≤ ½ (31, 32).",
	Sets: []string{"ionosphere", "pima", "wdbc"}, Cost: 2 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		const rounds = 200
		for _, name := range []string{"ionosphere", "pima", "wdbc"} {
			x, y, err := r.Data.Table(name)
			if err != nil {
				return err
			}
			runs, err := experiment.Steps(ctx, r, name, 3, func(ctx context.Context, i int) (course, error) {
				switch i {
				case 0:
					return follow(ctx, x, y, poeboost.ContinuousConfig{Rounds: rounds, Learner: poeboost.Step})
				case 1:
					return follow(ctx, x, y, poeboost.ContinuousConfig{Rounds: rounds})
				}
				return followDiscrete(ctx, x, y, rounds)
			})
			if err != nil {
				return err
			}
			for i, learner := range []string{"one step", "greatest likelihood"} {
				runs[i].report(p, fmt.Sprintf("POEBoost.CS, %s, %s", name, learner))
			}
			runs[2].reportDiscrete(p, "POEBoost.DS, "+name)
			if name == "pima" {
				p.Chart(runs[0].chart())
				p.Chart(runs[2].likelihoods())
			}
		}
		p.Note("Printed without the divisor Q of (8) and (9), algorithms 2 and 3 are AdaBoost, and (6) says nothing " +
			"about the likelihood. With Q, as derived in the text, it never falls.")
		p.Note("All weights, probabilities and sides are computed again from the experts that a run reports, by the " +
			"printed equations.")
		return nil
	},
}

// A course is what happened in a run: the sides of the inequalities after each round, and
// how far any of them was violated.
type course struct {
	Constraint, Bound, Likelihood []float64 // (6), (30), the mean log likelihood
	Printed                       []float64 // the likelihood without Q, of POEBoost.DS
	Chords                        float64   // the largest (6) − (30)
	Floor                         float64   // the least P_e − ε_c
	Half                          float64   // the largest P_e
	Expert                        float64   // the largest difference of (13) and the ensemble's expert
	Epsilon                       float64   // the largest difference of (32) and the run's ε_c
	Recursion                     float64   // the largest difference of (8) and (7)
	Fall                          float64   // the largest fall of the likelihood
	Greedy                        float64   // the largest |(6) − 2| at P_e = ε
	Discrete                      float64   // the largest difference of (6) and 1 + 2√(ε(1−ε))
	AdaBoost                      float64   // the largest difference to AdaBoost's α, without Q
}

// apart notes how far two numbers lie apart.
func apart(most *float64, a, b float64) { *most = max(*most, math.Abs(a-b)) }

// follow runs POEBoost.CS and computes every round's equations from its hypothesis.
func follow(ctx context.Context, x [][]float64, y []float64, cfg poeboost.ContinuousConfig) (c course, err error) {
	d, err := boost.NewData(x)
	if err != nil {
		return c, err
	}
	b, err := poeboost.NewContinuous(d, y, cfg)
	if err != nil {
		return c, err
	}
	n := len(y)
	weights, correct, expert := make([]float64, n), make([]float64, n), make([]float64, n)
	prev, recursive := constant(n, .5), constant(n, 1/float64(n))
	last := math.Log(.5)
	c.Floor, c.Chords, c.Fall = math.Inf(1), math.Inf(-1), math.Inf(-1)
	for k := 0; ; k++ {
		b.WeightsTo(weights)
		if err := ctx.Err(); err != nil {
			return c, err
		}
		if !b.Round() {
			break
		}
		rounds := b.Rounds()
		o := rounds[k]
		for i, row := range x {
			correct[i] = sigmoid(y[i] * o.Hypothesis.LogOdds(row))
			apart(&c.Recursion, recursive[i], weights[i])
		}
		poeboost.ExpertTo(expert, correct, o.ErrorRate) // (13)
		opinion := poeboost.Opinion{Univariate: o.Hypothesis, ErrorRate: o.ErrorRate}
		for i, row := range x {
			apart(&c.Expert, expert[i], sigmoid(y[i]*opinion.LogOdds(row)))
		}
		constraint, bound := poeboost.Constraint(weights, expert), poe.Bound(weights, correct, o.ErrorRate)
		c.Constraint, c.Bound = append(c.Constraint, constraint), append(c.Bound, bound)
		c.Chords = max(c.Chords, constraint-bound)
		ε := poe.ConfidenceError(weights, correct) // (32)
		apart(&c.Epsilon, ε, o.ConfidenceError)
		c.Floor, c.Half = min(c.Floor, o.ErrorRate-ε), max(c.Half, o.ErrorRate)
		poe.NextWeightsTo(recursive, recursive, expert, prev) // (8)
		last = c.join(prev, expert, last)
	}
	return c, nil
}

// join multiplies the expert into the product (2), and notes the likelihood and its fall.
func (c *course) join(prev, expert []float64, last float64) (likelihood float64) {
	for i, p := range expert {
		prev[i] = p * prev[i] / (p*prev[i] + (1-p)*(1-prev[i]))
		likelihood += math.Log(prev[i]) / float64(len(prev))
	}
	c.Likelihood = append(c.Likelihood, likelihood)
	c.Fall = max(c.Fall, last-likelihood)
	return likelihood
}

// followDiscrete runs POEBoost.DS with the minimising P_e, then with the paper's, with and
// without Q, and AdaBoost.
func followDiscrete(ctx context.Context, x [][]float64, y []float64, rounds int) (c course, err error) {
	d, err := boost.NewData(x)
	if err != nil {
		return c, err
	}
	run := func(cfg poeboost.DiscreteConfig) ([]poeboost.DiscreteRound, error) {
		cfg.Rounds = rounds
		b, err := poeboost.NewDiscrete(d, y, cfg)
		if err != nil {
			return nil, err
		}
		err = b.Train(ctx)
		return b.Rounds(), err
	}
	minimising, err := run(poeboost.DiscreteConfig{})
	if err != nil {
		return c, err
	}
	n := len(y)
	weights, prev, expert := constant(n, 1/float64(n)), constant(n, .5), make([]float64, n)
	last := math.Log(.5)
	c.Fall = math.Inf(-1)
	for _, o := range minimising {
		ε := 0.0
		for i, row := range x {
			if expert[i] = 1 - o.ErrorRate; o.Stump.Value(row) != y[i] {
				expert[i] = o.ErrorRate
				ε += weights[i]
			}
		}
		constraint := poeboost.Constraint(weights, expert)
		c.Constraint = append(c.Constraint, constraint)
		apart(&c.Discrete, constraint, 1+2*math.Sqrt(ε*(1-ε)))
		apart(&c.Epsilon, ε, o.Epsilon)
		poe.NextWeightsTo(weights, weights, expert, prev)
		last = c.join(prev, expert, last)
	}
	greedy, err := run(poeboost.DiscreteConfig{ErrorRate: poeboost.Greedy})
	if err != nil {
		return c, err
	}
	for _, o := range greedy {
		if o.Epsilon <= 1e-10 {
			continue // the run counts it as 10⁻¹⁰: ε = 0 would make α infinite
		}
		apart(&c.Greedy, o.Constraint, 2)
	}
	printed, err := run(poeboost.DiscreteConfig{ErrorRate: poeboost.Greedy, Printed: true})
	if err != nil {
		return c, err
	}
	ada, err := boost.NewAdaBoost(d, y, boost.AdaBoostConfig{Rounds: rounds})
	if err != nil {
		return c, err
	}
	if err := ada.Train(ctx); err != nil {
		return c, err
	}
	for k, o := range ada.Rounds() {
		c.Printed = append(c.Printed, printed[k].MeanLogLikelihood)
		apart(&c.AdaBoost, o.Alpha, printed[k].Alpha)
	}
	return c, nil
}

func constant(n int, v float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = v
	}
	return all
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

func (c *course) report(p *experiment.Report, group string) {
	p.Show(group, "rounds", experiment.Exact(float64(len(c.Constraint))))
	p.Never(group, "largest left side of (6)", largest(c.Constraint), "2")
	p.Never(group, "largest (6) minus its bound (30)", c.Chords, "0")
	p.Never(group, "largest right side of (30)", largest(c.Bound), "2")
	p.AtLeast(group, "least P_e − ε_c (31)", experiment.Exact(c.Floor), "0").Slack = experiment.Rounding
	p.Never(group, "largest P_e (31)", c.Half, "0.5")
	p.Never(group, "largest difference of (32) and the run's ε_c", c.Epsilon, "0")
	p.Never(group, "largest difference of (13) and the expert's probability", c.Expert, "0")
	p.Never(group, "largest difference of the recursion (8) and (7)", c.Recursion, "0")
	p.Never(group, "largest fall of the mean log likelihood (5)", c.Fall, "0")
}

func (c *course) reportDiscrete(p *experiment.Report, group string) {
	p.Show(group, "rounds", experiment.Exact(float64(len(c.Constraint))))
	p.Never(group, "largest left side of (6)", largest(c.Constraint), "2")
	p.Never(group, "largest difference of (6) and 1 + 2√(ε(1−ε)), at the P_e that minimises it", c.Discrete, "0")
	p.Never(group, "largest difference of (6) and 2, at the paper's P_e = ε (16)", c.Greedy, "0")
	p.Never(group, "largest fall of the mean log likelihood (5)", c.Fall, "0")
	p.Never(group, "largest difference of α to AdaBoost's, without Q", c.AdaBoost, "0")
	p.Show(group, "mean log likelihood at the end, with Q and the minimising P_e",
		experiment.Exact(c.Likelihood[len(c.Likelihood)-1]))
	p.Show(group, "mean log likelihood at the end, without Q", experiment.Exact(c.Printed[len(c.Printed)-1]))
}

func largest(v []float64) float64 {
	most := math.Inf(-1)
	for _, a := range v {
		most = max(most, a)
	}
	return most
}

func (c *course) chart() chart.Chart {
	most := 2.0
	pictured := chart.Chart{Title: "The constraint along a run", Caption: "POEBoost.CS on pima, one gradient step. " +
		"Both sides stay at or below 2.",
		X: chart.Axis{Label: "round"}, Y: chart.Axis{Label: "side", Max: &most}}
	pictured.Series = []chart.Series{experiment.Line("left side of (6)", c.Constraint),
		experiment.Line("its bound (30)", c.Bound)}
	return pictured
}

func (c *course) likelihoods() chart.Chart {
	pictured := chart.Chart{Title: "What the divisor Q does", Caption: "Training likelihood of POEBoost.DS on pima.",
		X: chart.Axis{Label: "round"}, Y: chart.Axis{Label: "mean log likelihood"}}
	pictured.Series = []chart.Series{experiment.Line("with Q, minimising P_e", c.Likelihood),
		experiment.Line("as printed: AdaBoost", c.Printed)}
	return pictured
}
