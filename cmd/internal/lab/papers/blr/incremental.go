package blr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"hamlet/algos/lab/vblr"

	"gonum.org/v1/gonum/mat"

	"hamlet/algos/blr"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// incremental adds rows one by one.
var incremental = experiment.Experiment{
	Name: "blr/incremental", Title: "The incremental update", Where: "equations 51 to 60",
	Claim: "Rows are added one by one, each ξ optimised once. V follows from the Sherman–Morrison formula (54), " +
		"ln|V| from the determinant lemma (56), and V⁻¹w is the sum of yx/2 (52).",
	Cost: 7 * time.Second,
	Run: func(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
		if err := identities(ctx, r, p); err != nil {
			return err
		}
		if err := againstBatch(ctx, r, p); err != nil {
			return err
		}
		if err := overOrders(ctx, r, p); err != nil {
			return err
		}
		p.Note("Each ξ is optimised once, with the little that was known then. Early ξ are too small, so the " +
			"precision is overstated and the order of rows matters. " +
			"A sweep optimises all ξ again, one by one, under the current posterior. The text does not compare the " +
			"two fits.")
		return nil
	},
}

// A drift is how far the running quantities are from those computed afresh.
type drift struct{ V, W, Eta, LogDet float64 }

// identities checks (52) to (56) along runs of the script.
func identities(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	const draws, rows = 8, 1000
	dims := []int{2, 10, 30}
	all, err := experiment.Steps(ctx, r, "identities", draws*len(dims),
		func(ctx context.Context, i int) (worst drift, err error) {
			d := dims[i/draws]
			rng := r.Rand("identities", i)
			x, y := drawn(rng, weights(rng, d, float64(d)), rows)
			// Only the formulas under test compute V: no factoring on the way.
			q, err := blr.New(blr.Config{Dim: d, Precision: slices.Repeat([]float64{float64(d)}, d),
				Approximation: blr.JaakkolaJordan, XiTolerance: printedRule, Refactor: 1 << 30})
			if err != nil {
				return worst, err
			}
			precision, half := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
			for j := range d {
				precision.SetSym(j, j, float64(d))
			}
			v, w := &mat.SymDense{}, make([]float64, d)
			for n := range x {
				if err := ctx.Err(); err != nil {
					return worst, err
				}
				row := mat.NewVecDense(d, x[n])
				rec := q.Update(x[n], y[n], 1)
				precision.SymRankOne(precision, 2*λ(rec.Xi), row) // (51)
				half.AddScaledVec(half, y[n]/2, row)
				if n%10 != 9 {
					continue
				}
				var factor mat.Cholesky
				inverse, mean := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
				if !factor.Factorize(precision) || factor.InverseTo(inverse) != nil ||
					factor.SolveVecTo(mean, half) != nil {
					return worst, errors.New("the precision (51) is not positive definite")
				}
				q.MeanTo(w)
				q.CovarianceTo(v)
				// η solves V·η = w with the running V and w, not with the sum that q keeps.
				var running mat.Cholesky
				η := mat.NewVecDense(d, nil)
				if !running.Factorize(v) || running.SolveVecTo(η, mat.NewVecDense(d, w)) != nil {
					return worst, errors.New("the matrix V of (54) is not positive definite")
				}
				worst.Eta = max(worst.Eta, apart(η.RawVector().Data, half.RawVector().Data))
				for j := range d {
					for k := range d {
						worst.V = max(worst.V, math.Abs(v.At(j, k)-inverse.At(j, k)))
					}
				}
				worst.W = max(worst.W, apart(w, mean.RawVector().Data))
				worst.LogDet = max(worst.LogDet, math.Abs(q.LogDetV()+factor.LogDet()))
			}
			if f := q.Factorings(); f != (blr.Factorings{}) {
				return worst, fmt.Errorf("the matrix V was computed afresh: %+v", f)
			}
			return worst, nil
		})
	if err != nil {
		return err
	}
	group := fmt.Sprintf("%d runs of %d rows, 2, 10 and 30 weights, printed stopping rule", len(all), rows)
	atMostZero(p, group, "largest difference of V by (54) and the inverse of (51)",
		experiment.Most(all, func(d drift) float64 { return d.V }), 1e-9)
	atMostZero(p, group, "largest difference of w and V·Σ yx/2 (53)",
		experiment.Most(all, func(d drift) float64 { return d.W }), 1e-9)
	atMostZero(p, group, "largest difference of ln|V| by (56) and by Cholesky",
		experiment.Most(all, func(d drift) float64 { return d.LogDet }), 1e-9)
	atMostZero(p, group, "largest difference of V⁻¹w and Σ yx/2 (52)",
		experiment.Most(all, func(d drift) float64 { return d.Eta }), 1e-9)
	return nil
}

// known returns the batch fit for a given α: a hyperprior that leaves α no choice.
func known(ctx context.Context, x [][]float64, y []float64, α float64) (*vblr.Batch, error) {
	return vblr.Fit(ctx, x, y, vblr.Config{A0: 1e12 * α, B0: 1e12, Tolerance: 1e-8})
}

// A twin compares the incremental fit with the batch fit, both with prior N(0, I).
type twin struct {
	Truth, Once, Swept, Batch float64 // log loss on new rows; Truth is that of the drawn weights
	Precision                 float64 // geometric mean factor by which the precision is overstated
	SweptPrecision            float64 // the same after sweeps
	Left                      float64 // largest distance of a weight from the batch fit after many sweeps
}

// againstBatch compares log loss and precision.
func againstBatch(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	const d, draws, sweeps = 10, 30, 3
	sizes := []int{50, 100, 300, 1000}
	all, err := experiment.Steps(ctx, r, "batch", len(sizes)*draws,
		func(ctx context.Context, i int) (c twin, err error) {
			rng := r.Rand("batch", i)
			w := weights(rng, d, 1)
			x, y := drawn(rng, w, sizes[i/draws])
			newX, newY := drawn(rng, w, 5000)
			batch, err := known(ctx, x, y, 1)
			if err != nil {
				return c, err
			}
			c.Batch = measured(batch, newX, newY).Loss
			q, recs, err := learnt(x, y, 1, blr.JaakkolaJordan)
			if err != nil {
				return c, err
			}
			c.Once, c.Precision = lossOf(q, newX, newY), math.Exp((batch.LogDetV-q.LogDetV())/d)
			for sweep := range 300 {
				if _, err := q.Sweep(recs); err != nil {
					return c, err
				}
				if sweep+1 == sweeps {
					c.Swept, c.SweptPrecision = lossOf(q, newX, newY), math.Exp((batch.LogDetV-q.LogDetV())/d)
				}
			}
			theirs, ours := make([]float64, d), make([]float64, d)
			batch.MeanTo(theirs)
			q.MeanTo(ours)
			c.Left = apart(theirs, ours)
			for n, row := range newX {
				c.Truth -= logSigma(newY[n]*dot(w, row)) / float64(len(newX))
			}
			return c, nil
		})
	if err != nil {
		return err
	}
	p.Show(fmt.Sprintf("%d data sets, prior N(0, I)", len(all)), "largest distance of a weight from the batch fit, "+
		"after 300 sweeps", experiment.Most(all, func(c twin) float64 { return c.Left }))
	lines := []struct {
		name string
		of   func(twin) float64
	}{
		{"as learnt", func(c twin) float64 { return c.Once }},
		{"after 3 sweeps", func(c twin) float64 { return c.Swept }},
		{"batch", func(c twin) float64 { return c.Batch }},
	}
	loss := chart.Chart{Title: "Log loss above that of the true weights",
		Caption: fmt.Sprintf("10 weights from N(0, 1), mean of %d data sets and its 95 %% interval.", draws),
		X:       chart.Axis{Label: "rows", Log: true}, Y: chart.Axis{Label: "nats", Log: true}}
	precise := chart.Chart{Title: "By what factor precision is overstated", Caption: "The batch fit's |V| over the " +
		"incremental one's, to the power 1/10.",
		X: chart.Axis{Label: "rows", Log: true}, Y: chart.Axis{Label: "factor"}}
	once, swept := chart.Series{Name: "as learnt", Kind: chart.Line},
		chart.Series{Name: "after 3 sweeps", Kind: chart.Line}
	for _, line := range lines {
		s := chart.Series{Name: line.name, Kind: chart.Line}
		for k, n := range sizes {
			experiment.Point(&s, float64(n), experiment.Over(all[k*draws:(k+1)*draws],
				func(c twin) float64 { return line.of(c) - c.Truth }))
		}
		loss.Series = append(loss.Series, s)
	}
	for k, n := range sizes {
		part, group := all[k*draws:(k+1)*draws], of(d, n)
		for _, line := range lines[:2] {
			p.Show(group, "log loss on new rows above the batch fit's, "+line.name,
				experiment.Over(part, func(c twin) float64 { return line.of(c) - c.Batch }))
		}
		factor, after := experiment.Over(part, func(c twin) float64 { return c.Precision }),
			experiment.Over(part, func(c twin) float64 { return c.SweptPrecision })
		if n == sizes[len(sizes)-1] {
			p.Show(group, "factor by which precision is overstated, as learnt", factor)
			p.Show(group, "factor by which precision is overstated, after 3 sweeps", after)
		}
		experiment.Point(&once, float64(n), factor)
		experiment.Point(&swept, float64(n), after)
	}
	precise.Series = []chart.Series{once, swept}
	p.Chart(loss)
	p.Chart(precise)
	return nil
}

// learnt learns rows in their order, with the prior N(0, I/α).
func learnt(x [][]float64, y []float64, α float64, site blr.Approximation) (*blr.Posterior, []blr.Site, error) {
	d := len(x[0])
	q, err := blr.New(blr.Config{Dim: d, Precision: slices.Repeat([]float64{α}, d), Approximation: site})
	if err != nil {
		return nil, nil, err
	}
	var recs []blr.Site
	for n := range x {
		recs = append(recs, q.Update(x[n], y[n], 1))
	}
	return q, recs, nil
}

// lossOf is the mean log loss of exact predictions.
func lossOf(q *blr.Posterior, x [][]float64, y []float64) float64 {
	sum := 0.0
	for n, row := range x {
		sum -= logSigma(y[n] * blr.Predictive(q.Moments(row)))
	}
	return sum / float64(len(x))
}

// A spread is how much predictions for new rows depend on the order of the rows learnt:
// the largest and mean difference of the most and least probable answer.
type spread struct{ Most, Mean, SweptMost, SweptMean float64 }

// overOrders learns the same rows in many orders.
func overOrders(ctx context.Context, r *experiment.Run, p *experiment.Report) error {
	const d, draws, orders, news = 10, 8, 10, 500
	sizes := []int{50, 300, 1000}
	all, err := experiment.Steps(ctx, r, "orders", len(sizes)*draws,
		func(ctx context.Context, i int) (s spread, err error) {
			rng := r.Rand("orders", i)
			w := weights(rng, d, 1)
			x, y := drawn(rng, w, sizes[i/draws])
			newX, _ := drawn(rng, w, news)
			var once, swept [][]float64
			for range orders {
				px, py := experiment.Shuffled(x, y, rng)
				q, recs, err := learnt(px, py, 1, blr.JaakkolaJordan)
				if err != nil {
					return s, err
				}
				once = append(once, answers(q, newX))
				for range 3 {
					if _, err := q.Sweep(recs); err != nil {
						return s, err
					}
				}
				swept = append(swept, answers(q, newX))
			}
			s.Most, s.Mean = ranges(once)
			s.SweptMost, s.SweptMean = ranges(swept)
			return s, nil
		})
	if err != nil {
		return err
	}
	for k, n := range sizes {
		part, group := all[k*draws:(k+1)*draws], fmt.Sprintf("%s in %d orders, %d new rows", of(d, n), orders, news)
		mean := func(of func(spread) float64) experiment.Statistic { return experiment.Over(part, of) }
		p.Show(group, "largest range of a probability, as learnt", mean(func(s spread) float64 { return s.Most }))
		p.Show(group, "mean range of a probability, as learnt", mean(func(s spread) float64 { return s.Mean }))
		p.Show(group, "largest range of a probability, after 3 sweeps",
			mean(func(s spread) float64 { return s.SweptMost }))
		p.Show(group, "mean range of a probability, after 3 sweeps",
			mean(func(s spread) float64 { return s.SweptMean }))
	}
	return nil
}

// answers are the exact probabilities of +1.
func answers(q *blr.Posterior, x [][]float64) []float64 {
	var all []float64
	for _, row := range x {
		all = append(all, sigma(blr.Predictive(q.Moments(row))))
	}
	return all
}

// ranges returns the largest and mean range over lists of answers to the same rows.
func ranges(all [][]float64) (most, mean float64) {
	for k := range all[0] {
		lo, hi := all[0][k], all[0][k]
		for _, list := range all {
			lo, hi = min(lo, list[k]), max(hi, list[k])
		}
		most = max(most, hi-lo)
		mean += (hi - lo) / float64(len(all[0]))
	}
	return most, mean
}
