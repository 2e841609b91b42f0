// Package comparison says which of two models predicts better, with a guarantee that holds at
// every moment of looking.
//
// Both models learn one log. Their learners write what they predicted of each event before they
// learnt its label: package predictions. Run pairs these by the event's offset in the log.
//
//	result, err := comparison.Run(ctx, brokers, "default", "cand", comparison.Options{})
//	if err != nil {
//		return err
//	}
//	if result.Better && result.Calibrated { … }
//
// # What is compared
//
// The loss of a prediction is the log loss −ln p of the true label, in nats. p is first moved
// into [Clip, 1−Clip]. So two losses differ by at most [Limit], about 4.6 nats. The interval
// needs a limit, and its width grows with it: without one, a single event could undo any number
// of others. The price is that the comparison does not see how sure a model is beyond 99 %.
// cmd/internal/lab/bench/MEASURED.md has other limits.
//
// With d the loss of A minus that of B, and d̄ the expected difference given all earlier
// events, averaged over the events so far,
//
//	P(at all times: d̄ is in the interval) ≥ level
//
// for any log: events may depend on each other, and drift: see package confseq. Positive means
// that B is better. [Result.Better] says that the interval is above 0 now. If B is not better
// at any time, it is ever true with a probability of at most (1 − level)/2. So it may be asked
// again and again: no allowance for the number of looks is needed.
//
// The guarantee is for models that were chosen without the events compared. A candidate that was
// chosen by its figures on the same log needs Since, the time of the choice: an event counts if
// both predictions of it were written later.
//
// # Calibration
//
// [Result.Calibrated] speaks of the mean of p, with the same kind of interval. It is true unless
// the interval, for the share of spam minus the mean of p, lies beyond [Tolerance]. A model whose
// mean p is within the tolerance of the expected share is refused with a probability of at most
// 1 − level, however often one looks. Slope and ECE are shown beside it, without a guarantee.
package comparison

import (
	"errors"
	"fmt"
	"math"
	"time"

	"hamlet/algos/confseq"
	"hamlet/algos/eval"
	"hamlet/stream/predictions"
)

const (
	// Clip bounds the probabilities whose losses are compared, from both sides.
	Clip = 0.01
	// Tolerance is how far a calibrated model's mean p may be from the share of spam.
	Tolerance = 0.01
	// DefaultBurnIn is Options.BurnIn where that is 0.
	DefaultBurnIn = 1000
	// DefaultLevel is Options.Level where that is 0.
	DefaultLevel = 0.95
)

// Limit is by how much two losses can differ: the log-odds of 1 − Clip.
var Limit = math.Log((1 - Clip) / Clip)

// Options say how models are compared.
type Options struct {
	BurnIn int       // common events that are left out at the beginning; 0: 1,000; negative: none
	Level  float64   // of confidence; 0: .95
	Since  time.Time // leave out predictions that were written before; zero: none
}

// A Result says how two models compare.
type Result struct {
	A Side `json:"a"`
	B Side `json:"b"`

	Events int `json:"events"`  // compared
	BurnIn int `json:"burn_in"` // common events before them

	// Difference is the mean loss of A minus that of B, in nats: positive if B is better.
	Difference Interval `json:"difference"`
	Level      float64  `json:"level"`
	Limit      float64  `json:"limit"` // two losses differ by at most as much

	Better bool `json:"better"` // the interval is above 0: B is better
	Worse  bool `json:"worse"`  // it is below
	// Since is the number of the compared event from which on that holds without a break, and
	// First of the one where B was first shown to be better. 0: it does not hold, or never did.
	Since int `json:"since"`
	First int `json:"first"`

	Calibrated bool `json:"calibrated"` // B

	From int64 `json:"from"` // the offset of the first event that is compared
	To   int64 `json:"to"`   // of the last
}

// An Interval is an estimate, and where the mean that it estimates is, with the Level of the
// Result.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Side is one of the two models.
type Side struct {
	Model   string       `json:"model"`
	LogLoss eval.Measure `json:"log_loss"` // mean, in nats, with clipped p
	ROCA    eval.Measure `json:"roca"`     // 1-ROCA%

	Excess     Interval     `json:"excess"` // share of spam minus mean p
	Calibrated bool         `json:"calibrated"`
	Slope      eval.Measure `json:"calibration_slope"`
	ECE        eval.Measure `json:"ece"`

	// What could not be paired.
	Begins  int64 `json:"begins"`  // the offset of the first event that has a prediction; 0 if none has
	Deleted bool  `json:"deleted"` // retention has deleted the first predictions
	Before  int   `json:"before"`  // events before the other model's first prediction
	Only    int   `json:"only"`    // later events that the other model has no prediction of
	Ahead   int   `json:"ahead"`   // events that the other model has not come to, as far as read
	Repeats int   `json:"repeats"` // predictions that were written again
}

// A Comparison compares pairs of predictions. It takes O(1) memory beyond that of the ranks:
// see package eval. It is not safe for concurrent use.
type Comparison struct {
	opts       Options
	difference *confseq.Mean
	sides      [2]tally
	burnt      int
	sign       int // of the interval, after the last pair
	since      int // the pair from which on sign is what it is
	first      int
	from, to   int64 // offsets
}

// A tally is what is known of one model.
type tally struct {
	loss    float64
	excess  *confseq.Mean
	metrics *eval.Metrics
}

// New returns a comparison without events.
func New(opts Options) (*Comparison, error) {
	if opts.BurnIn == 0 {
		opts.BurnIn = DefaultBurnIn
	}
	if opts.Level == 0 {
		opts.Level = DefaultLevel
	}
	c := &Comparison{opts: opts}
	var err, errA, errB error
	c.difference, err = confseq.New(confseq.Config{Limit: Limit, Level: opts.Level})
	c.sides[0], errA = newTally(opts.Level)
	c.sides[1], errB = newTally(opts.Level)
	if err := errors.Join(err, errA, errB); err != nil {
		return nil, fmt.Errorf("compare models: %w", err)
	}
	return c, nil
}

func newTally(level float64) (t tally, err error) {
	t.metrics = eval.New()
	t.excess, err = confseq.New(confseq.Config{Limit: 1, Level: level})
	return t, err
}

// Add compares two predictions of one event. Their labels are equal.
func (c *Comparison) Add(a, b *predictions.Prediction) {
	if c.burnt < c.opts.BurnIn {
		c.burnt++
		return
	}
	if c.difference.N() == 0 {
		c.from = a.Offset
	}
	c.to = a.Offset
	lossA, lossB := c.sides[0].add(a), c.sides[1].add(b)
	c.difference.Add(min(max(lossA-lossB, -Limit), Limit)) // rounding may lead beyond
	n := c.difference.N()
	if sign := c.difference.Sign(0); sign != c.sign {
		c.sign, c.since = sign, n
	}
	if c.sign > 0 && c.first == 0 {
		c.first = n
	}
}

// add counts a prediction and returns its loss.
func (t *tally) add(p *predictions.Prediction) float64 {
	z := float64(p.LogOdds)
	t.metrics.Add(p.Spam, z)
	spam := 0.0
	if p.Spam {
		spam = 1
	}
	t.excess.Add(spam - 1/(1+math.Exp(-z)))
	loss := eval.LogLoss(p.Spam, min(max(z, -Limit), Limit))
	t.loss += loss
	return loss
}

// Verdict says whether B is better now, and whether its calibration holds, as Result does. It
// costs O(1).
func (c *Comparison) Verdict() (better, calibrated bool) {
	return c.sign > 0, c.sides[1].calibrated()
}

// Result returns how the models compare so far. It sorts the log-odds.
func (c *Comparison) Result() Result {
	r := Result{
		A: c.sides[0].side(), B: c.sides[1].side(), Events: c.difference.N(), BurnIn: c.burnt,
		Difference: interval(c.difference), Level: c.opts.Level, Limit: Limit,
		Better: c.sign > 0, Worse: c.sign < 0, First: c.first, From: c.from, To: c.to,
	}
	if c.sign != 0 {
		r.Since = c.since
	}
	r.Calibrated = r.B.Calibrated
	return r
}

func (t *tally) side() Side {
	s := t.metrics.Summary()
	return Side{
		LogLoss: eval.Measure(t.loss / float64(s.Events)), ROCA: s.ROCA, Slope: s.CalibrationSlope, ECE: s.ECE,
		Excess:     interval(t.excess),
		Calibrated: t.calibrated(),
	}
}

func (t *tally) calibrated() bool {
	return t.excess.Sign(Tolerance) <= 0 && t.excess.Sign(-Tolerance) >= 0
}

func interval(m *confseq.Mean) Interval {
	i := Interval{Mean: m.Mean()}
	i.Low, i.High = m.Interval()
	return i
}
