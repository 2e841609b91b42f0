package bench

import (
	"math"

	"hamlet/cmd/internal/show/chart"

	"hamlet/cmd/internal/show/report"
)

// A point is one point of a curve.
type point struct{ x, y float64 }

// rocCurve returns the percentages of ham lost and of spam missed at every threshold,
// from the highest. Zero messages count as half a message, for the logarithmic scale.
// Points too close to the previous one to be seen are left out.
func (s *ranking) rocCurve() []point {
	ham, spam := 0, 0
	for i := range s.rows {
		if s.rows[i].spam {
			spam++
		} else {
			ham++
		}
	}
	if ham == 0 || spam == 0 {
		return nil
	}
	fraction := func(k, n int) float64 { return 100 * max(float64(k), 0.5) / float64(n) }
	curve := []point{{fraction(0, ham), fraction(spam, spam)}}
	const seen = 1.005 // 0.5 % of a value is less than a line's width
	hamAbove, spamAbove := 0, 0
	for i := len(s.rows) - 1; i >= 0; i-- {
		if s.rows[i].spam {
			spamAbove++
		} else {
			hamAbove++
		}
		if i == 0 || s.rows[i-1].logOdds != s.rows[i].logOdds { // the threshold may lie below this score
			p, q := point{fraction(hamAbove, ham), fraction(spam-spamAbove, spam)}, curve[len(curve)-1]
			right, down := p.x > q.x*seen, p.y*seen < q.y
			if right && down {
				curve = appendTie(curve, q, p)
			}
			if i == 0 || right || down {
				curve = append(curve, p)
			}
		}
	}
	return curve
}

// appendTie appends the straight line between the points before and after a score that
// ham and spam share. Logarithmic scales bend it, so it needs several points.
func appendTie(curve []point, from, to point) []point {
	for k := -12; k <= 12; k++ {
		t := 1 / (1 + math.Exp(-float64(k)/1.5)) // points are denser at both ends
		curve = append(curve, point{from.x + t*(to.x-from.x), from.y + t*(to.y-from.y)})
	}
	return curve
}

// learningPoints is the approximate number of points of a learning curve.
const learningPoints = 150

// A learning holds a filter's figures over all messages so far, as curves.
type learning struct{ roca, wrong []point }

// learningCurve measures the first n messages for growing n, evenly spaced on a
// logarithmic scale. Figures are in %. 1-ROCA% begins once both classes have a message.
// The cost is O(n) per point.
func learningCurve(truth []bool, o *outcome) (l learning) {
	s := newRanking(truth, o, 0)
	wrong := 0
	next, step := firstLearning, math.Pow(float64(len(truth))/firstLearning, 1.0/learningPoints)
	weights := make([]int32, len(truth))
	for i := range truth {
		weights[i] = 1
		if o.spam[i] != truth[i] {
			wrong++
		}
		n := i + 1
		if n < next && n < len(truth) {
			continue
		}
		for next <= n {
			next = max(next+1, int(float64(next)*step))
		}
		l.wrong = append(l.wrong, point{float64(n), 100 * float64(wrong) / float64(n)})
		if v := s.measure(weights); !math.IsNaN(v[roca]) {
			l.roca = append(l.roca, point{float64(n), v[roca]})
		}
	}
	return l
}

// Learning curves begin after firstLearning messages; fewer are too noisy.
const firstLearning = 20

// A bin is the messages whose probability of spam lies between two edges.
type bin struct {
	n        int
	p        float64 // mean probability
	fraction float64 // of spam among them
	lo, hi   float64 // 95 % interval of the fraction
}

// reliabilityEdges are about evenly spaced in log-odds. A few thousand messages fill all
// bins.
var reliabilityEdges = []float64{0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999}

// reliability bins the messages by probability; empty bins are left out.
func (s *ranking) reliability() []bin {
	bins := make([]bin, len(reliabilityEdges)+1)
	for i := range s.rows {
		r := &s.rows[i]
		p := 1 / (1 + math.Exp(-r.logOdds))
		k := 0
		for k < len(reliabilityEdges) && p >= reliabilityEdges[k] {
			k++
		}
		bins[k].n++
		bins[k].p += p
		if r.spam {
			bins[k].fraction++
		}
	}
	filled := bins[:0]
	for _, b := range bins {
		if b.n == 0 {
			continue
		}
		n := float64(b.n)
		b.p /= n
		b.fraction /= n
		b.lo, b.hi = report.Wilson(b.fraction, n)
		filled = append(filled, b)
	}
	return filled
}

// curveSeries is a curve as a series.
func curveSeries(name string, curve []point) chart.Series {
	s := chart.Series{Name: name, Kind: chart.Line}
	for _, p := range curve {
		s.X, s.Y = append(s.X, p.x), append(s.Y, p.y)
	}
	return s
}

// logAxis is a logarithmic axis with its ends.
func logAxis(label string, low, high float64) chart.Axis {
	return chart.Axis{Label: label, Log: true, Min: &low, Max: &high}
}

// rocChart shows ham lost against spam missed. Logarithmic scales show how filters
// differ.
func (r *result) rocChart() chart.Chart {
	c := chart.Chart{Title: "ROC", Caption: "Every threshold of a filter: lower and further left is better. Both " +
		"scales are logarithmic; none counts as half a message."}
	least := 100.0
	for _, o := range r.outcomes {
		curve := newRanking(r.truth, o, r.from).rocCurve()
		for _, p := range curve {
			least = min(least, p.x, p.y)
		}
		c.Series = append(c.Series, curveSeries(o.name, curve))
	}
	least = min(least, 50)
	c.X, c.Y = logAxis("ham lost, %", least, 100), logAxis("spam missed, %", least, 100)
	return c
}

// learningCharts show 1-ROCA% and the error over all messages so far.
func (r *result) learningCharts() (area, wrong chart.Chart) {
	curves := make([]learning, len(r.outcomes))
	for f, o := range r.outcomes {
		curves[f] = learningCurve(r.truth, o)
	}
	show := func(title, label, caption string, of func(*learning) []point) chart.Chart {
		c := chart.Chart{Title: title, Caption: caption + " Zero is drawn at the lower edge."}
		least, most := math.Inf(1), 0.0
		for f := range curves {
			for _, p := range of(&curves[f]) {
				if p.y > 0 {
					least, most = min(least, p.y), max(most, p.y)
				}
			}
			c.Series = append(c.Series, curveSeries(r.outcomes[f].name, of(&curves[f])))
		}
		if most == 0 {
			least, most = 0.1, 100 // without any error
		}
		c.X = logAxis("messages so far", firstLearning, max(float64(len(r.truth)), 2*firstLearning))
		floor := math.Pow(10, math.Floor(math.Log10(least)+1e-9))
		c.Y = logAxis(label, floor, max(min(2*most, 100), 2*floor))
		return c
	}
	area = show("Learning: 1-ROCA%", "1-ROCA%", "Over all messages so far, as each was scored before it was taught.",
		func(l *learning) []point { return l.roca })
	wrong = show("Learning: error", "error, %", "Over all messages so far, by the filter's own class.",
		func(l *learning) []point { return l.wrong })
	return area, wrong
}

// reliabilityCharts shows the fraction of spam against a filter's probability, on
// log-odds scales, with 95 % intervals. It returns no chart if no filter gives probabilities.
func (r *result) reliabilityCharts() []chart.Chart {
	least, most := 0.0003, 0.9997
	axis := func(label string) chart.Axis { return chart.Axis{Label: label, Logit: true, Min: &least, Max: &most} }
	c := chart.Chart{
		Title: "Reliability",
		Caption: "How often it was spam where a filter answered p. On the diagonal p is right. Scales are those of " +
			"log-odds, bars are 95 % intervals. Values beyond the edges are drawn on them.",
		X: axis("probability that was given"), Y: axis("fraction of spam"),
	}
	for _, o := range r.outcomes {
		if !o.proper {
			continue
		}
		joined := chart.Series{Name: o.name, Kind: chart.Line}
		marks := chart.Series{Kind: chart.Points}
		for _, b := range newRanking(r.truth, o, r.from).reliability() {
			marks.X, marks.Y = append(marks.X, b.p), append(marks.Y, b.fraction)
			marks.Lo, marks.Hi = append(marks.Lo, b.lo), append(marks.Hi, b.hi)
		}
		joined.X, joined.Y = marks.X, marks.Y
		c.Series = append(c.Series, joined, marks)
	}
	if c.Series == nil {
		return nil
	}
	c.Series = append(c.Series, chart.Series{Name: "p is right", Kind: chart.Line, X: []float64{least, most},
		Y: []float64{least, most}, Faint: true})
	return []chart.Chart{c}
}
