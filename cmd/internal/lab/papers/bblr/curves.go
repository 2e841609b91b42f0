package bblr

import (
	"context"
	"fmt"
	"math"
	"time"

	"hamlet/algos/lab/bblr"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// steepnesses are the γ of figures 2 and 5 that are drawn; the paper has powers of 2 too.
var steepnesses = []float64{1, 2, 8, 64, 1024}

var figure2 = experiment.Experiment{
	Name: "bblr/figure-2", Title: "Figure 2: the smooth 0-1 loss with a weak prior", Where: "section 1, figure 2",
	Claim: "With α = β = n/100 the loss is that of logistic regression near γ = 1, and with growing γ a steeper step " +
		"between two plateaus.",
	Cost: time.Second,
	Run: func(_ context.Context, _ *experiment.Run, p *experiment.Report) error {
		l := bblr.Counts(1, 1, 100)
		p.Figure("plateaus", "a", experiment.Exact(l.A()), "0.1", experiment.Neither).Reason =
			"The caption's a is a misprint: α = β = n/100 and b = .98 give a = .0098, and .1 + .98 is more than 1."
		p.Figure("plateaus", "b", experiment.Exact(l.B()), ".98", experiment.Neither)
		p.AtMost("plateaus", "a + b", experiment.Exact(l.A()+l.B()), "1")
		p.Show("plateaus", "loss on the left, −ln a", experiment.Exact(-math.Log(l.A())))
		p.AtMost("γ = 1", "distance from the logistic loss, |z| ≤ 2", experiment.Exact(largest(func(z float64) float64 {
			return bblr.Loss(l, z, 1) - math.Log1p(math.Exp(-z))
		}, -2, 2)), ".1")
		steeper(p, l)
		p.Chart(losses("The loss of y = +1", l, true))
		mu := chart.Chart{Title: "P(y = +1)", X: inputs, Y: chart.Axis{Label: "μ"}}
		mu.Series = append(mu.Series, curve("logistic regression", func(z float64) float64 {
			return 1 / (1 + math.Exp(-z))
		}, true))
		for _, γ := range steepnesses {
			l.Gamma = γ
			mu.Series = append(mu.Series, curve(fmt.Sprintf("γ = %g", γ), l.Prob, false))
		}
		p.Chart(mu)
		return nil
	},
}

var figure5 = experiment.Experiment{
	Name: "bblr/figure-5", Title: "Figure 5: the smooth 0-1 loss with strong priors", Where: "section 3, figure 5",
	Claim: "With α = β = n/2 the scaled loss tends to the 0-1 loss as γ grows. With α = n and β = 2n the losses of " +
		"the two labels differ.",
	Cost: time.Second,
	Run: func(_ context.Context, _ *experiment.Run, p *experiment.Report) error {
		l := bblr.Counts(1, 1, 2)
		p.Figure("α = β = n/2", "a", experiment.Exact(l.A()), "0.25", experiment.Neither)
		p.Figure("α = β = n/2", "b", experiment.Exact(l.B()), "0.5", experiment.Neither)
		steeper(p, l)
		l.Gamma = steepnesses[len(steepnesses)-1]
		p.AtMost("α = β = n/2", "distance of the scaled loss from the 0-1 loss, |z| ≥ .01, γ = 1024", experiment.Exact(
			math.Max(largest(scaledDistance(l), -8, -.01), largest(scaledDistance(l), .01, 8))), ".001")
		p.Chart(losses("The loss of y = +1, α = β = n/2", l, false))
		l = bblr.Counts(1, 2, 1)
		l.Gamma = 8
		left, right := -math.Log(l.A()), -math.Log(l.C())
		p.Show("α = n, β = 2n", "plateau of wrong positives, −ln a", experiment.Exact(left))
		p.Show("α = n, β = 2n", "plateau of wrong negatives, −ln c", experiment.Exact(right))
		p.AtLeast("α = n, β = 2n", "difference of the plateaus", experiment.Exact(left-right), ".1")
		p.AtMost("α = n, β = 2n", "distance of the losses from the plateaus at z = ±8", experiment.Exact(
			math.Max(math.Abs(bblr.Loss(l, -8, 1)-left), math.Abs(bblr.Loss(l, 8, -1)-right))), "1e-9")
		p.Chart(chart.Chart{Title: "Losses of both labels, α = n, β = 2n, γ = 8", X: inputs,
			Y: chart.Axis{Label: "nats"},
			Series: []chart.Series{
				curve("y = +1", func(z float64) float64 { return bblr.Loss(l, z, 1) }, false),
				curve("y = −1", func(z float64) float64 { return bblr.Loss(l, z, -1) }, false),
				curve("logistic loss, y = +1", func(z float64) float64 { return math.Log1p(math.Exp(-z)) }, true),
			}})
		return nil
	},
}

// steeper adds a row for each doubling of γ: the width of the step, where the loss falls
// from nine tenths to one tenth between its plateaus, halves.
func steeper(p *experiment.Report, l bblr.Likelihood) {
	width := func(γ float64) float64 {
		l.Gamma = γ
		high, low := bblr.Loss(l, -1e6, 1), bblr.Loss(l, 1e6, 1)
		where := func(share float64) float64 {
			lo, hi := -1e3, 1e3
			for range 100 {
				if mid := (lo + hi) / 2; bblr.Loss(l, mid, 1)-low > share*(high-low) {
					lo = mid
				} else {
					hi = mid
				}
			}
			return lo
		}
		return where(.1) - where(.9)
	}
	first := width(1)
	p.Show("step from .9 to .1", "width at γ = 1", experiment.Exact(first))
	for _, γ := range steepnesses[1:] {
		p.AtMost("step from .9 to .1", fmt.Sprintf("width at γ = %g, over that at 1", γ),
			experiment.Exact(width(γ)/first), fmt.Sprint(1/γ)).Slack = 1e-6
	}
}

// scaledDistance is s(L − c) minus the 0-1 loss, with s and c for plateaus at 0 and 1.
func scaledDistance(l bblr.Likelihood) func(z float64) float64 {
	high, low := -math.Log(l.A()), -math.Log(1-l.C())
	return func(z float64) float64 {
		scaled := (bblr.Loss(l, z, 1) - low) / (high - low)
		if z <= 0 {
			return scaled - 1
		}
		return scaled
	}
}

// largest returns the largest |f| on a grid of [lo, hi].
func largest(f func(z float64) float64, lo, hi float64) (most float64) {
	const n = 1000
	for i := range n + 1 {
		most = math.Max(most, math.Abs(f(lo+(hi-lo)*float64(i)/n)))
	}
	return most
}

func losses(title string, l bblr.Likelihood, logistic bool) chart.Chart {
	c := chart.Chart{Title: title, X: inputs, Y: chart.Axis{Label: "nats"}}
	if logistic {
		c.Series = append(c.Series, curve("logistic loss", func(z float64) float64 {
			return math.Log1p(math.Exp(-z))
		}, true))
	}
	for _, γ := range steepnesses {
		l.Gamma = γ
		c.Series = append(c.Series, curve(fmt.Sprintf("γ = %g", γ), func(z float64) float64 {
			return bblr.Loss(l, z, 1)
		}, false))
	}
	return c
}

// widest bounds wᵀx in the pictures.
var widest, narrowest = 6.0, -6.0

var inputs = chart.Axis{Label: "wᵀx", Min: &narrowest, Max: &widest}

// curve draws f from −6 to 6.
func curve(name string, f func(z float64) float64, reference bool) chart.Series {
	s := chart.Series{Name: name, Kind: chart.Line, Reference: reference}
	for i := range 241 {
		z := float64(i-120) / 20
		s.X, s.Y = append(s.X, z), append(s.Y, f(z))
	}
	return s
}
