// Package dedup recognises copies of the last events of a stream. A log that is
// delivered at least once brings copies.
//
//	seen := dedup.New(100_000)
//	key := seen.Key(tenant, source, id)
//	if seen.Has(key) {
//		return // a copy
//	}
//	… // learn the event
//	seen.Add(key)
//
// A [Window] is a ring of 64-bit keys with a hash index. Only the ring is saved. A
// new event is mistaken for a copy with probability limit/2⁶⁴: 5·10⁻¹⁵ at a limit of
// 100,000. Has and Add cost O(1) and allocate nothing once the window is full.
//
// Invariant: the ring's keys differ and are not 0. The index holds exactly these keys.
package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// A Window holds the last keys that were added. It is not safe for concurrent use.
type Window struct {
	limit   int      // how many keys it holds at most; at least 1
	ring    []uint64 // grows to limit, then the oldest is overwritten
	next    int      // where the next key goes: len(ring) until the ring is full
	index   []uint64 // open addressing, at most half full; 0 is an empty slot
	scratch []byte   // Key's buffer
}

// New returns an empty Window of at most limit keys, limit ≥ 1. It grows as keys are added.
func New(limit int) *Window { return &Window{limit: limit} }

// Key returns the first 8 bytes, little endian, of the SHA-256 of all parts, each
// preceded by its length as a uint32. It returns 1 in place of 0, which means no key.
func (w *Window) Key(parts ...string) uint64 {
	b := w.scratch[:0]
	for _, s := range parts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	w.scratch = b
	sum := sha256.Sum256(b)
	return max(1, binary.LittleEndian.Uint64(sum[:]))
}

// Len returns the number of keys.
func (w *Window) Len() int { return len(w.ring) }

// Next returns the slot of the ring where the next key goes.
func (w *Window) Next() int { return w.next }

// Has reports whether the window holds k.
func (w *Window) Has(k uint64) bool {
	return len(w.index) > 0 && w.index[w.find(k)] == k
}

// find returns k's slot in the index, or the empty slot where k would go.
func (w *Window) find(k uint64) int {
	mask := len(w.index) - 1
	for p := int(k) & mask; ; p = (p + 1) & mask {
		if w.index[p] == k || w.index[p] == 0 {
			return p
		}
	}
}

// Add adds a key that the window does not hold. A full window drops its oldest key.
func (w *Window) Add(k uint64) {
	if len(w.ring) < w.limit {
		w.ring = append(w.ring, k)
	} else {
		w.drop(w.ring[w.next])
		w.ring[w.next] = k
	}
	if 2*len(w.ring) > len(w.index) {
		w.reindex()
	} else {
		w.index[w.find(k)] = k
	}
	w.next = (w.next + 1) % w.limit
}

// drop empties k's slot and moves back the keys that k had displaced.
func (w *Window) drop(k uint64) {
	mask := len(w.index) - 1
	hole := w.find(k)
	w.index[hole] = 0
	for p := (hole + 1) & mask; w.index[p] != 0; p = (p + 1) & mask {
		home := int(w.index[p]) & mask
		if (p-home)&mask >= (p-hole)&mask { // the hole lies on the way from home to p
			w.index[hole], w.index[p] = w.index[p], 0
			hole = p
		}
	}
}

// reindex builds a new index of the ring's keys. It is then a quarter to half full.
func (w *Window) reindex() {
	w.index = make([]uint64, 1<<bits.Len(uint(2*len(w.ring))))
	for _, k := range w.ring {
		w.index[w.find(k)] = k
	}
}

// Resize changes the limit, at least 1, and keeps the latest keys that fit.
func (w *Window) Resize(limit int) {
	keys := w.ring // oldest first
	if len(w.ring) == w.limit {
		keys = slices.Concat(w.ring[w.next:], w.ring[:w.next])
	}
	keys = slices.Clone(keys[max(0, len(keys)-limit):])
	w.limit, w.ring, w.next = limit, keys, len(keys)%limit
	w.reindex()
}

// Append appends the ring's slots in order, each a little-endian uint64. The caller must
// save Next separately.
func (w *Window) Append(dst []byte) []byte {
	for _, k := range w.ring {
		dst = binary.LittleEndian.AppendUint64(dst, k)
	}
	return dst
}

// Restore replaces the keys by those that Append wrote. next is the saved Next. If no window
// can have written the bytes, it returns an error, and w must not be used any more.
func (w *Window) Restore(b []byte, next uint64) error {
	n := len(b) / 8
	if len(b)%8 != 0 || n > w.limit {
		return fmt.Errorf("duplicate window of %d bytes, want at most %d, eight a key", len(b), 8*w.limit)
	}
	if n < w.limit && next != uint64(n) || next >= uint64(w.limit) {
		return fmt.Errorf("duplicate window of %d keys goes on at %d", n, next)
	}
	w.ring, w.next = make([]uint64, n), int(next)
	w.index = make([]uint64, 1<<bits.Len(uint(2*n)))
	for i := range w.ring {
		k := binary.LittleEndian.Uint64(b[8*i:])
		if k == 0 || w.Has(k) {
			return fmt.Errorf("duplicate window: key %d is empty or a copy", i)
		}
		w.ring[i] = k
		w.index[w.find(k)] = k
	}
	return nil
}
