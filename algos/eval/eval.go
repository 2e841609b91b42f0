// Package eval measures a filter by progressive validation: each message is scored before
// it is learnt. One pass gives the figures of the TREC spam track (Cormack 2007, "TREC
// 2007 Spam Track Overview", section 2) and those of a probability forecast.
//
//	metrics := eval.New()
//	for _, e := range events {
//		metrics.Add(e.Spam, model.LogOdds(e)) // before it is learnt
//		model.Learn(e)
//	}
//	s := metrics.Summary()
//	fmt.Println(s.ROCA, s.LogLoss)
//
// With z the log-odds of spam, p = σ(z) and y = 1 for spam, 0 for ham:
//
//	Error    fraction with p ≥ ½ on ham or p < ½ on spam
//	LogLoss  mean of −ln p or −ln(1−p), nats, p clipped to [10⁻⁶, 1−10⁻⁶]
//	Brier    mean of (p − y)²
//	ROCA     1-ROCA%: 100·P(z of a ham > z of a spam) + 50·P(equal)
//	LAM      lam%: 100·logit⁻¹(½ logit hm + ½ logit sm), of the fractions of ham
//	         and of spam misclassified at p ≥ ½
//	SMAtHM   sm%: percentage of spam below the lowest threshold that at most one
//	         ham in a thousand reaches
//	ECE      expected calibration error, Σ (n_b/n)·|mean p − fraction of spam|
//	         over 15 bins of equal count
//	Calibration{Slope,Intercept}
//	         b and a of the fit logit P(y = 1) = a + bz, see [Calibrate]
//	Below, Above
//	         b fitted to the events with p < .05 and with p > .95, see [Tail]
//	First    LogLoss and ROCA of the first 400 events: the cold start
//
// If none of a class is misclassified, lam% counts half a message as misclassified; if
// all, half a message as right. The track's program uses 10⁻³⁸, so that one class without
// errors decides the figure.
//
// # Memory and exactness
//
// All figures are exact up to [ExactEvents] events. Beyond, [Summary.Approximate] is set,
// and ROCA, SMAtHM, ECE and the calibration lines come from a histogram of z: 3 MiB, bins
// of 2⁻¹⁰ over ±64. A (ham, spam) pair in one bin counts ½, so 1-ROCA% is off by at most
// 50·(fraction of these pairs). SMAtHM is too high by at most one bin's spam. ECE is off by
// at most the fraction of events in the bins that its 14 edges divide. The line is fitted
// to the middles of the bins, by which also a tail's events are counted. The other figures stay exact.
//
// [Doubts] counts labels that the model believed to be false, by source.
package eval

import (
	"encoding/json"
	"math"
)

// ExactEvents is the number of events up to which every figure is exact.
const ExactEvents = 1 << 20

// clipLogit is the log-odds of 1 − 10⁻⁶, where log loss stops growing.
var clipLogit = math.Log((1 - 1e-6) / 1e-6)

// Metrics accumulates scored events. It is not safe for concurrent use.
//
// Invariant: up to ExactEvents events, exact holds every z and bins is nil. Beyond, bins
// counts all events and exact is empty.
type Metrics struct {
	ham, spam           int
	hamWrong, spamWrong int
	logLoss, brier      float64 // sums

	exact ranking
	bins  *histogram

	first     ranking // of the first FirstEvents events
	firstLoss float64 // sum over them
}

// FirstEvents is how many events Summary.First describes.
const FirstEvents = 400

// New returns empty metrics. They take 8 bytes an event up to [ExactEvents], then 3 MiB.
func New() *Metrics { return &Metrics{} }

// Add counts one event by its true label and its log-odds before it was learnt. ±Inf is
// allowed; NaN panics. The cost is O(1), amortised.
func (m *Metrics) Add(spam bool, logOdds float64) {
	if math.IsNaN(logOdds) {
		panic("eval: log-odds are NaN")
	}
	p := sigmoid(logOdds)
	if spam {
		m.spam++
		if logOdds < 0 {
			m.spamWrong++
		}
		p1 := sigmoid(-logOdds) // 1 − p without its cancellation
		m.brier += p1 * p1
	} else {
		m.ham++
		if logOdds >= 0 {
			m.hamWrong++
		}
		m.brier += p * p
	}
	loss := LogLoss(spam, logOdds)
	m.logLoss += loss
	if m.ham+m.spam <= FirstEvents {
		m.first.add(spam, logOdds)
		m.firstLoss += loss
	}

	if m.bins == nil && m.ham+m.spam > ExactEvents {
		m.toHistogram()
	}
	if m.bins != nil {
		m.bins.add(spam, logOdds)
		return
	}
	m.exact.add(spam, logOdds)
}

// LogLoss returns −ln of the probability of the true label, in nats, with p clipped to
// [10⁻⁶, 1−10⁻⁶].
func LogLoss(spam bool, logOdds float64) float64 {
	if spam {
		logOdds = -logOdds
	}
	return softplus(min(max(logOdds, -clipLogit), clipLogit))
}

func (m *Metrics) toHistogram() {
	m.bins = &histogram{bins: make([]tie, binCount)}
	for _, z := range m.exact.ham {
		m.bins.add(false, z)
	}
	for _, z := range m.exact.spam {
		m.bins.add(true, z)
	}
	m.exact = ranking{}
}

// A Summary holds the figures of [Metrics]: fractions in [0, 1], percentages in
// [0, 100].
type Summary struct {
	Events int `json:"events"`
	Spam   int `json:"spam"`
	Ham    int `json:"ham"`

	Error   Measure `json:"error"`
	LogLoss Measure `json:"log_loss"` // nats
	Brier   Measure `json:"brier"`
	ROCA    Measure `json:"roca"`     // 1-ROCA%
	LAM     Measure `json:"lam"`      // lam%
	SMAtHM  Measure `json:"sm_at_hm"` // %
	ECE     Measure `json:"ece"`

	CalibrationSlope     Measure `json:"calibration_slope"`
	CalibrationIntercept Measure `json:"calibration_intercept"` // nats

	Below Tail `json:"below_05"` // p < .05
	Above Tail `json:"above_95"` // p > .95

	First First `json:"first_400"`

	Approximate bool `json:"approximate"` // ROCA, SMAtHM, ECE and the calibration's lines come from the histogram
}

// First holds figures of the first [FirstEvents] events; NaN with fewer.
type First struct {
	LogLoss Measure `json:"log_loss"` // nats
	ROCA    Measure `json:"roca"`     // 1-ROCA%
}

// Summary computes the figures: O(n log n) while they are exact, O(1) beyond. All are NaN
// without an event. ROCA, LAM, SMAtHM and the calibration line are NaN if a class is
// missing. The line is also NaN if a threshold separates the classes. [Tail] and [First]
// say when theirs are.
func (m *Metrics) Summary() Summary {
	n := m.ham + m.spam
	s := Summary{
		Events: n, Spam: m.spam, Ham: m.ham,
		Error:       ratio(float64(m.hamWrong+m.spamWrong), n),
		LogLoss:     ratio(m.logLoss, n),
		Brier:       ratio(m.brier, n),
		LAM:         LAM(m.hamWrong, m.ham, m.spamWrong, m.spam),
		Approximate: m.bins != nil,
	}
	ties, points := m.exact.ties, m.exact.points
	if m.bins != nil {
		ties, points = m.bins.ties, m.bins.points
	}
	s.ROCA, s.SMAtHM, s.ECE = rank(ties, m.ham, m.spam)
	line := Calibrate(points) // rank has sorted them, so the sums are reproducible
	s.CalibrationIntercept, s.CalibrationSlope = line.Intercept, line.Slope
	s.Below, s.Above = Below(points), Above(points)
	s.First = First{Measure(math.NaN()), Measure(math.NaN())}
	if n >= FirstEvents {
		s.First.LogLoss = ratio(m.firstLoss, FirstEvents)
		s.First.ROCA, _, _ = rank(m.first.ties, len(m.first.ham), len(m.first.spam))
	}
	return s
}

// LAM returns lam% if hw of h ham and sw of s spam are misclassified.
func LAM(hw, h, sw, s int) Measure {
	if h == 0 || s == 0 {
		return Measure(math.NaN())
	}
	return Measure(100 * sigmoid((shareLogit(hw, h)+shareLogit(sw, s))/2))
}

// shareLogit returns logit(k/n), with k limited to [½, n−½].
func shareLogit(k, n int) float64 {
	x := min(max(float64(k), 0.5), float64(n)-0.5)
	return math.Log(x / (float64(n) - x))
}

// A Measure is a figure. NaN, null in JSON, means that it has no value.
type Measure float64

// Defined reports whether m has a value.
func (m Measure) Defined() bool { return !math.IsNaN(float64(m)) }

// MarshalJSON writes the number, or null.
func (m Measure) MarshalJSON() ([]byte, error) {
	if !m.Defined() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(m))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Measure) UnmarshalJSON(b []byte) error {
	f := math.NaN()
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	*m = Measure(f)
	return nil
}

// ratio is NaN without an event: 0/0.
func ratio(sum float64, n int) Measure { return Measure(sum / float64(n)) }

// sigmoid returns 1/(1+e⁻ᶻ) without overflow.
func sigmoid(z float64) float64 {
	if z < 0 {
		e := math.Exp(z)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-z))
}

// softplus returns ln(1+eᶻ) without overflow.
func softplus(z float64) float64 {
	return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
}
