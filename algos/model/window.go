package model

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A window knows the last keys that entered it: a ring of their 64-bit hashes,
// which is what is saved, and an index over it. Two different keys are taken for
// one with a probability of window/2⁶⁴, 5·10⁻¹⁵ an event by default. It allocates
// nothing once it is full.
type window struct {
	limit   int
	ring    []uint64 // grows to limit, then the oldest is overwritten
	next    int      // where the next key goes
	index   []uint64 // open addressing, at most half full; 0 is an empty slot
	scratch []byte
}

// key hashes what names an event: the first 8 bytes, little endian, of the
// SHA-256 of tenant, source and id, each after its length as a uint32. 0 stands
// for no key, and becomes 1.
func (w *window) key(ex *Example) uint64 { return w.hash(ex.Tenant, ex.Source, ex.ID) }

// named hashes an event's name without its source, by which others may speak of it.
func (w *window) named(tenant, id string) uint64 { return w.hash(tenant, id) }

func (w *window) hash(parts ...string) uint64 {
	b := w.scratch[:0]
	for _, s := range parts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	w.scratch = b
	sum := sha256.Sum256(b)
	return max(1, binary.LittleEndian.Uint64(sum[:]))
}

// find returns k's slot in the index, or the empty one where it would go.
func (w *window) find(k uint64) int {
	mask := len(w.index) - 1
	for p := int(k) & mask; ; p = (p + 1) & mask {
		if w.index[p] == k || w.index[p] == 0 {
			return p
		}
	}
}

func (w *window) has(k uint64) bool {
	return len(w.index) > 0 && w.index[w.find(k)] == k
}

// add enters a key that the window does not have, and drops the oldest if it is full.
func (w *window) add(k uint64) {
	if len(w.ring) < w.limit {
		w.ring = append(w.ring, k)
		if 2*len(w.ring) > len(w.index) {
			w.reindex()
		} else {
			w.index[w.find(k)] = k
		}
	} else {
		w.drop(w.ring[w.next])
		w.ring[w.next] = k
		w.index[w.find(k)] = k
	}
	w.next++
	if w.next == w.limit {
		w.next = 0
	}
}

// drop empties k's slot and moves back the keys that k had pushed on.
func (w *window) drop(k uint64) {
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

// reindex makes an index for the ring's keys, a quarter to half full.
func (w *window) reindex() {
	w.index = make([]uint64, 1<<bits.Len(uint(2*len(w.ring))))
	for _, k := range w.ring {
		w.index[w.find(k)] = k
	}
}

// resize changes the limit and keeps the latest keys that it allows.
func (w *window) resize(limit int) {
	keys := make([]uint64, 0, min(limit, len(w.ring)))
	oldest := 0
	if len(w.ring) == w.limit {
		oldest = w.next
	}
	for i := max(0, len(w.ring)-limit); i < len(w.ring); i++ {
		keys = append(keys, w.ring[(oldest+i)%len(w.ring)])
	}
	w.limit, w.ring, w.next = limit, keys, len(keys)%limit
	w.index = nil
	if len(keys) > 0 {
		w.reindex()
	}
}

// restore reads the ring, slot by slot; next is where the next key goes.
func (w *window) restore(b []byte, next uint64) error {
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
		if k == 0 || w.has(k) {
			return fmt.Errorf("duplicate window: key %d is empty or a copy", i)
		}
		w.ring[i] = k
		w.index[w.find(k)] = k
	}
	return nil
}
