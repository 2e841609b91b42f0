package report

import (
	"math"

	"hamlet/algos/eval"
	"hamlet/algos/model"
)

// Intervals counts the predictions with p inside their own 90 % interval: as it is
// served, and as it was before it was widened to contain p (model.Prediction.Skewed).
type Intervals struct {
	n, inside, central int
}

// Add counts a prediction.
func (c *Intervals) Add(p model.Prediction) {
	c.n++
	if lo, hi := p.Interval(model.Z90); lo <= p.P() && p.P() <= hi {
		c.inside++
	}
	if !p.Skewed(model.Z90) {
		c.central++
	}
}

// Shares returns the shares of predictions with p inside the served interval and inside
// the one before widening; NaN without a prediction.
func (c *Intervals) Shares() (inside, central eval.Measure) {
	if c.n == 0 {
		return eval.Measure(math.NaN()), eval.Measure(math.NaN())
	}
	return eval.Measure(float64(c.inside) / float64(c.n)), eval.Measure(float64(c.central) / float64(c.n))
}
