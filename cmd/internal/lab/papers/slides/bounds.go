package slides

import (
	"context"
	"math"
	"time"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// adaboostBounds follows the bounds on the training error through AdaBoost's rounds.
var adaboostBounds = experiment.Experiment{
	Name: "slides/adaboost-bounds", Title: "AdaBoost: training error, ∏Z and exp(−2Σγ²)", Where: "slides 7 to 18",
	Claim: "The training error is at most the mean of e^(−yf), which is ∏Z = ∏2√(ε(1−ε)) ≤ exp(−2Σγ²). The weighted " +
		"error of the weak learners tends to rise, and the test error may still fall when the training error is 0.",
	Sets: []string{"ionosphere", "letter-ab", "pima"}, Cost: 3 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		const rounds, splits = 300, 10
		for _, name := range []string{"ionosphere", "letter-ab", "pima"} {
			x, y, err := r.Data.Table(name)
			if err != nil {
				return err
			}
			runs, err := experiment.Steps(ctx, r, name, splits, func(ctx context.Context, i int) (descent, error) {
				return descend(ctx, divide(x, y, r.Rand(name, i)), rounds)
			})
			if err != nil {
				return err
			}
			report(p, name, runs)
			if name == "letter-ab" {
				p.Chart(runs[0].chart())
				p.Chart(runs[0].errors())
			}
		}
		p.Note("ε, Z, γ and the errors are computed from the stumps and their α by the slides' formulas, with " +
			"weights from the recursion of slide 7.")
		p.Note("Bounds are compared in all rounds of ten random splits. A round with ε = 0 would make α infinite: " +
			"training ends with it.")
		return nil
	},
}

// A descent is a run of AdaBoost by the slides' formulas.
type descent struct {
	Epsilon, Error, Bound, Gamma, Test []float64 // ε, training error, ∏Z, exp(−2Σγ²), test error

	Above    float64 // the largest training error − ∏Z
	Loose    float64 // the largest ∏Z − exp(−2Σγ²)
	Loss     float64 // the largest difference of ∏Z and the mean of e^(−yf)
	Z        float64 // the largest difference of Z and 2√(ε(1−ε))
	Alpha    float64 // the largest difference of α and ½ln((1−ε)/ε)
	LateGain float64 // test error when the training error is first 0, less that at the end
	Zero     bool    // the training error reached 0
}

// descend runs AdaBoost and follows it.
func descend(ctx context.Context, s split, rounds int) (d descent, err error) {
	b, err := trained(ctx, s.x, s.y, rounds)
	if err != nil {
		return d, err
	}
	weights := make([]float64, len(s.y))
	for i := range weights {
		weights[i] = 1 / float64(len(s.y))
	}
	train, test := newSum(s.x, s.y), newSum(s.test, s.told)
	product, γ2 := 1.0, 0.0
	d.Above, d.Loose = math.Inf(-1), math.Inf(-1)
	reached := 0.0
	for _, o := range b.Rounds() {
		ε, z := 0.0, 0.0
		for i, row := range s.x {
			if o.Stump.Value(row) != s.y[i] {
				ε += weights[i]
			}
		}
		for i, row := range s.x {
			weights[i] *= math.Exp(-o.Alpha * s.y[i] * o.Stump.Value(row))
			z += weights[i]
		}
		for i := range weights {
			weights[i] /= z
		}
		add := func(x []float64) float64 { return o.Alpha * o.Stump.Value(x) }
		train.add(add)
		test.add(add)
		product *= z
		γ2 += (.5 - ε) * (.5 - ε)
		errs, bound := train.errors(), math.Exp(-2*γ2)
		if ε > 1e-10 {
			apart(&d.Z, z, 2*math.Sqrt(ε*(1-ε)))
			apart(&d.Alpha, o.Alpha, .5*math.Log((1-ε)/ε))
		}
		apart(&d.Loss, product, train.mean(exponential))
		d.Above, d.Loose = max(d.Above, errs-product), max(d.Loose, product-bound)
		d.Epsilon, d.Error = append(d.Epsilon, ε), append(d.Error, errs)
		d.Bound, d.Gamma, d.Test = append(d.Bound, product), append(d.Gamma, bound), append(d.Test, test.errors())
		if errs == 0 && !d.Zero {
			d.Zero, reached = true, test.errors()
		}
	}
	d.LateGain = reached - d.Test[len(d.Test)-1]
	return d, nil
}

// report adds the rows of a set.
func report(p *experiment.Report, name string, runs []descent) {
	worst := func(of func(d descent) float64) float64 { return experiment.Most(runs, of).Value }
	p.Never(name, "largest training error minus ∏Z", worst(func(d descent) float64 { return d.Above }), "0")
	p.Never(name, "largest difference of ∏Z and the mean of e^(−yf)",
		worst(func(d descent) float64 { return d.Loss }), "0")
	p.Never(name, "largest difference of Z and 2√(ε(1−ε))", worst(func(d descent) float64 { return d.Z }), "0")
	p.Never(name, "largest difference of α and ½ln((1−ε)/ε)", worst(func(d descent) float64 { return d.Alpha }), "0")
	p.Never(name, "largest ∏Z minus exp(−2Σγ²)", worst(func(d descent) float64 { return d.Loose }), "0")
	var rise, gain, last []float64
	for i := range runs {
		d := &runs[i]
		first, second := halves(d.Epsilon)
		rise = append(rise, second-first)
		last = append(last, d.Test[len(d.Test)-1])
		if d.Zero {
			gain = append(gain, d.LateGain)
		}
	}
	p.AtLeast(name, "mean ε of the second half of the rounds minus that of the first", experiment.Mean(rise), "0")
	p.Show(name, "test error at the end", experiment.Mean(last))
	if len(gain) == len(runs) {
		row := p.AtLeast(name, "test error when the training error is first 0, minus that at the end",
			experiment.Mean(gain), "0")
		row.Reason = "The slides say that the test error often falls further, not that it always does."
	}
}

// halves returns the means of the two halves of v.
func halves(v []float64) (first, second float64) {
	mid := len(v) / 2
	for k, a := range v {
		if k < mid {
			first += a / float64(mid)
		} else {
			second += a / float64(len(v)-mid)
		}
	}
	return first, second
}

func (d *descent) chart() chart.Chart {
	least := 1e-4
	c := chart.Chart{Title: "Training error and its bounds", Caption: "AdaBoost over stumps, letters A and B, one " +
		"split. A training error of 0 is drawn at the lower end.",
		X: chart.Axis{Label: "round", Log: true}, Y: chart.Axis{Label: "error or bound", Log: true, Min: &least}}
	c.Series = []chart.Series{experiment.Line("training error", d.Error), experiment.Line("∏Z", d.Bound),
		experiment.Line("exp(−2Σγ²)", d.Gamma)}
	return c
}

func (d *descent) errors() chart.Chart {
	c := chart.Chart{Title: "Weighted error and test error", Caption: "The same run.",
		X: chart.Axis{Label: "round", Log: true}, Y: chart.Axis{Label: "error"}}
	c.Series = []chart.Series{experiment.Line("ε of the weak learner", d.Epsilon),
		experiment.Line("training error", d.Error), experiment.Line("test error", d.Test)}
	return c
}
