package bench

import (
	"math"

	"hamlet/cmd/internal/report"
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
		if i > 0 && s.rows[i-1].last || i == 0 { // the threshold may lie below this score
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
		k := 0
		for k < len(reliabilityEdges) && r.p >= reliabilityEdges[k] {
			k++
		}
		bins[k].n++
		bins[k].p += r.p
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
