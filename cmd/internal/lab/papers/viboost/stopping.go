package viboost

import (
	"context"
	"fmt"
	"time"

	"hamlet/algos/viboost"
	"hamlet/cmd/internal/chart"
	"hamlet/cmd/internal/lab/experiment"
)

// A stop is what one way to end the passes led to in one run.
type stop struct{ Passes, SNR, Error, TrainError float64 }

// stopping compares the ways to end the passes of a round.
var stopping = experiment.Experiment{
	Name: "viboost/stopping", Title: "Algorithm 1: passes until the bound rises no more, and the options (a) and (b)", Where: "section 5, algorithm 1",
	Claim: "Algorithm 1 repeats its passes while the evidence lower bound rises significantly. Possible modifications: (a) a fixed number of passes, (b) a weight that is set once.",
	Sets:  []string{"spambase"}, Cost: 24 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run) (*experiment.Report, error) {
		const rounds, draws, training = 30, 10, 230
		x, y, err := r.Data.Table("spambase")
		if err != nil {
			return nil, err
		}
		p := &experiment.Report{}
		picture := chart.Chart{Title: "Passes a round", Caption: fmt.Sprintf("Mean of %d runs, %d training rows of spambase.", draws, training),
			X: chart.Axis{Label: "passes"}}
		bars := chart.Series{Name: "passes", Kind: chart.Bars}
		var first []stop
		for _, v := range []struct {
			name string
			cfg  viboost.Config
		}{
			{"10 passes (a)", viboost.Config{Inner: 10}},
			{"3 passes (a)", viboost.Config{Inner: 3}},
			{"bound rises < .01", viboost.Config{Stop: viboost.ByELBO, Gain: .01}},
			{"bound rises < .0001", viboost.Config{Stop: viboost.ByELBO, Gain: 1e-4}},
			{"10 passes (a, b)", viboost.Config{WeighOnce: true, Inner: 10}},
			{"by the bound (b)", viboost.Config{WeighOnce: true, Stop: viboost.ByELBO}},
		} {
			v.cfg.Rounds = rounds
			all, err := experiment.Steps(ctx, r, v.name, draws, func(ctx context.Context, run int) (s stop, err error) {
				px, py := make([][]float64, len(x)), make([]float64, len(x))
				for i, k := range r.Rand("order", run).Perm(len(x)) {
					px[i], py[i] = x[k], y[k]
				}
				b, err := trained(ctx, px[:training], py[:training], v.cfg)
				if err != nil {
					return s, err
				}
				all := b.Rounds()
				for _, round := range all {
					s.Passes += float64(round.Passes) / float64(len(all))
				}
				last := all[len(all)-1]
				s.SNR, s.TrainError = last.SNR(), last.TrainError
				s.Error = errorsAt(b.Ensemble().Terms(), px[training:], py[training:], []int{rounds})[0]
				return s, nil
			})
			if err != nil {
				return nil, err
			}
			if first == nil {
				first = all
			}
			of := func(f func(i int, s stop) float64) experiment.Estimate {
				var v []float64
				for i, s := range all {
					v = append(v, f(i, s))
				}
				return experiment.Mean(v)
			}
			passes := of(func(_ int, s stop) float64 { return s.Passes })
			bars.X, bars.Y = append(bars.X, passes.Value), append(bars.Y, float64(len(picture.Y.Categories)))
			picture.Y.Categories = append(picture.Y.Categories, v.name)
			p.Show(v.name, "passes a round", passes)
			p.Show(v.name, "SNR", of(func(_ int, s stop) float64 { return s.SNR }))
			p.Show(v.name, "test error", of(func(_ int, s stop) float64 { return s.Error }))
			if v.name == "10 passes (a)" {
				continue
			}
			difference := of(func(i int, s stop) float64 { return s.Error - first[i].Error })
			difference.Value = abs(difference.Value)
			p.Show(v.name, "test error beside 10 passes, size of the mean difference", difference)
		}
		picture.Series = []chart.Series{bars}
		p.Chart(picture)
		p.Note("The paper gives no figure for its stopping rule and does not say what is significant. " +
			"With the mode in place of the expectation the bound may fall, and a fall ends the passes. " +
			"On pure noise the SNR depends on the passes (figure 8).")
		return p, nil
	},
}
