package model

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"hamlet/algos/blr"
	"hamlet/algos/drift"
	"hamlet/algos/ensemble"
	"hamlet/algos/internal/task"
)

// The stacker's prior and forgetting, and how far an ensemble is believed, as
// measured on shuffles of spambase, clean and with flipped labels, on pima,
// ionosphere and elec2: the head and what stands beside it start with one half
// each. Mail has experts that learn all the time, so that little moves between its
// head and an ensemble: a memory of 1,000 events costs less than one of 200 there
// (SpamAssassin with anyboost forced: log loss .0226, not .0236; without, .0218).
// Vectors may move (elec2: .488 with .995, .520 with .999; spambase .1681, .1678).
const (
	stackBias, stackHead, stackOthers = 0.1, 0.25, 0.25 // variances
	stackShare                        = 0.5             // mean weight of the head, and of the others together
	textMemory, vectorMemory          = 0.999, 0.995    // ρ, an event
	stackClip                         = 6               // an ensemble's log-odds, in nats
)

// A stack joins the answer of a sub-model's head, A, with those of ensembles that are
// rebuilt from the sub-model's past and, if there is one, of a second head that
// forgets faster. The stacker B is a Bayesian logistic regression on
//
//	z = [1, m_A, m of the second head, each ensemble's log-odds clipped at ±6]
//
// which forgets. With b its mean, m_B = bᵀz and a_B its variance along z, served
// are
//
//	m_B   with variance   a_B + b_A²a_A + 2b_A·b_2·min(a_A, a_2) + b_2²a_2       (1)
//
// so that the heads' doubt reaches the interval. The heads learnt the same events,
// one of them with the older faded: of two estimates of which one is efficient the
// covariance is that one's variance (Hausman, Specification tests in econometrics,
// 1978), the smaller. It serves once every ensemble is there; until then A does.
type stack struct {
	kinds  []ensemble.Kind
	window int // W
	every  int // R
	past   past

	second  *blr.Posterior // nil: none
	stacker *blr.Posterior // B
	built   []*ensemble.Ensemble

	started uint64                        // the sub-model's event count when the pending rebuild was started, 0: none is
	rebuild *task.Task[[]ensemble.Result] // the pending rebuild; nil: none, or nobody has taken it up
}

// newStack returns the stack of a sub-model before any event; nil if the head stands
// alone.
func newStack(spec *spec) *stack {
	cfg, kinds := spec.cfg, spec.ensembles
	if spec.stackerInputs() == 0 {
		return nil
	}
	s := &stack{
		window: cfg.Window, every: cfg.Rebuild,
		past:  past{dim: spec.layout.raw, limit: cfg.Window + cfg.Rebuild},
		built: make([]*ensemble.Ensemble, len(kinds)),
	}
	for _, k := range kinds {
		s.kinds = append(s.kinds, ensemble.Kind(k))
	}
	others := len(kinds)
	if cfg.SecondHead > 0 {
		s.second = spec.newHead(spec.headSpec.Site, blr.HalfLife(cfg.SecondHead))
		others++
	}
	var p prior
	p.add(0, stackBias)
	p.add(stackShare, stackHead)
	for range others {
		p.add(stackShare/float64(others), stackOthers)
	}
	s.stacker = newHead(p, SiteRVGA, blr.HalfLife(spec.memory))
	return s
}

// serves reports whether every ensemble is there.
func (s *stack) serves() bool {
	for _, e := range s.built {
		if e == nil {
			return false
		}
	}
	return true
}

// A joining is scratch of one Predictor for the answer of a stack.
type joining struct {
	z, b   []float64  // of the stacker: its input, its mean
	second [2]float64 // m and a of the second head
	parts  []blr.Contribution
}

// predict joins what A said of in with what the others say.
func (s *stack) predict(in *features) Prediction {
	j, a := &in.joining, in.head
	j.z = append(j.z[:0], 1, a.Mean)
	if s.second != nil {
		j.second[0], j.second[1] = s.second.Moments(in.x)
		j.z = append(j.z, j.second[0])
	}
	for _, e := range s.built {
		j.z = append(j.z, min(max(e.LogOdds(in.inputs), -stackClip), stackClip))
	}
	if len(j.b) != len(j.z) {
		j.b = make([]float64, len(j.z))
	}
	s.stacker.MeanTo(j.b)
	mean, variance := s.stacker.Moments(j.z)
	var b2, a2 float64
	if s.second != nil {
		b2, a2 = j.b[2], j.second[1]
	}
	variance += doubt(j.b[1], a.Variance, b2, a2)
	return moderated(mean, variance)
}

// doubt is the variance of b₁m₁ + b₂m₂ by (1).
func doubt(b1, a1, b2, a2 float64) float64 {
	return float64(float64(b1*b1)*a1) + float64(float64(2*b1*b2)*min(a1, a2)) + float64(float64(b2*b2)*a2)
}

// contributions appends to dst those of the stack's answer, behind predict: of A's
// inputs own, in their order, then of each ensemble. The bias has the stacker's
// own. Standard deviations are what A and the second head say, joined as in (1),
// and for the rest the stacker's.
func (s *stack) contributions(dst []blr.Contribution, in *features, own []blr.Contribution) []blr.Contribution {
	j := &in.joining
	var second []blr.Contribution
	if s.second != nil {
		j.parts = s.second.Contributions(j.parts[:0], in.x)
		second = j.parts
	}
	joint := s.stacker.Contributions(nil, j.z)
	for i, c := range own {
		mean, b2, a2 := float64(j.b[1]*c.Mean), 0.0, 0.0
		if second != nil {
			mean += float64(j.b[2] * second[i].Mean)
			b2, a2 = j.b[2], float64(second[i].SD*second[i].SD)
		}
		variance := doubt(j.b[1], float64(c.SD*c.SD), b2, a2)
		if i == 0 {
			mean, variance = mean+joint[0].Mean, variance+float64(joint[0].SD*joint[0].SD)
		}
		dst = append(dst, blr.Contribution{Mean: mean, SD: math.Sqrt(max(0, variance))})
	}
	return append(dst, joint[len(joint)-len(s.built):]...)
}

// learn absorbs an event that the stack's half read as in and predicted, with the
// weight that the half gives it; serving says whether the stack was asked.
// It returns the records of the stacker, with an X of no inputs where it was not
// asked, and of the second head, if there is one.
func (s *stack) learn(in *features, r row, weight float64, serving bool) (joint, second blr.Record) {
	if serving {
		joint = s.stacker.Update(in.joining.z, r.label, weight)
	}
	if s.second != nil {
		second = s.second.Update(in.x, r.label, weight)
	}
	if len(s.kinds) > 0 {
		s.past.add(r, in.inputs)
	}
	return joint, second
}

// withdrawn returns the stacker and the second head without an event of the given
// records. It changes nothing: a withdrawal is rare, and may cost copies.
func (s *stack) withdrawn(joint, second blr.Record) (_, _ *blr.Posterior, err error) {
	b, two := s.stacker, s.second
	if len(joint.X) > 0 {
		b = b.Clone()
		if _, err := b.Unlearn(joint); err != nil {
			return nil, nil, fmt.Errorf("stacker: %w", err)
		}
	}
	if two != nil {
		two = two.Clone()
		if _, err := two.Unlearn(second); err != nil {
			return nil, nil, fmt.Errorf("second head: %w", err)
		}
	}
	return b, two, nil
}

// stackerInputs is the length of z, 0 where the head stands alone.
func (s *spec) stackerInputs() int {
	switch {
	case s.cfg.SecondHead > 0:
		return 3 + len(s.ensembles)
	case len(s.ensembles) > 0:
		return 2 + len(s.ensembles)
	}
	return 0
}

// due returns the sub-model's event count at which the pending rebuild takes effect.
func (s *stack) due() uint64 {
	if s.started < uint64(s.every) {
		return s.started + drift.Rhythm
	}
	return s.started + uint64(s.every)
}

// tick does what is due at the sub-model's event count count: a rebuild takes effect,
// another is started. It appends what became of the ensembles.
func (s *stack) tick(dst []Rebuild, count uint64, r Runner) []Rebuild {
	if len(s.kinds) == 0 || count%drift.Rhythm != 0 {
		return dst
	}
	if s.started > 0 && s.due() == count {
		s.resume(count, r)
		for i, result := range s.rebuild.Result() {
			dst = append(dst, Rebuild{
				Ensemble: string(s.kinds[i]), Started: s.started, Rows: int(min(s.started, uint64(s.window))), Err: result.Err,
			})
			if result.Err == nil {
				s.built[i] = result.Ensemble
			}
		}
		s.started, s.rebuild = 0, nil
	}
	if count%uint64(s.every) == 0 || count < uint64(s.every) {
		s.started = count
		s.resume(count, r)
	}
	return dst
}

// resume takes up the rebuild that is pending at the sub-model's event count count, if
// nobody has.
func (s *stack) resume(count uint64, r Runner) {
	if s.started == 0 || s.rebuild != nil {
		return
	}
	w := &ensemble.Window{Dim: s.past.dim}
	w.Inputs, w.Labels, w.Weights = s.past.last(s.window, int(count-s.started), s.started)
	kinds := s.kinds
	s.rebuild = task.Begin(r, func() []ensemble.Result { return ensemble.Build(context.Background(), kinds, w) })
}

// The bytes of a stack, little endian:
//
//	uint64 started | stacker | second head | of each kind its ensemble | window
//
// where each part but the window is behind a uint64 with its length, 0 if there
// is none.
func (s *stack) append(dst []byte) (_ []byte, err error) {
	dst = binary.LittleEndian.AppendUint64(dst, s.started)
	if dst, err = appendPart(dst, s.stacker); err != nil {
		return nil, err
	}
	if s.second != nil {
		if dst, err = appendPart(dst, s.second); err != nil {
			return nil, err
		}
	}
	for _, e := range s.built {
		if e == nil {
			dst = binary.LittleEndian.AppendUint64(dst, 0)
		} else if dst, err = appendPart(dst, e); err != nil {
			return nil, err
		}
	}
	return s.past.append(dst), nil
}

// restore reads what append wrote, for a sub-model of the given number of events, into
// a stack before any event.
func (s *stack) restore(b []byte, events uint64) error {
	if len(b) < 8 {
		return fmt.Errorf("%d bytes, want at least 8", len(b))
	}
	s.started, b = binary.LittleEndian.Uint64(b), b[8:]
	if want := s.pendingAt(events); s.started != want {
		return fmt.Errorf("a rebuild started at %d after %d events, want %d", s.started, events, want)
	}
	var err error
	if s.stacker, b, err = restoreHead(b, s.stacker); err != nil {
		return fmt.Errorf("stacker: %w", err)
	}
	if s.stacker.Updates() > events {
		return fmt.Errorf("stacker of %d events, want at most %d", s.stacker.Updates(), events)
	}
	if s.second != nil {
		if s.second, b, err = restoreHead(b, s.second); err != nil {
			return fmt.Errorf("second head: %w", err)
		}
		if s.second.Updates() != events {
			return fmt.Errorf("second head of %d events, want %d", s.second.Updates(), events)
		}
	}
	for i, kind := range s.kinds {
		own, rest, err := cutPart(b)
		if err != nil {
			return err
		}
		if b = rest; len(own) == 0 {
			continue
		}
		e := new(ensemble.Ensemble)
		if err := e.UnmarshalBinary(own); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if e.Kind() != kind || e.Dim() != s.past.dim {
			return fmt.Errorf("an ensemble %s of %d inputs, want %s of %d", e.Kind(), e.Dim(), kind, s.past.dim)
		}
		s.built[i] = e
	}
	if len(s.kinds) == 0 {
		events = 0 // no ensemble, no window
	}
	return s.past.restore(b, events)
}

// pendingAt returns when the rebuild was started that is pending at a count.
func (s *stack) pendingAt(count uint64) uint64 {
	switch every := uint64(s.every); {
	case len(s.kinds) == 0:
		return 0
	case count < every:
		return count - count%drift.Rhythm
	default:
		return count - count%every
	}
}
