package bench

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"hamlet/algos/eval"
)

// A figure is one row of the table.
type figure int

const (
	roca        figure = iota // 1-ROCA%
	lamPercent                // lam%, by the filter's own class
	missed                    // % of spam missed if one ham in a thousand is lost
	wrongClass                // fraction with the wrong class
	wrongAtHalf               // fraction on the wrong side of p = ½
	logLoss                   // nats
	calibration               // expected calibration error, 15 bins of equal count
	slope                     // of the labels' logit on the log-odds
	slopeBelow                // the same, of the messages with p < .05 alone
	slopeAbove                // of those with p > .95
	firstLoss                 // log loss of the first 400 messages
	firstROCA                 // 1-ROCA% of them
	cpuTime                   // seconds a message
	figures                   // their number
)

// A values holds one value per figure. NaN means undefined: 1-ROCA% without ham, log
// loss of scores that are no probabilities.
type values [figures]float64

// An outcome is a filter's answers, by the index of the message.
type outcome struct {
	name    string
	logOdds []float64 // of spam; the score itself unless all scores are probabilities
	spam    []bool    // the filter's class
	cpu     []time.Duration
	proper  bool // all scores are probabilities
	wall    time.Duration
	memory  int64 // bytes; 0: unknown
	serves  bool  // its adapter stays alive
}

func (o *outcome) add(spam bool, logOdds float64) {
	o.logOdds = append(o.logOdds, logOdds)
	o.spam = append(o.spam, spam)
	o.cpu = append(o.cpu, 0)
}

// A scored is a classified message.
type scored struct {
	index              int // of the message
	spam               bool
	wrong, wrongAtHalf bool
	logOdds, loss, cpu float64
}

// A ranking is an outcome sorted by score. One pass over it measures a resample.
type ranking struct {
	rows   []scored // from the lowest score to the highest
	proper bool
}

// newRanking sorts the messages with index ≥ from: O(n log n).
func newRanking(truth []bool, o *outcome, from int) *ranking {
	s := &ranking{rows: make([]scored, 0, len(truth)-from), proper: o.proper}
	for i := from; i < len(truth); i++ {
		z := o.logOdds[i]
		s.rows = append(s.rows, scored{
			index: i - from, spam: truth[i], wrong: o.spam[i] != truth[i], wrongAtHalf: (z >= 0) != truth[i],
			logOdds: z, loss: eval.LogLoss(truth[i], z), cpu: o.cpu[i].Seconds(),
		})
	}
	slices.SortStableFunc(s.rows, func(a, b scored) int { return cmp.Compare(a.logOdds, b.logOdds) })
	return s
}

// measure returns the figures of a sample in which message i occurs weights[i] times.
// They equal those of eval.Metrics, except that lam% and the error use the filter's
// class. The cost is O(n).
func (s *ranking) measure(weights []int32) values {
	var n, wrong [2]int // of ham, of spam
	var halfWrong int
	var loss, cpu, firstSum, firsts float64
	for i := range s.rows {
		r := &s.rows[i]
		w, class := int(weights[r.index]), 0
		if r.spam {
			class = 1
		}
		n[class] += w
		if r.wrong {
			wrong[class] += w
		}
		if r.wrongAtHalf {
			halfWrong += w
		}
		loss += float64(w) * r.loss
		cpu += float64(w) * r.cpu
		if r.index < eval.FirstEvents {
			firsts += float64(w)
			firstSum += float64(w) * r.loss
		}
	}
	all := float64(n[0] + n[1])
	v := values{
		wrongClass: float64(wrong[0]+wrong[1]) / all, wrongAtHalf: float64(halfWrong) / all,
		logLoss: loss / all, cpuTime: cpu / all, lamPercent: float64(eval.LAM(wrong[0], n[0], wrong[1], n[1])),
		firstLoss: math.NaN(), firstROCA: math.NaN(),
	}
	points := s.points(weights, len(s.rows))
	area, lost, gap := eval.Rank(points)
	v[roca], v[missed], v[calibration] = float64(area), float64(lost), float64(gap)
	if len(s.rows) >= eval.FirstEvents {
		area, _, _ := eval.Rank(s.points(weights, eval.FirstEvents))
		v[firstLoss], v[firstROCA] = firstSum/firsts, float64(area) // 0/0 if the sample holds none
	}
	if !s.proper {
		for _, f := range []figure{wrongAtHalf, logLoss, calibration, slope, slopeBelow, slopeAbove, firstLoss} {
			v[f] = math.NaN()
		}
		return v
	}
	v[slope] = float64(eval.Calibrate(points).Slope)
	v[slopeBelow], v[slopeAbove] = float64(eval.Below(points).Slope), float64(eval.Above(points).Slope)
	return v
}

// points yields the messages of a sample with an index below end, from the lowest score to the
// highest.
func (s *ranking) points(weights []int32, end int) iter.Seq[eval.Point] {
	return func(yield func(eval.Point) bool) {
		for i := range s.rows {
			r := &s.rows[i]
			w := float64(weights[r.index])
			if w == 0 || r.index >= end {
				continue
			}
			p := eval.Point{LogOdds: r.logOdds, Ham: w}
			if r.spam {
				p.Ham, p.Spam = 0, w
			}
			if !yield(p) {
				return
			}
		}
	}
}
