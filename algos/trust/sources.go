package trust

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/internal/codec"
)

// The constants of equation (3).
const (
	sourceShrinkage = 20   // κ
	sourceMemory    = 0.99 // as for the common rate: 1 − slowestRate
)

// maxSources is how many sources have their own rate: the ones that labelled last. They
// take 128 KiB of a model's bytes. Adding to a full table scans it: some microseconds.
const maxSources = 4096

// A sourceRate is what is known about one source.
type sourceRate struct {
	key    uint64  // hash of its name
	last   uint64  // index of its last label among all labels, from 0
	doubts float64 // d_s
	labels float64 // n_s
}

// sources are the flip rates by source. Invariant: at holds exactly at[known[i].key] = i
// for all i.
type sources struct {
	known []sourceRate
	at    map[uint64]int
}

// rate is ε_s of a source, with ε the common rate.
func (t *sources) rate(name string, ε float64) float64 {
	i, ok := t.at[xxhash.Sum64String(name)]
	if !ok || len(t.known) < 2 {
		return ε
	}
	s := &t.known[i]
	return max(leastFlipRate, (float64(sourceShrinkage*ε)+s.doubts)/(sourceShrinkage+s.labels))
}

// observe counts a label of a source; label is its number, from 0.
func (t *sources) observe(name string, φ float64, label uint64) {
	key := xxhash.Sum64String(name)
	i, ok := t.at[key]
	if !ok {
		i = t.place(key)
	}
	s := &t.known[i]
	s.last = label
	s.doubts = float64(sourceMemory*s.doubts) + (1 - φ)
	s.labels = float64(sourceMemory*s.labels) + 1
}

// place adds a source. In a full table it replaces the one that has been silent longest.
func (t *sources) place(key uint64) int {
	if t.at == nil {
		t.at = map[uint64]int{}
	}
	i := len(t.known)
	if i < maxSources {
		t.known = append(t.known, sourceRate{})
	} else {
		i = 0
		for k := range t.known {
			if t.known[k].last < t.known[i].last {
				i = k
			}
		}
		delete(t.at, t.known[i].key)
	}
	t.known[i] = sourceRate{key: key}
	t.at[key] = i
	return i
}

// The bytes of sources:
//
//	uint64 number of sources | for each, uint64 key, last | float64 d_s, n_s
const sourceSize = 32

func (t *sources) write(w *codec.Writer) {
	w.Uint64(uint64(len(t.known)))
	for i := range t.known {
		s := &t.known[i]
		w.Uint64(s.key, s.last)
		w.Float64(s.doubts, s.labels)
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
	t.known, t.at = make([]sourceRate, n), make(map[uint64]int, n)
	for i := range t.known {
		s := sourceRate{key: r.Uint64(), last: r.Uint64(), doubts: r.Float64(), labels: r.Float64()}
		if _, twice := t.at[s.key]; twice {
			r.Fail("source %d stands there twice", i)
		}
		if s.last >= labels || !(s.labels >= 1 && s.labels <= math.MaxUint32) ||
			!(s.doubts >= 0 && s.doubts <= s.labels) || math.Signbit(s.doubts) {
			r.Fail("source %d has %v doubts of %v labels, the last number %d of %d", i, s.doubts, s.labels, s.last, labels)
		}
		t.known[i], t.at[s.key] = s, i
	}
}
