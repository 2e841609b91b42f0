package viboost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"hamlet/algos/lab/vlog"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// figure5 is how the prior shrinks the weights of base classifiers.
var figure5 = experiment.Experiment{
	Name: "viboost/figure-5", Title: "Figure 5: the prior shrinks weights",
	Where: "section 6, equation 18 and figure 5",
	Claim: "With μ₀ = τ = 1 and no noise the weight of a base classifier of error ε is ½ ln((1/Z+1−ε)/(1/Z+ε)): " +
		"AdaBoost's, shrunk by the phantom examples, the more so the smaller the exponential loss Z is.",
	Cost: time.Second,
	Run: func(_ context.Context, r *experiment.Run, p *experiment.Report) error {
		const n = 200
		rng := r.Rand("example", 0)
		worst := 0.0 // relative difference of (17) and (18)
		for range 200 {
			d := vlog.Density{Beta: []float64{1, -1}, Gamma: []float64{0, 0}, Mu: []float64{1, 1}}
			var z, wrong float64
			spread := math.Exp(rng.NormFloat64())
			for range n {
				// A margin yH(x) and whether h errs, and so βₙ = −yh and γₙ = −Hh.
				margin, yh := spread*(rng.NormFloat64()+.5), 1.0
				if rng.Float64() < .3 {
					yh = -1
				}
				d.Beta, d.Gamma, d.Mu = append(d.Beta, -yh), append(d.Gamma, -margin*yh), append(d.Mu, 1)
				z += math.Exp(-margin)
				if yh < 0 {
					wrong += math.Exp(-margin)
				}
			}
			mode, ok := d.ApproxMode(1)
			if !ok {
				return errors.New("(17) has no mode")
			}
			worst = max(worst, math.Abs(mode-shrunk(wrong/z, z)))
		}
		p.AtMost("200 random rounds of 200 examples", "largest difference of (17) and (18)", experiment.Exact(worst),
			"1e-12")
		picture := chart.Chart{Title: "Weight of a base classifier", Caption: "Equation 18. AdaBoost has no 1/Z.",
			X: chart.Axis{Label: "weighted error ε"}, Y: chart.Axis{Label: "weight α"}}
		for _, z := range []float64{math.Inf(1), 100, 10, 1, .1} {
			line := chart.Series{Name: "AdaBoost", Kind: chart.Line}
			if !math.IsInf(z, 0) {
				line.Name = fmt.Sprintf("Z = %g", z)
			}
			grows := 0.0 // largest excess over AdaBoost's weight
			for i := 1; i < 100; i++ {
				ε := float64(i) / 100
				line.X, line.Y = append(line.X, ε), append(line.Y, shrunk(ε, z))
				grows = max(grows, math.Abs(shrunk(ε, z))-math.Abs(shrunk(ε, math.Inf(1))))
			}
			picture.Series = append(picture.Series, line)
			if !math.IsInf(z, 0) {
				p.AtMost(line.Name, "largest excess of a weight over AdaBoost's", experiment.Exact(grows), "1e-12")
				p.Show(line.Name, "weight at ε = .1 (AdaBoost 1.0986)", experiment.Exact(shrunk(.1, z)))
			}
		}
		p.Chart(picture)
		return nil
	},
}

// shrunk is equation 18.
func shrunk(ε, z float64) float64 { return .5 * math.Log((1/z+1-ε)/(1/z+ε)) }

// channel is S.2: a channel that inverts labels is one that replaces them.
var channel = experiment.Experiment{
	Name: "viboost/channel", Title: "S.2: inverted labels are noise of a grade", Where: "S.2, equations 38 to 54",
	Claim: "A channel that keeps, inverts or redraws a label equals one that keeps it with probability θ and else " +
		"draws it. On balanced data the ratio of true to noisy labels is (1+θ)/(1−θ), and 1 + 2η₁/η₂ at the mean of " +
		"the posterior.",
	Cost: time.Second,
	Run: func(_ context.Context, r *experiment.Run, p *experiment.Report) error {
		var plus, minus, ratio, posterior, outside float64
		const channels = 1000
		kept := 0
		for i := range channels {
			rng := r.Rand("channel", i)
			a, b, c, s := rng.ExpFloat64(), rng.ExpFloat64(), rng.ExpFloat64(), rng.Float64()
			sum := a + b + c
			ρ1, ρ3 := a/sum, c/sum
			θ := 2*ρ1 + ρ3 - 1 // which is ρ1 − ρ2
			if θ < 0 {
				outside++ // more inverted than kept: S.2 has no such θ
				continue
			}
			kept++
			drawn := (1 - ρ1 - ρ3*(1-s)) / (2 - 2*ρ1 - ρ3)
			ρ2 := b / sum
			plus = max(plus, math.Abs(θ+(1-θ)*drawn-(ρ1+ρ3*s)), math.Abs((1-θ)*(1-drawn)-(ρ2+ρ3*(1-s))))
			minus = max(minus, math.Abs(θ+(1-θ)*(1-drawn)-(ρ1+ρ3*(1-s))), math.Abs((1-θ)*drawn-(ρ2+ρ3*s)))
			// (54): θ at the mean of a Beta(η₁, η₂).
			η1, η2 := 100*rng.Float64(), 1+100*rng.Float64()
			θ54 := η1 / (η1 + η2)
			posterior = max(posterior, math.Abs((1+θ54)/(1-θ54)/(1+2*η1/η2)-1))
			wrong := (1 - θ) * (1 - drawn)  // of true +1
			wrong2 := (1 - θ) * drawn       // of true −1
			counted := (2 - wrong - wrong2) // per two examples, one of each class
			ratio = max(ratio, math.Abs(counted/(wrong+wrong2)-(1+θ)/(1-θ))/((1+θ)/(1-θ)))
		}
		group := fmt.Sprintf("%d channels drawn at random", kept)
		p.AtMost(group, "largest error of P(y | +1), (38) to (44)", experiment.Exact(plus), "1e-12")
		p.AtMost(group, "largest error of P(y | −1), (45) to (52)", experiment.Exact(minus), "1e-12")
		p.AtMost(group, "largest relative error of the ratio of true to noisy labels (53)",
			experiment.Exact(ratio), "1e-9")
		p.AtMost(group, "largest relative error of 1 + 2η₁/η₂ (54)", experiment.Exact(posterior), "1e-12")
		p.Show("all channels", "share that inverts more than it keeps", experiment.Exact(outside/channels))
		p.Note("A channel can be written with a θ only if it keeps more labels than it inverts (ρ₁ ≥ ρ₂). The others " +
			"have none.")
		return nil
	},
}
