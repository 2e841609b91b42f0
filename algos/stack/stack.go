// Package stack joins the answers of several models of one stream. A head learns every
// event. Ensembles are rebuilt now and then from a window of the last events. A second
// head forgets faster than the first. A stacker weights their log-odds (Wolpert,
// Stacked generalization, 1992).
//
// # The answer
//
// The stacker B is a Bayesian logistic regression, which forgets, on
//
//	z = [1, m_A, m_2, each ensemble's log-odds clipped at ±6]
//
// with m_A and m_2 the means of the head's and the second head's log-odds. b is the
// stacker's mean, m_B = bᵀz, and a_B its variance along z. Served are
//
//	m_B   with variance   a_B + b_A²a_A + 2b_A·b_2·min(a_A, a_2) + b_2²a_2       (1)
//
// so that the interval includes the heads' doubt. Both heads learnt the same events. The
// covariance of an efficient estimate and another one is the efficient one's variance,
// which is the smaller (Hausman, Specification tests in econometrics, 1978).
//
// The stack is ready once every ensemble has been built. Until then the head answers alone.
//
// # The gate
//
// A stack of mail and text is gated: it answers only while a [Gate] is open, which has seen
// its answers to be better than the head's. While the gate is closed, the answer is the
// head's to the last bit, and the stack goes on learning.
// The gate governs all of the stack, a second head included. A stack of vectors is not
// gated, as MEASURED.md explains. With all experts an ensemble gains nothing for mail, so by
// default mail has no stack.
//
// # Rebuilds
//
// A rebuild starts about when a tenth of the events is new: at each event count divisible by
// a step, which is a tenth of the count, in 50s, from 50 to R. Ensembles are built from the
// last W events, weighted by their trust. They take effect when the next rebuild starts. So
// ensembles answer only events that they never saw. If an ensemble cannot be built (from
// a window of one class, for example), the previous one stays in effect.
//
// # Use
//
//	s := stack.New(cfg)
//	if s.Ready() {
//		mean, variance = s.Predict(&scratch, stack.Event{X: x, Inputs: inputs, Mean: m, Variance: a})
//	}
//	count++
//	s.Learn(&scratch, event, row, weight, answers, count)
//	rebuilds := s.Tick(nil, count, runner)
//
// # Invariants
//
//   - When a rebuild is computed, and whether a Stack was saved and read in between,
//     changes no bit.
//   - A rebuild leaves out the events that were withdrawn before it started.
//
// MEASURED.md has the measurements behind the constants.
package stack

import (
	"context"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/blr"
	"hamlet/algos/drift"
	"hamlet/algos/ensemble"
	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/defect"
	"hamlet/algos/internal/task"
)

// The stacker's prior: the head starts with the weight ½, the others with ½ together. The
// log-odds of ensembles are clipped.
const (
	biasVariance, headVariance, otherVariance = 0.1, 0.25, 0.25
	headWeight                                = 0.5 // mean weight of the head, and of the others together
	clipAt                                    = 6   // nats
)

// A Config describes a Stack.
type Config struct {
	Ensembles []ensemble.Kind
	Inputs    int            // number of inputs of an ensemble
	Window    int            // W
	Rebuild   int            // R, a multiple of drift.Rhythm
	Rounds    int            // at most, of an ensemble
	Memory    float64        // ρ an event of the stacker
	Gated     bool           // whether a gate decides if the stack serves
	Second    *blr.Posterior // the second head before any event; nil: none
}

// StackerInputs returns the length of z, 0 for a head alone.
func StackerInputs(ensembles int, second bool) int {
	switch {
	case second:
		return 3 + ensembles
	case ensembles > 0:
		return 2 + ensembles
	}
	return 0
}

// A Stack is the stacker with the second head and the ensembles. One goroutine changes it.
// Predict may run concurrently with itself if each call has its own Scratch.
type Stack struct {
	kinds  []ensemble.Kind
	rows   int // W
	every  int // R
	window window

	second  *blr.Posterior // nil: none
	stacker *blr.Posterior // B
	built   []*ensemble.Ensemble
	gated   bool
	gate    Gate // zero if not gated

	// started is the event count at which the pending rebuild was started; 0: none is
	// pending. Invariant: pendingAt(the event count). rebuild is its work; nil: none is
	// pending, or Resume must start it.
	started uint64
	rebuild *task.Task[[]ensemble.Result]
}

// New returns a Stack before any event. It panics if cfg has neither an ensemble nor a
// second head.
func New(cfg Config) *Stack {
	n := StackerInputs(len(cfg.Ensembles), cfg.Second != nil)
	mean, precision := make([]float64, n), make([]float64, n)
	precision[0] = 1 / biasVariance
	mean[1], precision[1] = headWeight, 1/headVariance
	for j := 2; j < n; j++ {
		mean[j], precision[j] = headWeight/float64(n-2), 1/otherVariance
	}
	stacker, err := blr.New(blr.Config{Dim: n, Mean: mean, Precision: precision, Approximation: blr.RVGA,
		HalfLife: blr.HalfLife(cfg.Memory)})
	if err != nil {
		panic(err) // the prior above is valid
	}
	return &Stack{
		kinds: cfg.Ensembles, rows: cfg.Window, every: cfg.Rebuild,
		window:  window{dim: cfg.Inputs, limit: cfg.Window + cfg.Rebuild, rounds: cfg.Rounds},
		second:  cfg.Second,
		stacker: stacker,
		gated:   cfg.Gated,
		built:   make([]*ensemble.Ensemble, len(cfg.Ensembles)),
	}
}

// Kinds returns the ensembles' kinds, in the order of z.
func (s *Stack) Kinds() []ensemble.Kind { return s.kinds }

// Ensemble returns ensemble i, nil before its first.
func (s *Stack) Ensemble(i int) *ensemble.Ensemble { return s.built[i] }

// Second returns the second head, nil if there is none.
func (s *Stack) Second() *blr.Posterior { return s.second }

// Stacker returns B.
func (s *Stack) Stacker() *blr.Posterior { return s.stacker }

// WindowSize returns the number of bytes that Write appends for the window.
func (s *Stack) WindowSize() int { return s.window.size() }

// Ready reports whether every ensemble has been built, so that Predict may be called.
func (s *Stack) Ready() bool { return !slices.Contains(s.built, nil) }

// Serves reports whether the stack answers in place of the head: it is ready, and its gate
// is open if it has one.
func (s *Stack) Serves() bool { return s.Ready() && (s.gate.Open || !s.gated) }

// Gate returns the gate. ok is false if the stack has none.
func (s *Stack) Gate() (g Gate, ok bool) { return s.gate, s.gated }

// Pending returns the event count at which the pending rebuild was started, and that at which
// it takes effect; 0 and 0 if none is pending.
func (s *Stack) Pending() (started, due uint64) {
	if s.started == 0 {
		return 0, 0
	}
	return s.started, s.due()
}

// An Event holds the inputs X of the heads, the Inputs of ensembles, and the mean and
// variance of the head's log-odds.
type Event struct {
	X, Inputs      []float64
	Mean, Variance float64
}

// Scratch is memory of one goroutine for Predict, Learn and Contributions.
type Scratch struct {
	z, b   []float64  // of the stacker: its input, its mean
	second [2]float64 // m and a of the second head
	parts  []blr.Contribution
}

// Predict returns (1), and leaves in c what Learn and Contributions need. It
// allocates nothing in the steady state.
func (s *Stack) Predict(c *Scratch, e Event) (mean, variance float64) {
	c.z = append(c.z[:0], 1, e.Mean)
	if s.second != nil {
		c.second[0], c.second[1] = s.second.Moments(e.X)
		c.z = append(c.z, c.second[0])
	}
	for _, one := range s.built {
		c.z = append(c.z, min(max(one.LogOdds(e.Inputs), -clipAt), clipAt))
	}
	if len(c.b) != len(c.z) {
		c.b = make([]float64, len(c.z))
	}
	s.stacker.MeanTo(c.b)
	mean, variance = s.stacker.Moments(c.z)
	var b2, a2 float64
	if s.second != nil {
		b2, a2 = c.b[2], c.second[1]
	}
	return mean, variance + doubt(c.b[1], e.Variance, b2, a2)
}

// doubt is the variance of b₁m₁ + b₂m₂ by (1).
func doubt(b1, a1, b2, a2 float64) float64 {
	return float64(float64(b1*b1)*a1) + float64(float64(2*b1*b2)*min(a1, a2)) + float64(float64(b2*b2)*a2)
}

// Contributions appends to dst what each input of the head, then each ensemble, adds to the
// mean that Predict returned. own are the head's own contributions. Standard deviations
// of inputs are the heads', combined as in (1); those of ensembles are the stacker's. The
// constant includes the stacker's constant.
func (s *Stack) Contributions(dst []blr.Contribution, c *Scratch, x []float64,
	own []blr.Contribution) []blr.Contribution {
	var second []blr.Contribution
	if s.second != nil {
		c.parts = s.second.Contributions(c.parts[:0], x)
		second = c.parts
	}
	stacked := s.stacker.Contributions(nil, c.z)
	for i, o := range own {
		mean, b2, a2 := float64(c.b[1]*o.Mean), 0.0, 0.0
		if second != nil {
			mean += float64(c.b[2] * second[i].Mean)
			b2, a2 = c.b[2], float64(second[i].SD*second[i].SD)
		}
		variance := doubt(c.b[1], float64(o.SD*o.SD), b2, a2)
		if i == 0 {
			mean, variance = mean+stacked[0].Mean, variance+float64(stacked[0].SD*stacked[0].SD)
		}
		dst = append(dst, blr.Contribution{Mean: mean, SD: math.Sqrt(max(0, variance))})
	}
	return append(dst, stacked[len(stacked)-len(s.built):]...)
}

// Answers are what the head and the stack each answer to an event: log-odds of spam in
// nats, as they are served.
type Answers struct{ Head, Stack float64 }

// Learn absorbs event number count, which counts from 1, with the weight that the head
// gives it. If s was ready, Predict must have been called for the event with scratch, and
// answers have its outcome. Else answers are not read. Learn returns the sites of the
// stacker, without X if s was not ready, and of the second head, if there is one.
func (s *Stack) Learn(scratch *Scratch, e Event, row Row, weight float64, a Answers,
	count uint64) (stacker, second blr.Site) {
	if s.Ready() {
		stacker = s.stacker.Update(scratch.z, row.Label, weight)
		if s.gated {
			s.gate.observe(a, row.Label, row.Phi, count)
		}
	}
	if s.second != nil {
		second = s.second.Update(e.X, row.Label, weight)
	}
	if len(s.kinds) > 0 {
		s.window.add(row, e.Inputs)
	}
	return stacker, second
}

// Unlearn withdraws an event that was followed by back others, with its sites from Learn.
// next is the next event count. Only apply changes s. Unlearn copies the heads, because
// withdrawals are rare.
func (s *Stack) Unlearn(stacker, second blr.Site, back int, next uint64) (apply func(), err error) {
	b, two := s.stacker, s.second
	if len(stacker.X) > 0 {
		b = b.Clone()
		if _, err := b.Unlearn(stacker); err != nil {
			return nil, fmt.Errorf("stacker: %w", err)
		}
	}
	if two != nil {
		two = two.Clone()
		if _, err := two.Unlearn(second); err != nil {
			return nil, fmt.Errorf("second head: %w", err)
		}
	}
	return func() {
		s.stacker, s.second = b, two
		s.window.withdraw(back, next)
	}, nil
}

// A Rebuild says whether an ensemble was built from the window. If not, the previous one
// stays in effect.
type Rebuild struct {
	Ensemble string // its kind, such as "logit-trees"
	Started  uint64 // the event count at which the window was copied
	Rows     int    // of the window
	Err      error  // nil: it takes effect with the next event
}

// Tick does what is due at an event count: a rebuild takes effect, another is started. It
// appends the outcomes to dst. r computes rebuilds in the background; if nil, Tick does.
func (s *Stack) Tick(dst []Rebuild, count uint64, r task.Runner) []Rebuild {
	if len(s.kinds) == 0 || count%drift.Rhythm != 0 {
		return dst
	}
	if s.started > 0 && s.due() == count {
		s.Resume(count, r)
		rows := int(min(s.started, uint64(s.rows)))
		for i, result := range s.rebuild.Result() {
			dst = append(dst, Rebuild{string(s.kinds[i]), s.started, rows, result.Err})
			if result.Err == nil {
				s.built[i] = result.Ensemble
			}
		}
		s.started, s.rebuild = 0, nil
	}
	if count%s.step(count) == 0 {
		s.started = count
		s.Resume(count, r)
	}
	return dst
}

// stage is how many events a step lasts, as long as it is below R. Each stage begins with
// a rebuild: k·stage is divisible by the k·50 of its stage. So is 10·R by R.
const stage = 10 * drift.Rhythm

// step returns the step at an event count. Rebuilds start at the counts that it divides.
func (s *Stack) step(count uint64) uint64 {
	return min(uint64(s.every), drift.Rhythm*max(1, count/stage))
}

// due returns the event count at which the pending rebuild takes effect: the next start.
func (s *Stack) due() uint64 {
	step := s.step(s.started)
	if next := s.started - s.started%stage + stage; step < uint64(s.every) && next < s.started+step {
		return next
	}
	return s.started + step
}

// pendingAt returns the event count at which the rebuild pending at count was started.
func (s *Stack) pendingAt(count uint64) uint64 {
	if len(s.kinds) == 0 {
		return 0
	}
	return count - count%s.step(count)
}

// Resume starts the work of the rebuild pending at an event count, unless it runs already.
// Call it after Read.
func (s *Stack) Resume(count uint64, r task.Runner) {
	if s.started == 0 || s.rebuild != nil {
		return
	}
	w, kinds := s.window.last(s.rows, int(count-s.started), s.started), s.kinds
	s.rebuild = task.Begin(r, func() []ensemble.Result { return build(kinds, w) })
}

// build is ensemble.Build. After a panic no ensemble could be built: the ones before go on. A
// panic of the event at which the rebuild is due would blame that event, and the one after it.
func build(kinds []ensemble.Kind, w *ensemble.Window) (results []ensemble.Result) {
	defer func() {
		if value := recover(); value != nil {
			err := defect.Recovered("rebuild ensembles", value)
			results = make([]ensemble.Result, len(kinds))
			for i := range results {
				results[i].Err = err
			}
		}
	}()
	return ensemble.Build(context.Background(), kinds, w)
}

// Write appends
//
//	uint64 started | gate | stacker | second head | of each kind its ensemble | window
//
// where each part but gate and window follows its length, a uint64. A missing ensemble has
// the length 0. A missing gate or second head has none.
func (s *Stack) Write(w *codec.Writer) {
	w.Uint64(s.started)
	if s.gated {
		s.gate.write(w)
	}
	w.Part64(s.stacker)
	if s.second != nil {
		w.Part64(s.second)
	}
	for _, e := range s.built {
		if e == nil {
			w.Uint64(0)
		} else {
			w.Part64(e)
		}
	}
	s.window.write(w)
}

// Read reads what Write wrote after the given number of events; s is new. r fails if s's
// configuration and that many events cannot have made the bytes.
func (s *Stack) Read(r *codec.Reader, events uint64) {
	s.started = r.Uint64()
	if want := s.pendingAt(events); s.started != want {
		r.Fail("a rebuild started at %d after %d events, want %d", s.started, events, want)
	}
	if s.gated {
		s.gate.read(r)
	}
	s.stacker = readHead(r, "stacker", s.stacker)
	if n := s.stacker.Updates(); n > events {
		r.Fail("stacker of %d events, want at most %d", n, events)
	}
	if s.second != nil {
		s.second = readHead(r, "second head", s.second)
		if n := s.second.Updates(); n != events {
			r.Fail("second head of %d events, want %d", n, events)
		}
	}
	for i, kind := range s.kinds {
		b := r.Part64()
		if len(b) == 0 {
			continue
		}
		e := new(ensemble.Ensemble)
		if err := e.UnmarshalBinary(b); err != nil {
			r.Fail("%s: %w", kind, err)
		} else if e.Kind() != kind || e.Dim() != s.window.dim {
			r.Fail("an ensemble %s of %d inputs, want %s of %d", e.Kind(), e.Dim(), kind, s.window.dim)
		}
		s.built[i] = e
	}
	s.gate.check(r, events, s.Ready())
	if len(s.kinds) == 0 {
		events = 0 // no ensemble, no window
	}
	s.window.read(r, events)
}

// readHead reads a head configured as fresh. On an error it returns fresh.
func readHead(r *codec.Reader, name string, fresh *blr.Posterior) *blr.Posterior {
	b, p := r.Part64(), new(blr.Posterior)
	if r.Err() != nil {
		return fresh
	}
	err := p.UnmarshalBinary(b)
	if err == nil {
		err = p.CheckAs(fresh)
	}
	if err != nil {
		r.Fail("%s: %w", name, err)
		return fresh
	}
	return p
}
