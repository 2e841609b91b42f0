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
	index                 int // of the message
	spam                  bool
	wrong, wrongAtHalf    bool
	last                  bool // of the messages with this score
	p, logOdds, loss, cpu float64
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
			p: 1 / (1 + math.Exp(-z)), logOdds: z, loss: eval.LogLoss(truth[i], z), cpu: o.cpu[i].Seconds(),
		})
	}
	slices.SortStableFunc(s.rows, func(a, b scored) int { return cmp.Compare(a.logOdds, b.logOdds) })
	for i := range s.rows {
		s.rows[i].last = i+1 == len(s.rows) || s.rows[i+1].logOdds != s.rows[i].logOdds
	}
	return s
}

// calibrationBins is the number of bins of the calibration error, as in eval.
const calibrationBins = 15

// measure returns the figures of a sample in which message i occurs weights[i] times.
// They equal those of eval.Metrics, except that lam% and the error use the filter's
// class. The cost is O(n).
func (s *ranking) measure(weights []int32) values {
	var ham, spam, hamWrong, spamWrong, halfWrong int
	var loss, cpu float64
	for i := range s.rows {
		r := &s.rows[i]
		w := int(weights[r.index])
		if w == 0 {
			continue
		}
		if r.spam {
			spam += w
		} else {
			ham += w
		}
		if r.wrong {
			if r.spam {
				spamWrong += w
			} else {
				hamWrong += w
			}
		}
		if r.wrongAtHalf {
			halfWrong += w
		}
		loss += float64(w) * r.loss
		cpu += float64(w) * r.cpu
	}
	n := ham + spam
	v := values{
		wrongClass: float64(hamWrong+spamWrong) / float64(n), wrongAtHalf: float64(halfWrong) / float64(n),
		logLoss: loss / float64(n), cpuTime: cpu / float64(n),
		roca: math.NaN(), lamPercent: math.NaN(), missed: math.NaN(),
	}
	if ham > 0 && spam > 0 {
		v[lamPercent] = lam(hamWrong, ham, spamWrong, spam)
	}
	s.rank(&v, weights, ham, spam)
	s.first(&v, weights)
	if !s.proper {
		v[wrongAtHalf], v[logLoss], v[calibration], v[slope] = math.NaN(), math.NaN(), math.NaN(), math.NaN()
		v[slopeBelow], v[slopeAbove], v[firstLoss] = math.NaN(), math.NaN(), math.NaN()
		return v
	}
	points := s.points(weights)
	v[slope] = float64(eval.Calibrate(points).Slope)
	v[slopeBelow], v[slopeAbove] = float64(eval.Below(points).Slope), float64(eval.Above(points).Slope)
	return v
}

// first sets the figures of the messages among the first 400 that the sample holds. NaN
// if the stream is shorter.
func (s *ranking) first(v *values, weights []int32) {
	v[firstLoss], v[firstROCA] = math.NaN(), math.NaN()
	if len(s.rows) < eval.FirstEvents {
		return
	}
	var hamBelow, spamBelow, ham, spam int
	var loss, wrongPairs float64
	for i := range s.rows {
		r := &s.rows[i]
		if w := int(weights[r.index]); w > 0 && r.index < eval.FirstEvents {
			loss += float64(w) * r.loss
			if r.spam {
				spam += w
			} else {
				ham += w
			}
		}
		if r.last {
			tied := float64(ham - hamBelow)
			wrongPairs += tied * (float64(spamBelow) + float64(spam-spamBelow)/2)
			hamBelow, spamBelow = ham, spam
		}
	}
	v[firstLoss] = loss / float64(ham+spam) // 0/0 if the sample holds none
	if ham > 0 && spam > 0 {
		v[firstROCA] = 100 * wrongPairs / (float64(ham) * float64(spam))
	}
}

// points yields the messages of a sample for package eval.
func (s *ranking) points(weights []int32) iter.Seq[eval.Point] {
	return func(yield func(eval.Point) bool) {
		for i := range s.rows {
			r := &s.rows[i]
			w := float64(weights[r.index])
			if w == 0 {
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

// rank sets the figures that depend on the order of the scores.
func (s *ranking) rank(v *values, weights []int32, ham, spam int) {
	var hamBelow, spamBelow, tiedHam, tiedSpam int
	var wrongPairs, tiedP float64
	lost, found := spam, false
	bins := binner{width: ham + spam}
	for i := range s.rows {
		r := &s.rows[i]
		if w := int(weights[r.index]); w > 0 {
			if r.spam {
				tiedSpam += w
			} else {
				tiedHam += w
			}
			tiedP += float64(w) * r.p
		}
		if !r.last || tiedHam+tiedSpam == 0 {
			continue
		}
		// This score is the lowest threshold that loses at most one ham in a thousand.
		if !found && (ham-hamBelow)*1000 <= ham {
			lost, found = spamBelow, true
		}
		wrongPairs += float64(tiedHam) * (float64(spamBelow) + float64(tiedSpam)/2)
		bins.add(tiedHam+tiedSpam, tiedSpam, tiedP)
		hamBelow, spamBelow = hamBelow+tiedHam, spamBelow+tiedSpam
		tiedHam, tiedSpam, tiedP = 0, 0, 0
	}
	v[calibration] = bins.gaps / float64(calibrationBins*bins.width)
	if ham > 0 && spam > 0 {
		v[roca] = 100 * wrongPairs / (float64(ham) * float64(spam))
		v[missed] = 100 * float64(lost) / float64(spam)
	}
}

// A binner sums |Σp − Σy| over 15 bins of equal count. For n messages, each counts as 15
// units and a bin holds n units. A tie across an edge is divided in proportion.
type binner struct {
	width, filled int
	p, spam, gaps float64
}

func (b *binner) add(n, spam int, p float64) {
	for units := n * calibrationBins; units > 0; {
		k := min(units, b.width-b.filled)
		part := float64(k) / float64(n)
		b.p += part * p
		b.spam += part * float64(spam)
		b.filled += k
		units -= k
		if b.filled == b.width {
			b.gaps += math.Abs(b.p - b.spam)
			b.filled, b.p, b.spam = 0, 0, 0
		}
	}
}

// lam returns lam% if hw of h ham and sw of s spam are misclassified. Counts are limited
// to ½ … h−½ and ½ … s−½.
func lam(hw, h, sw, s int) float64 {
	logit := func(k, n int) float64 {
		x := min(max(float64(k), 0.5), float64(n)-0.5)
		return math.Log(x / (float64(n) - x))
	}
	return 100 / (1 + math.Exp(-(logit(hw, h)+logit(sw, s))/2))
}
