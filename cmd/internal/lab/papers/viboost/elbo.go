package viboost

import (
	"context"
	"fmt"
	"time"

	"hamlet/algos/viboost"
	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/lab/experiment"
)

// A climb is how the evidence lower bound moved in one run.
type climb struct {
	ELBO  []float64 // after each round
	Falls int       // rounds after which it was lower
	Most  float64   // the largest fall
}

// elbo looks for falls of the evidence lower bound.
var elbo = experiment.Experiment{
	Name: "viboost/elbo", Title: "Section 7: when the evidence lower bound falls", Where: "section 7, S.5",
	Claim: "The bound rises most in the first rounds. Later changes are small and at times negative; the paper suspects the mode in place of an expectation.",
	Cost:  14 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		const rounds, draws = 20, 8
		p := &experiment.Report{}
		picture := chart.Chart{Title: "Evidence lower bound", Caption: fmt.Sprintf("Step data, θ = .6, mean of %d runs; equation 91 with constant 0.", draws),
			X: chart.Axis{Label: "round"}, Y: chart.Axis{Label: "bound, nats"}}
		for _, v := range []struct {
			name string
			cfg  viboost.Config
		}{
			{"mode by (17), E(c) at the mode", viboost.Config{}},
			{"exact mode, E(c) by quadrature", viboost.Config{Weighting: viboost.Exact, Types: viboost.Expectation}},
		} {
			v.cfg.Rounds, v.cfg.Bound = rounds, true
			all, err := experiment.Steps(ctx, r, v.name, draws, func(ctx context.Context, run int) (c climb, err error) {
				x, y := drawStep(r.Rand("step", run), .6)
				b, err := trained(ctx, x, y, v.cfg)
				if err != nil {
					return c, err
				}
				for i, round := range b.Rounds() {
					c.ELBO = append(c.ELBO, round.ELBO)
					if i == 0 {
						continue
					}
					// Rounding of a sum of a hundred terms.
					if fall := c.ELBO[i-1] - round.ELBO; fall > 1e-8 {
						c.Falls++
						c.Most = max(c.Most, fall)
					}
				}
				return c, nil
			})
			if err != nil {
				return nil, err
			}
			line := chart.Series{Name: v.name, Kind: chart.Line}
			falls, most, first, last := 0, 0.0, 0.0, 0.0
			for k := range rounds {
				sum, runs := 0.0, 0.0
				for _, c := range all {
					if k < len(c.ELBO) {
						sum += c.ELBO[k]
						runs++
					}
				}
				if runs > 0 {
					line.X, line.Y = append(line.X, float64(k+1)), append(line.Y, sum/runs)
				}
			}
			for _, c := range all {
				falls += c.Falls
				most = max(most, c.Most)
				half := len(c.ELBO) / 2
				first += (c.ELBO[half] - c.ELBO[0]) / draws
				last += (c.ELBO[len(c.ELBO)-1] - c.ELBO[half]) / draws
			}
			picture.Series = append(picture.Series, line)
			p.Claim(v.name, "mean rise in the first half, minus that in the second", experiment.Exact(first-last), experiment.AtLeast, "0")
			p.Show(v.name, "rounds after which the bound fell", experiment.Exact(float64(falls)))
			p.Show(v.name, "largest fall between rounds, nats", experiment.Exact(most))
		}
		// Within a stage, from φ = ½: coordinate ascent with the exact expectation.
		worst, err := experiment.Steps(ctx, r, "stage", draws, func(ctx context.Context, run int) (float64, error) {
			x, y := drawStep(r.Rand("step", run), .6)
			h, before := make([]float64, len(y)), make([]float64, len(y))
			for i := range x {
				if h[i] = -1; x[i][0] > 0 {
					h[i] = 1
				}
			}
			fit, err := viboost.Infer(ctx, viboost.Prior{}, y, h, before)
			if err != nil {
				return 0, err
			}
			fall := 0.0
			for i := range fit.Trace[1:] {
				fall = max(fall, fit.Trace[i]-fit.Trace[i+1])
			}
			return fall, nil
		})
		if err != nil {
			return nil, err
		}
		most := 0.0
		for _, fall := range worst {
			most = max(most, fall)
		}
		p.Claim("a stage with the expectation in place of the mode", "largest fall from pass to pass, nats", experiment.Exact(most), experiment.AtMost, "1e-8")
		p.Chart(picture)
		p.Note("The falls come from the mode in place of the expectation, as the paper suspects. Within a stage the exact update is coordinate ascent, by which the bound cannot fall.")
		return p, nil
	},
}
