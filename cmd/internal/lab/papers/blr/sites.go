package blr

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"hamlet/algos/blr"
	"hamlet/algos/eval"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// sites compares the text's bound with other Gaussian sites, and both with quadrature.
var sites = experiment.Experiment{
	Name: "blr/sites", Title: "The bound beside R-VGA and the exact posterior", Where: "equations 8 and 51 to 60",
	Claim: "The likelihood is replaced by its bound (8), in the iterative script under the prior N(0, I/D). The " +
		"running bound (60) is below the log evidence. (The text compares the bound with no other approximation.)",
	Sets: []string{"spambase", "pima", "heart"}, Cost: 7 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		if err := oneWeight(ctx, r, p); err != nil {
			return err
		}
		if err := onStreams(ctx, r, p); err != nil {
			return err
		}
		p.Note("R-VGA (Lambert, Bonnabel and Bach 2022) is hamlet's default site; it takes two expectations by the " +
			"probit approximation, \"exact R-VGA\" by quadrature. " +
			"A standard deviation below the exact one is too sure. So is a calibration slope below 1.")
		p.Note("Streams are the sets in random orders. Each row is predicted before it is learnt. Inputs are " +
			"standardised over the whole set, spambase's after ln(1+v).")
		return nil
	},
}

// A learner is a way to learn rows one by one.
type learner struct {
	name  string
	site  blr.Approximation
	sweep bool
}

var learners = []learner{
	{"the bound", blr.JaakkolaJordan, false},
	{"the bound, swept", blr.JaakkolaJordan, true},
	{"R-VGA", blr.RVGA, false},
	{"exact R-VGA", blr.ExactRVGA, false},
	{"exact R-VGA, swept", blr.ExactRVGA, true},
}

// A moment is how one learner's posterior of a weight stands to the exact one.
type moment struct {
	Off   []float64 // |w − E(w)| in standard deviations, of each learner
	SD    []float64 // standard deviation as a part of the exact one
	Above float64   // (60) minus the log evidence
}

// oneWeight compares posteriors of a single weight with prior N(0, 1).
func oneWeight(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	const draws = 40
	sizes := []int{10, 30, 100, 300, 1000}
	all, err := experiment.Steps(ctx, r, "weight", len(sizes)*draws,
		func(ctx context.Context, i int) (c moment, err error) {
			rng := r.Rand("weight", i)
			w := rng.NormFloat64()
			var x [][]float64
			var y []float64
			for range sizes[i/draws] {
				v, label := 2*rng.NormFloat64(), -1.0
				if rng.Float64() < sigma(w*v) {
					label = 1
				}
				x, y = append(x, []float64{v}), append(y, label)
			}
			truth := givenAlpha(x, y, 1)
			for _, l := range learners {
				q, recs, err := learnt(x, y, 1, l.site)
				if err != nil {
					return c, err
				}
				if l == learners[0] {
					c.Above = q.LogEvidence() - truth.LogEvidence
				}
				for sweep := 0; l.sweep && sweep < 20; sweep++ {
					if _, err := q.Sweep(recs); err != nil {
						return c, err
					}
				}
				mean, variance := q.Moments([]float64{1})
				c.Off = append(c.Off, math.Abs(mean-truth.Mean[0])/math.Sqrt(truth.Variance[0]))
				c.SD = append(c.SD, math.Sqrt(variance/truth.Variance[0]))
			}
			return c, nil
		})
	if err != nil {
		return err
	}
	p.AtMost(fmt.Sprintf("1 weight, %d data sets", len(all)), "largest excess of (60) over the log evidence, nats",
		experiment.Most(all, func(c moment) float64 { return c.Above }), "0")
	off := chart.Chart{Title: "Mean of the weight, distance from the exact one",
		Caption: fmt.Sprintf("In exact standard deviations; mean of %d data sets. The weight is from N(0, 1), the "+
			"input from N(0, 4).", draws),
		X: chart.Axis{Label: "rows", Log: true}, Y: chart.Axis{Label: "standard deviations", Log: true}}
	sure := chart.Chart{Title: "Standard deviation of the weight", Caption: "As a part of the exact one, mean over " +
		"the same data sets.",
		X: chart.Axis{Label: "rows", Log: true}, Y: chart.Axis{Label: "ratio"}}
	for j, l := range learners {
		far, wide := chart.Series{Name: l.name, Kind: chart.Line}, chart.Series{Name: l.name, Kind: chart.Line}
		for k, n := range sizes {
			part := all[k*draws : (k+1)*draws]
			mean, sd := experiment.Over(part, func(c moment) float64 { return c.Off[j] }),
				experiment.Over(part, func(c moment) float64 { return c.SD[j] })
			experiment.Point(&far, float64(n), mean)
			experiment.Point(&wide, float64(n), sd)
			if n == 1000 {
				group := fmt.Sprintf("1 weight, %d rows", n)
				p.Show(group, l.name+": distance of the mean, in standard deviations", mean)
				p.Show(group, l.name+": standard deviation as a part of the exact one", sd)
			}
		}
		far.Lo, far.Hi = nil, nil // they overlap, and would hide one another on a log axis
		off.Series, sure.Series = append(off.Series, far), append(sure.Series, wide)
	}
	p.Chart(off)
	p.Chart(sure)
	return nil
}

// A variant is a way to learn a stream.
type variant struct {
	name   string
	site   blr.Approximation
	rule   float64
	strong bool // the script's prior N(0, I/D) in place of N(0, I)
}

var variants = []variant{
	{"the script: the bound, prior N(0, I/D)", blr.JaakkolaJordan, printedRule, true},
	{"the bound, prior N(0, I)", blr.JaakkolaJordan, 0, false},
	{"R-VGA, prior N(0, I)", blr.RVGA, 0, false},
	{"exact R-VGA, prior N(0, I)", blr.ExactRVGA, 0, false},
}

// A streamed is what one order of a set gave, by variant.
type streamed struct{ Loss, Slope []float64 }

// onStreams predicts each row of the sets before it is learnt.
func onStreams(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	const orders = 20
	names := []string{"spambase", "pima", "heart"}
	bars := make([]chart.Series, len(variants))
	for s, name := range names {
		x, y, err := r.Data.Table(name)
		if err != nil {
			return err
		}
		standardise(x, name == "spambase")
		all, err := experiment.Steps(ctx, r, name, orders, func(ctx context.Context, i int) (c streamed, err error) {
			order := r.Rand(name, i).Perm(len(x))
			for _, v := range variants {
				loss, slope, err := stream(ctx, x, y, order, v)
				if err != nil {
					return c, err
				}
				c.Loss, c.Slope = append(c.Loss, loss), append(c.Slope, slope)
			}
			return c, nil
		})
		if err != nil {
			return err
		}
		for j, v := range variants {
			loss := experiment.Over(all, func(c streamed) float64 { return c.Loss[j] })
			p.Show(name, v.name+": log loss", loss)
			p.Show(name, v.name+": calibration slope",
				experiment.Over(all, func(c streamed) float64 { return c.Slope[j] }))
			bars[j].Name, bars[j].Kind = v.name, chart.Points
			experiment.Point(&bars[j], float64(s)+.12*(float64(j)-1.5), loss)
		}
	}
	p.Chart(chart.Chart{Title: "Log loss over a stream",
		Caption: fmt.Sprintf("Mean of %d orders and its 95 %% interval.", orders),
		X:       chart.Axis{Categories: names}, Y: chart.Axis{Label: "log loss, nats", Min: experiment.End(0)},
		Series: bars})
	return nil
}

// standardise gives each column mean 0 and variance 1 and puts a constant 1 first. logs
// takes ln(1+v) before, for counts and shares.
func standardise(x [][]float64, logs bool) {
	n := float64(len(x))
	for j := range x[0] {
		mean, square := 0.0, 0.0
		for _, row := range x {
			if logs {
				row[j] = math.Log1p(row[j])
			}
			mean += row[j] / n
		}
		for _, row := range x {
			square += (row[j] - mean) * (row[j] - mean) / n
		}
		for _, row := range x {
			row[j] = (row[j] - mean) / math.Sqrt(max(square, 1e-12))
		}
	}
	for i, row := range x {
		x[i] = append([]float64{1}, row...)
	}
}

// stream predicts and learns rows in an order and returns log loss and calibration slope.
func stream(ctx context.Context, x [][]float64, y []float64, order []int, v variant) (loss, slope float64, err error) {
	d := len(x[0])
	α := 1.0
	if v.strong {
		α = float64(d)
	}
	q, err := blr.New(blr.Config{
		Dim: d, Precision: slices.Repeat([]float64{α}, d), Approximation: v.site, XiTolerance: v.rule,
	})
	if err != nil {
		return 0, 0, err
	}
	var points []eval.Point
	for _, n := range order {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		z := blr.Predictive(q.Moments(x[n]))
		loss -= logSigma(y[n]*z) / float64(len(x))
		point := eval.Point{LogOdds: z, Ham: 1}
		if y[n] > 0 {
			point.Ham, point.Spam = 0, 1
		}
		points = append(points, point)
		q.Update(x[n], y[n], 1)
	}
	slope = float64(eval.Calibrate(slices.Values(points)).Slope)
	if math.IsNaN(slope) {
		return 0, 0, fmt.Errorf("a threshold separates the classes of %d rows", len(x))
	}
	return loss, slope, nil
}
