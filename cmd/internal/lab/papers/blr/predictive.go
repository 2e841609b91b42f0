package blr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/blr"
	"hamlet/algos/lab/vblr"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// widest is the largest variance of log-odds in the tables below.
const widest = 50

// predictive compares (35) with the probability that it bounds.
var predictive = experiment.Experiment{
	Name: "blr/predictive", Title: "The predictive density", Where: "equations 32 to 38, 66 to 68, section " +
		"Predictive Density",
	Claim: "The probability of a label is approximated by its largest lower bound (35). Two scripts compute it, row " +
		"by row or for all rows at once, and differ in nothing else.",
	Cost: 200 * time.Millisecond,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		if err := withMatrices(r, p); err != nil {
			return err
		}
		if err := overVariance(ctx, r, p); err != nil {
			return err
		}
		for _, a := range []float64{3, 30} {
			p.Chart(overMean(a))
		}
		if err := alongALine(ctx, r, p); err != nil {
			return err
		}
		if err := stopped(ctx, r, p); err != nil {
			return err
		}
		p.Note("Log-odds are z ~ N(m, a), and the exact probability is E σ(z) by quadrature. \"Normalised\" is (35) " +
			"of +1, divided by the sum of (35) for both classes. " +
			"\"Probit\" is σ(m/√(1+πa/8)). The text bounds no errors, so errors have no verdict. A difference of " +
			".001 between the two scripts counts as none.")
		return nil
	},
}

// withMatrices compares the scalars with (35) to (38) as printed.
func withMatrices(r *experiment.Run, p *experiment.Report) error {
	worst := 0.0
	for i := range 100 {
		rng := r.Rand("matrices", i)
		d := 1 + i%6
		w, x, root := weights(rng, d, 1), weights(rng, d, 1), mat.NewDense(d, d, weights(rng, d*d, 1))
		var product mat.Dense
		product.Mul(root, root.T())
		v := mat.NewSymDense(d, nil)
		for j := range d {
			for k := range j + 1 {
				v.SetSym(j, k, product.At(j, k))
			}
			v.SetSym(j, j, product.At(j, j)+.1)
		}
		printed, err := equation35(w, v, x)
		if err != nil {
			return err
		}
		vx := mat.NewVecDense(d, x)
		plus, _ := vblr.Bounds(dot(w, x), mat.Inner(vx, v, vx))
		worst = max(worst, math.Abs(printed-plus))
	}
	p.Show("100 random w, V and x", "largest difference of (35) with matrices from vblr.Bounds", experiment.Exact(worst))
	return nil
}

// equation35 iterates (36) to (38) until ξ stands still and returns the exponential of (35).
func equation35(w []float64, v *mat.SymDense, x []float64) (float64, error) {
	d := len(w)
	vw, vx := mat.NewVecDense(d, w), mat.NewVecDense(d, x)
	var before mat.Cholesky
	precision := mat.NewSymDense(d, nil)
	if !before.Factorize(v) || before.InverseTo(precision) != nil {
		return 0, errors.New("the matrix V has no inverse")
	}
	natural := mat.NewVecDense(d, nil)
	natural.MulVec(precision, vw)
	start := mat.Dot(vw, natural)
	natural.AddScaledVec(natural, .5, vx)
	ξ := 0.0
	for range 10_000 {
		after := mat.NewSymDense(d, nil)
		after.SymRankOne(precision, 2*λ(ξ), vx) // (36)
		var factor mat.Cholesky
		var mean, u mat.VecDense
		if !factor.Factorize(after) || factor.SolveVecTo(&mean, natural) != nil || factor.SolveVecTo(&u, vx) != nil {
			return 0, errors.New("(36) is not positive definite")
		}
		m := mat.Dot(&mean, vx)
		next := math.Sqrt(mat.Dot(vx, &u) + m*m) // (38)
		if math.Abs(next-ξ) <= 1e-12*ξ {
			return math.Exp(-(factor.LogDet()+before.LogDet())/2 - start/2 + mat.Dot(&mean, natural)/2 +
				logSigma(ξ) - ξ/2 + λ(ξ)*ξ*ξ), nil
		}
		ξ = next
	}
	return 0, errors.New("(38) has not converged")
}

// An accuracy holds the largest errors at one variance.
type accuracy struct {
	Above                     float64 // (35) of either class, minus the probability that it bounds
	Most, Least               float64 // sum of both classes
	Lower, Normalised, Probit float64 // errors of (35), of it normalised, of the probit
	WrongSide                 float64 // largest m > 0 at which (35) of +1 is below ½
}

// overVariance tabulates errors over the mean and variance of the log-odds.
func overVariance(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	variances := []float64{.1, .2, .5, 1, 2, 3, 5, 8, 12, 20, 30, widest}
	all, err := experiment.Steps(ctx, r, "variance", len(variances), func(_ context.Context, i int) (accuracy, error) {
		e := accuracy{Above: math.Inf(-1), Least: 1}
		for m := -40.0; m <= 40; m += .05 {
			v := vblr.Predict(m, variances[i], .95)
			e.Above = max(e.Above, v.BoundPlus-v.Exact, v.BoundMinus-(1-v.Exact))
			sum := v.BoundPlus + v.BoundMinus
			e.Most, e.Least = max(e.Most, sum), min(e.Least, sum)
			e.Lower, e.Normalised = max(e.Lower, v.Exact-v.BoundPlus), max(e.Normalised, math.Abs(v.Normalised-v.Exact))
			e.Probit = max(e.Probit, math.Abs(v.Probit-v.Exact))
			if v.BoundPlus < .5 {
				e.WrongSide = max(e.WrongSide, m)
			}
		}
		return e, nil
	})
	if err != nil {
		return err
	}
	group := fmt.Sprintf("|m| ≤ 40, a from .1 to %d", widest)
	atMostZero(p, group, "largest excess of (35) over the probability, both classes",
		experiment.Most(all, func(e accuracy) float64 { return e.Above }), 1e-14)
	p.AtMost(group, "largest p(+) + p(−) by (35)",
		experiment.Most(all, func(e accuracy) float64 { return e.Most }), "1")
	p.Show(group, "least p(+) + p(−) by (35)",
		experiment.Most(all, func(e accuracy) float64 { return -e.Least }).Scaled(-1))
	p.Show(group, "largest error of (35) itself", experiment.Most(all, func(e accuracy) float64 { return e.Lower }))
	p.Show(group, "largest error of (35), normalised",
		experiment.Most(all, func(e accuracy) float64 { return e.Normalised }))
	p.Show(group, "largest error of the probit", experiment.Most(all, func(e accuracy) float64 { return e.Probit }))
	plus, minus := vblr.Bounds(0, 10)
	p.Show("m = 0, a = 10: both probabilities are ½", "p(+) by (35)", experiment.Exact(plus))
	p.Show("m = 0, a = 10: both probabilities are ½", "p(−) by (35)", experiment.Exact(minus))
	picture := chart.Chart{Title: "Largest error over all means", Caption: "Of the probability of +1.",
		X: chart.Axis{Label: "variance a of the log-odds", Log: true},
		Y: chart.Axis{Label: "largest error", Min: experiment.End(0)}}
	for _, line := range []struct {
		name string
		of   func(accuracy) float64
	}{
		{"(35)", func(e accuracy) float64 { return e.Lower }},
		{"(35), normalised", func(e accuracy) float64 { return e.Normalised }},
		{"probit", func(e accuracy) float64 { return e.Probit }},
	} {
		picture.Series = append(picture.Series, chart.Series{Name: line.name, Kind: chart.Line, X: variances,
			Y: experiment.Column(all, line.of)})
	}
	for i, a := range variances {
		if a == 1 || a == 12 || a == widest {
			p.Show(fmt.Sprintf("a = %g", a), "largest m > 0 at which (35) of +1 is below ½",
				experiment.Exact(all[i].WrongSide))
		}
	}
	p.Chart(picture)
	return nil
}

// overMean draws all predictions at one variance.
func overMean(a float64) chart.Chart {
	c := chart.Chart{Title: fmt.Sprintf("Probability of +1, variance %g", a), Caption: "1 − (35) of −1 is above (35) " +
		"of +1: the two do not add up to 1.",
		X: chart.Axis{Label: "mean m of the log-odds"},
		Y: chart.Axis{Label: "probability", Min: experiment.End(0), Max: experiment.End(1)}}
	for _, line := range []struct {
		name      string
		of        func(vblr.Prediction) float64
		reference bool
	}{
		{"exact", func(v vblr.Prediction) float64 { return v.Exact }, true},
		{"(35) of +1", func(v vblr.Prediction) float64 { return v.BoundPlus }, false},
		{"1 − (35) of −1", func(v vblr.Prediction) float64 { return 1 - v.BoundMinus }, false},
		{"(35), normalised", func(v vblr.Prediction) float64 { return v.Normalised }, false},
		{"probit", func(v vblr.Prediction) float64 { return v.Probit }, false},
	} {
		s := experiment.Curve(line.name, -12, 12, .2, func(m float64) float64 {
			return line.of(vblr.Predict(m, a, .95))
		})
		s.Reference = line.reference
		c.Series = append(c.Series, s)
	}
	return c
}

// alongALine draws predictions on a line through two-dimensional data, far beyond it.
func alongALine(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	x, y := drawn(r.Rand("line", 0), []float64{.5, 1, 1}, 30)
	fit, err := vblr.Fit(ctx, x, y, vblr.Config{A0: a0, B0: b0})
	if err != nil {
		return err
	}
	along := func(name string, of func(m, a float64) float64) chart.Series {
		return experiment.Curve(name, -12, 12, .2, func(t float64) float64 {
			return of(fit.Moments([]float64{1, t, -t}))
		})
	}
	bound := func(m, a float64) float64 {
		plus, _ := vblr.Bounds(m, a)
		return plus
	}
	lines := []chart.Series{along("exact", blr.Exact), along("(35) of +1", bound),
		along("σ of the mean log-odds", func(m, _ float64) float64 { return sigma(m) })}
	lines[0].Reference = true
	p.Chart(chart.Chart{Title: "Along a line through two-dimensional data", Caption: "30 rows with inputs from N(0, " +
		"1); the line is x₂ = −x₁. Far from the rows the mean is too sure, and (35) falls for either class.",
		X: chart.Axis{Label: "x₁"}, Y: chart.Axis{Label: "probability of +1", Min: experiment.End(0),
			Max: experiment.End(1)}, Series: lines})
	return nil
}

// A stop compares the scripts' answers with the largest bound.
type stop struct{ Alone, Together float64 }

// stopped runs both scripts with the printed stopping rule.
func stopped(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	all, err := experiment.Steps(ctx, r, "scripts", 10, func(ctx context.Context, i int) (s stop, err error) {
		rng := r.Rand("scripts", i)
		w := weights(rng, 5, 1)
		x, y := drawn(rng, w, 100)
		fit, err := vblr.Fit(ctx, x, y, vblr.Config{A0: a0, B0: b0})
		if err != nil {
			return s, err
		}
		newX, _ := drawn(rng, w, 1000)
		var rows []row
		energy, err := energyOf(fit)
		if err != nil {
			return s, err
		}
		for _, x := range newX {
			m, a := fit.Moments(x)
			rows = append(rows, row{m: m, a: a})
		}
		together := scripted(rows, energy)
		for k := range rows {
			best, _ := vblr.Bounds(rows[k].m, rows[k].a)
			alone := scripted(rows[k:k+1], energy)[0]
			s.Alone = max(s.Alone, best-alone)
			s.Together = max(s.Together, math.Abs(together[k]-alone))
		}
		return s, nil
	})
	if err != nil {
		return err
	}
	group := "10 fits, 1,000 new rows each, printed stopping rule"
	p.Show(group, "largest p(+) by the script for one row, below its plateau",
		experiment.Most(all, func(s stop) float64 { return s.Alone }))
	atMostZero(p, group, "largest difference of p(+) by the vectorised script",
		experiment.Most(all, func(s stop) float64 { return s.Together }), .001)
	return nil
}

// energyOf returns wᵀV⁻¹w, which the scripts' bound contains.
func energyOf(fit *vblr.Batch) (float64, error) {
	w, v := mat.NewVecDense(fit.Dim(), nil), &mat.SymDense{}
	fit.MeanTo(w.RawVector().Data)
	fit.CovarianceTo(v)
	var factor mat.Cholesky
	var u mat.VecDense
	if !factor.Factorize(v) {
		return 0, errors.New("the matrix V is not positive definite")
	}
	if err := factor.SolveVecTo(&u, w); err != nil {
		return 0, err
	}
	return mat.Dot(w, &u), nil
}

// A row is one input to predict, by the mean and variance of its log-odds.
type row struct{ m, a float64 }

// scripted predicts rows as the scripts do: all start at ξ = 0 and are iterated until the
// sum of their bounds changes by less than .001 %, at most 100 times. It is (36) to (38)
// and (67) multiplied out, with q = 1 + 2λa.
func scripted(rows []row, energy float64) []float64 {
	ξ, log := make([]float64, len(rows)), make([]float64, len(rows))
	last := 0.0
	for iteration := range printedIterations + 1 {
		sum := 0.0
		for i, r := range rows {
			if iteration > 0 {
				q := 1 + 2*λ(ξ[i])*r.a
				mean := (r.m + r.a/2) / q
				ξ[i] = math.Sqrt(r.a/q + mean*mean)
			}
			q := 1 + 2*λ(ξ[i])*r.a
			gain := r.m/2 + (.5-2*λ(ξ[i])*r.m)/q*(r.m+r.a/2) // of the quadratic form over energy
			log[i] = gain/2 - math.Log(q)/2 + logSigma(ξ[i]) - ξ[i]/2 + λ(ξ[i])*ξ[i]*ξ[i]
			sum += log[i] + energy/2
		}
		if iteration > 0 && math.Abs(sum-last) < printedRule*math.Abs(sum) {
			break
		}
		last = sum
	}
	p := make([]float64, len(rows))
	for i := range p {
		p[i] = math.Exp(log[i])
	}
	return p
}
