package trust

import (
	"math"
	"strings"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/internal/codec"
)

// The constants of equation (3).
const (
	sourceShrinkage = 20   // κ
	sourceMemory    = 0.99 // as for the common rate: 1 − slowestRate
)

// maxSources is how many sources have their own rate: the ones that labelled last. They
// take up to 688 KiB of a model's bytes, for each kind of body. Adding to a full table scans it: some microseconds.
const maxSources = 4096

// mostName bounds the bytes of a name that are kept to show it. The key is a hash of all.
const mostName = 64

// A source is what is known about one source.
type source struct {
	name   string  // the first mostName bytes of it
	key    uint64  // hash of its name
	last   uint64  // standing.weighed before its last label that was
	count  uint64  // its labels
	doubts float64 // d_s
	labels float64 // n_s

	// What follows is equations (5) to (8).
	tally, slow tally
	share       float64 // of the evidence in the reference, after its last label
	evidenceSum float64 // evidence in tally without forgetting
	late        bool    // whether it was first heard when the others were well known
	accused     uint64  // Label.Event of its last label that contradicted the others; 0: none did
}

// sources are the sources that are known. Invariants: at holds exactly at[known[i].key] = i
// for all i.
type sources struct {
	known []source
	at    map[uint64]int
}

// find returns a source, nil if it is not known.
func (t *sources) find(name string) *source {
	i, ok := t.at[xxhash.Sum64String(name)]
	if !ok {
		return nil
	}
	return &t.known[i]
}

// rate is ε_s of a source, with ε the common rate.
func (t *sources) rate(s *source, ε float64) float64 {
	if s == nil || len(t.known) < 2 {
		return ε
	}
	return max(leastFlipRate, (float64(sourceShrinkage*ε)+s.doubts)/(sourceShrinkage+s.labels))
}

// observe counts a label of the source.
func (s *source) observe(φ float64) {
	s.doubts = float64(sourceMemory*s.doubts) + (1 - φ)
	s.labels = float64(sourceMemory*s.labels) + 1
}

// A Source is what is known about a source of labels.
type Source struct {
	Name         string  // the first bytes of it, at most 64
	Cut          bool    // the name may go on
	Key          uint64  // SourceKey of all of it
	Labels       uint64  // that it has given
	Rate, Lo, Hi float64 // e_s of equation (6), with its 90 % interval
	Weight       float64 // w of equation (8), as of its next label; 1 where labels are not weighed by agreement
	Late         bool    // it was first heard when the others were well known
	Newcomer     bool    // it has given fewer than 50 labels
	Accused      uint64  // Label.Event of its last label that contradicted the others; 0: none did
}

// ShownName is the name for people and for metrics: valid UTF-8, with "…" where it may go on.
func (s *Source) ShownName() string {
	if !s.Cut {
		return s.Name
	}
	return strings.ToValidUTF8(s.Name, "") + "…"
}

// SourceKey is what tells sources apart.
func SourceKey(name string) uint64 { return xxhash.Sum64String(name) }

// Sources returns the sources that are known, in no particular order. roles has those that
// are not Ordinary, by SourceKey.
func (l *Labels) Sources(roles map[uint64]Role, agreement bool) []Source {
	all := make([]Source, len(l.sources.known))
	for i := range l.sources.known {
		from := &l.sources.known[i]
		e, sd := l.standing.rateOf(from.tally, from.newcomer())
		all[i] = Source{
			Name: from.name, Cut: len(from.name) == mostName, Key: from.key, Labels: from.count, Weight: 1, Late: from.late,
			Newcomer: from.newcomer(), Accused: from.accused,
			Rate: e, Lo: max(0, e-float64(oneSided*sd)), Hi: min(1, e+float64(oneSided*sd)),
		}
		switch role := roles[from.key]; {
		case role == Muted:
			all[i].Weight = 0
		case role == Ordinary && agreement:
			all[i].Weight = l.standing.weight(from, l.standing.weighed)
		}
	}
	return all
}

// LastAccusation returns the largest Source.Accused.
func (l *Labels) LastAccusation() (event uint64) {
	for i := range l.sources.known {
		event = max(event, l.sources.known[i].accused)
	}
	return event
}

// entry returns a source, which it adds if it is not known. In a full table it replaces the
// one that has been silent longest.
func (t *sources) entry(name string, now uint64) *source {
	key := xxhash.Sum64String(name)
	i, ok := t.at[key]
	if ok {
		return &t.known[i]
	}
	if t.at == nil {
		t.at = map[uint64]int{}
	}
	i = len(t.known)
	if i < maxSources {
		t.known = append(t.known, source{})
	} else {
		i = 0
		for k := range t.known {
			if t.known[k].last < t.known[i].last {
				i = k
			}
		}
		delete(t.at, t.known[i].key)
	}
	t.known[i] = source{name: strings.Clone(name[:min(len(name), mostName)]), key: key, last: now}
	t.at[key] = i
	return &t.known[i]
}

// The bytes of sources:
//
//	uint64 number of sources | for each, uint64 key, last, labels, late: 0 or 1, accused
//	| float64 d_s, n_s, D, N, slow D, N, ΣN, share | uint32 length, name
const sourceSize = 108

func (t *sources) write(w *codec.Writer) {
	w.Uint64(uint64(len(t.known)))
	for i := range t.known {
		s := &t.known[i]
		late := uint64(0)
		if s.late {
			late = 1
		}
		w.Uint64(s.key, s.last, s.count, late, s.accused)
		w.Float64(s.doubts, s.labels, s.tally.flips, s.tally.evidence, s.slow.flips, s.slow.evidence, s.evidenceSum, s.share)
		w.Text(s.name)
	}
}

// read reads what write wrote after the given number of labels.
func (t *sources) read(r *codec.Reader, labels uint64) {
	n := r.Uint64()
	if n > maxSources || n > labels {
		r.Fail("%d sources of %d labels; at most %d have rates", n, labels, maxSources)
	}
	if !r.Fits(n, sourceSize) {
		return
	}
	t.known, t.at = make([]source, n), make(map[uint64]int, n)
	for i := range t.known {
		s := &t.known[i]
		var late uint64
		r.Uint64To(&s.key, &s.last, &s.count, &late, &s.accused)
		r.FiniteTo(&s.doubts, &s.labels, &s.tally.flips, &s.tally.evidence, &s.slow.flips, &s.slow.evidence, &s.evidenceSum,
			&s.share)
		s.name = r.Text()
		s.late = late == 1
		if _, twice := t.at[s.key]; twice {
			r.Fail("source %d stands there twice", i)
		}
		if len(s.name) < mostName && s.key != xxhash.Sum64String(s.name) {
			r.Fail("source %d has a key that is not its name's", i)
		}
		if late > 1 || len(s.name) > mostName || !s.of(labels) {
			r.Fail("source %d has %v doubts of %v labels, the last number %d of %d", i, s.doubts, s.labels, s.last, labels)
		}
		t.at[s.key] = i
	}
}

// of reports whether so many labels of anybody can have made s.
func (s *source) of(labels uint64) bool {
	return s.last < labels && s.count >= 1 && s.count <= labels && s.labels >= 1 && s.labels <= 1/(1-sourceMemory)+1 &&
		s.doubts >= 0 && s.doubts <= s.labels && !math.Signbit(s.doubts) && s.tally.of(s.evidenceSum, s.count) &&
		s.slow.of(s.evidenceSum, s.count) && s.share >= 0 && s.share <= s.evidenceSum
}
