package bench

import (
	"math"

	"hamlet/cmd/internal/chart"
)

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
func (r *result) rocChart() *chart.Chart {
	c := &chart.Chart{Title: "ROC", Caption: "Every threshold of a filter: lower and further left is better. Both scales are logarithmic; none counts as half a message."}
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
func (r *result) learningCharts() (area, wrong *chart.Chart) {
	curves := make([]learning, len(r.outcomes))
	for f, o := range r.outcomes {
		curves[f] = learningCurve(r.truth, o)
	}
	show := func(title, label, caption string, of func(*learning) []point) *chart.Chart {
		c := &chart.Chart{Title: title, Caption: caption + " Zero is drawn at the lower edge."}
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

// reliabilityChart shows the fraction of spam against a filter's probability, on
// log-odds scales, with 95 % intervals. It returns nil if no filter gives probabilities.
func (r *result) reliabilityChart() *chart.Chart {
	least, most := 0.0003, 0.9997
	axis := func(label string) chart.Axis { return chart.Axis{Label: label, Logit: true, Min: &least, Max: &most} }
	c := &chart.Chart{
		Title:   "Reliability",
		Caption: "How often it was spam where a filter answered p. On the diagonal p is right. Scales are those of log-odds, bars are 95 % intervals. Values beyond the edges are drawn on them.",
		X:       axis("probability that was given"), Y: axis("fraction of spam"),
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
	c.Series = append(c.Series, chart.Series{Name: "p is right", Kind: chart.Line, X: []float64{least, most}, Y: []float64{least, most}, Faint: true})
	return c
}
