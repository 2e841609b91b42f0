package drift

import (
	"fmt"

	"hamlet/algos/internal/codec"
)

// The bytes of a LabelNoise, version 1. Integers and float bits are
// little-endian; nothing follows.
//
//	offset  size  field
//	0       4     "hdln"
//	4       1     version, 1
//	5       1     1 if raised, else 0
//	6       2     zero
//	8       88    Dim, PerClass, Rounds, Inner, Bins, Every, Memory, Lag, Least, Recent, Settle, uint64
//	96      32    Drop, Confirmed, FlipRate, Clear
//	128     8     ε
//	136     8     flags: 1 a result is known, 2 there is a reference, 4 a job is pending
//	144     32    SNR, noise grade, s, reference
//	176     16    since, count of the last Check
//	192     24    pending job: count at its start, ham seen then, spam seen then
//	216     8     H, length of the history
//	224     8·H   the history of s, the latest last
//	        for ham, then for spam:
//	        8     events seen
//	        4·D·min(seen, PerClass + 50)  the last rows, oldest first, float32
//	        once:
//	        8     E, number of recent events
//	        for each recent event, oldest first:
//	        8     label
//	        8     q, the head's probability of the label
//	        4, n  length of the id, the id
//	        4, n  length of the source, the source
//	        once:
//	        8     max(f₀, f₁) at the last Check, 0 if the drop was below Clear
//	        16    events skipped, those of them before the pending job
const labelNoiseMagic = "hdln"

const (
	flagKnown = 1 << iota
	flagReference
	flagPending
)

// AppendBinary appends the bytes of n. The error is always nil.
func (n *LabelNoise) AppendBinary(dst []byte) ([]byte, error) {
	w := newWriter(dst, labelNoiseMagic, n.raised)
	w.Uint64(n.wholes()...)
	w.Float64(n.thresholds()...)
	w.Float64(n.flipRate)
	flags := uint64(0)
	for bit, set := range []bool{n.known, n.hasRef, n.pending} {
		if set {
			flags |= 1 << bit
		}
	}
	w.Uint64(flags)
	w.Float64(n.snr, n.grade, n.level, n.reference)
	w.Uint64(n.since, n.marked, n.started, n.upTo[0], n.upTo[1], uint64(len(n.history)))
	w.Float64(n.history...)
	for i := range n.classes {
		r := &n.classes[i]
		w.Uint64(r.seen)
		for k := r.seen - uint64(r.held()); k < r.seen; k++ {
			w.Float32(r.slot(k)...)
		}
	}
	w.Uint64(uint64(len(n.recent.ring)))
	for _, e := range n.recent.oldest() {
		w.Float64(e.label, e.prob)
		w.Text(e.id)
		w.Text(e.source)
	}
	w.Float64(n.likely)
	w.Uint64(n.skipped, n.skippedBefore)
	return w.Finish()
}

// wholes returns the whole numbers of the configuration in the order of the bytes.
func (n *LabelNoise) wholes() []uint64 {
	s := &n.spans
	all := make([]uint64, 0, 11)
	for _, v := range [...]int{n.cfg.Dim, s.perClass, s.rounds, s.inner, s.bins, s.every, s.memory, s.lag, s.least,
		s.recent, s.settle} {
		all = append(all, uint64(v))
	}
	return all
}

func (n *LabelNoise) thresholds() []float64 {
	return []float64{n.cfg.Drop, n.cfg.Confirmed, n.cfg.FlipRate, n.cfg.Clear}
}

// Size returns the number of bytes that AppendBinary appends. With the defaults, 60
// inputs and full windows it is 144 kB, and for each of the 500 recent events 24 bytes,
// its id and its source.
func (n *LabelNoise) Size() int {
	size := 224 + 8*len(n.history) + 24 + 8 + 16
	for i := range n.classes {
		size += 4 * n.cfg.Dim * n.classes[i].held()
	}
	for _, e := range n.recent.ring {
		size += 24 + len(e.id) + len(e.source)
	}
	return size
}

// UnmarshalBinary sets n, which has been made with the same configuration, to the alarm in b.
// It keeps no reference to b. The alarm continues, to the bit, as if it had never been saved.
// Pending returns its pending job. If b is invalid or has another configuration, the error
// wraps ErrFormat and n is unchanged.
func (n *LabelNoise) UnmarshalBinary(b []byte) error {
	r, raised := newReader(b, labelNoiseMagic)
	expect(r, n.wholes(), n.thresholds())
	q := blank(n.cfg, n.spans)
	q.raised = raised
	q.read(r)
	q.check(r)
	if err := r.Close(); err != nil {
		return fmt.Errorf("label noise: %w", err)
	}
	if q.hasRef {
		q.findSpread()
	}
	*n = *q
	return nil
}

// read reads what follows the configuration.
func (n *LabelNoise) read(r *codec.Reader) {
	var history uint64
	n.flipRate = r.Finite()
	flags := r.Uint64()
	r.FiniteTo(&n.snr, &n.grade, &n.level, &n.reference)
	r.Uint64To(&n.since, &n.marked, &n.started, &n.upTo[0], &n.upTo[1], &history)
	if flags >= 2*flagPending || history > uint64(n.spans.memory/Rhythm) {
		r.Fail("flags %x, a history of %d", flags, history)
		return
	}
	n.known, n.hasRef, n.pending = flags&flagKnown != 0, flags&flagReference != 0, flags&flagPending != 0
	n.history = r.Finites(history)
	for i := range n.classes {
		n.classes[i].read(r)
	}
	recents := r.Uint64()
	if recents > uint64(n.spans.recent) {
		r.Fail("%d recent events of at most %d", recents, n.spans.recent)
	}
	for range recents {
		var w witness
		r.FiniteTo(&w.label, &w.prob)
		w.id, w.source = r.Text(), r.Text()
		if w.label != 1 && w.label != -1 || !isProbability(w.prob) {
			r.Fail("a recent event of label %v and probability %v", w.label, w.prob)
		}
		if r.Err() != nil {
			return
		}
		n.recent.add(w)
	}
	n.likely = r.Finite()
	r.Uint64To(&n.skipped, &n.skippedBefore)
}

func (s *rows) read(r *codec.Reader) {
	s.seen = r.Uint64()
	if !r.Fits(uint64(s.held()), 4*s.dim) {
		return
	}
	s.data = make([]float32, s.dim*s.held())
	for k := s.seen - uint64(s.held()); k < s.seen; k++ {
		r.Fill32(s.slot(k))
	}
}

// check fails if no sequence of events leads to the state of n.
func (n *LabelNoise) check(r *codec.Reader) {
	switch {
	case !isProbability(n.flipRate), !isProbability(n.likely):
		r.Fail("flip rate")
	case n.known != (n.snr > 0) || n.snr < 0 || !n.known && (n.level != 0 || n.grade != 0 || len(n.history) > 0):
		r.Fail("SNR")
	case n.raised && !n.hasRef, n.hasRef && !n.known, !n.hasRef && n.reference != 0,
		n.hasRef && len(n.past()) < n.spans.least/Rhythm:
		r.Fail("reference")
	case n.pending && (n.started == 0 || n.started%Rhythm != 0):
		r.Fail("count of the pending job")
	case n.skippedBefore > n.skipped || n.skipped > mostSeen:
		r.Fail("events skipped")
	case n.pending && n.upTo[0]+n.upTo[1]+n.skippedBefore != n.started:
		r.Fail("events before the pending job")
	case !n.pending && (n.started != 0 || n.skippedBefore != 0 || n.upTo != [2]uint64{}):
		r.Fail("job that is not pending")
	case n.since > n.marked:
		r.Fail("count of the last change")
	}
	for i := range n.classes {
		seen, upTo := n.classes[i].seen, n.upTo[i]
		if seen > mostSeen {
			r.Fail("events seen")
		}
		if n.pending && (upTo < uint64(n.spans.perClass) || upTo > seen || seen-upTo > Rhythm) {
			r.Fail("pending job")
		}
	}
}
