package report

import (
	"cmp"
	"fmt"
	"io"
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

// NoChange measures the guess that an event's label is that of the event before
// it. Where labels come in runs it is hard to beat, and a figure beside which it
// is missing says little.
type NoChange struct {
	n, wrong int
	last     bool
}

// Add counts an event by its true label.
func (g *NoChange) Add(spam bool) {
	if g.n > 0 && spam != g.last {
		g.wrong++
	}
	g.n, g.last = g.n+1, spam
}

// Error returns the share of events that the guess gets wrong; the first counts
// as right. Without an event it is 0.
func (g *NoChange) Error() float64 {
	if g.n == 0 {
		return 0
	}
	return float64(g.wrong) / float64(g.n)
}

// Wilson returns the 95 % score interval of a fraction of n (Wilson 1927, "Probable
// inference, the law of succession, and statistical inference"). It is 0 to 1 for n = 0.
func Wilson(fraction, n float64) (lo, hi float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	center := (fraction + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(fraction*(1-fraction)/n+z*z/(4*n*n))
	return max(center-half, 0), min(center+half, 1)
}

// Rejections reports on W what was rejected, or another fault that can repeat often.
// It prints the first ten errors, and their total number at the end.
type Rejections struct {
	W    io.Writer
	What string // begins each line; "rejected" if empty
	N    int    // how many so far; only Add raises it
}

const shownRejections = 10

// Add notes one rejected item.
func (r *Rejections) Add(err error) {
	if r.N++; r.N <= shownRejections {
		fmt.Fprintf(r.W, "%s: %v\n", cmp.Or(r.What, "rejected"), err)
	}
	if r.N == shownRejections {
		fmt.Fprintf(r.W, "%s: further ones are only counted\n", cmp.Or(r.What, "rejected"))
	}
}

// Close prints the count.
func (r *Rejections) Close() {
	if r.N > 0 {
		fmt.Fprintf(r.W, "%s: %d in all\n", cmp.Or(r.What, "rejected"), r.N)
	}
}
