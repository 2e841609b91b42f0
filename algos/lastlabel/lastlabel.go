// Package lastlabel remembers the last label of each of the last messages of a stream, and
// who gave it. A correction of a message that is too old to be withdrawn is decided by it.
//
//	labels := lastlabel.New(100_000)
//	labels.Put(message, lastlabel.Label{Source: source, State: lastlabel.Spam})
//	last := labels.Get(message) // its State is Unknown if the table does not hold it
//
// A message and a source are 64-bit hashes that are not 0. A message keeps its place in the
// table: a full table drops the message that was first labelled longest ago. Get and Put cost
// O(1) and allocate nothing once the table is full.
//
// Invariant: the ring's messages differ and are not 0. The index holds exactly their slots.
package lastlabel

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// A State says how a message was labelled last.
type State uint8

const (
	Unknown   State = iota // the table does not hold the message
	Ham                    // it was called ham
	Spam                   // it was called spam
	Withdrawn              // all that was learnt of it has been withdrawn
)

// Of returns the state of a message with this label.
func Of(spam bool) State {
	if spam {
		return Spam
	}
	return Ham
}

// A Label is the last label of a message.
type Label struct {
	Source uint64 // who gave it: a hash, by Source
	State  State
}

// stateBits are the bits of an entry's label that hold its state.
const stateBits = 3

// Source returns the part of a source's hash that a Label keeps.
func Source(hash uint64) uint64 { return hash &^ stateBits }

type entry struct{ message, label uint64 }

// A Table holds the labels of the last messages. It is not safe for concurrent use.
type Table struct {
	limit int      // the most messages, at least 1
	ring  []entry  // grows to limit, then the oldest is overwritten
	next  int      // where the next message goes: len(ring) until the ring is full
	index []uint32 // open addressing, at most half full: 1 + a slot of the ring; 0: empty
}

// New returns an empty Table of at most limit messages, 1 ≤ limit ≤ 1 << 24. It grows
// as messages are put.
func New(limit int) *Table { return &Table{limit: limit} }

// Len returns the number of messages.
func (t *Table) Len() int { return len(t.ring) }

// Next returns the slot of the ring where the next message goes.
func (t *Table) Next() int { return t.next }

// Get returns the last label of a message.
func (t *Table) Get(message uint64) Label {
	if len(t.index) == 0 {
		return Label{}
	}
	slot := t.index[t.find(message)]
	if slot == 0 {
		return Label{}
	}
	l := t.ring[slot-1].label
	return Label{Source: Source(l), State: State(l & stateBits)}
}

// Put stores the last label of a message. Its state is not Unknown.
func (t *Table) Put(message uint64, l Label) {
	e := entry{message, Source(l.Source) | uint64(l.State)}
	if len(t.index) > 0 {
		if slot := t.index[t.find(message)]; slot > 0 {
			t.ring[slot-1] = e
			return
		}
	}
	if len(t.ring) < t.limit {
		t.ring = append(t.ring, e)
	} else {
		t.drop(t.ring[t.next].message)
		t.ring[t.next] = e
	}
	if 2*len(t.ring) > len(t.index) {
		t.reindex()
	} else {
		t.index[t.find(message)] = uint32(t.next + 1)
	}
	t.next = (t.next + 1) % t.limit
}

// find returns the place in the index of a message's slot, or the empty place where it
// would go.
func (t *Table) find(message uint64) int {
	mask := len(t.index) - 1
	for p := int(message) & mask; ; p = (p + 1) & mask {
		if slot := t.index[p]; slot == 0 || t.ring[slot-1].message == message {
			return p
		}
	}
}

// drop empties a message's place in the index and moves back those that it had displaced.
func (t *Table) drop(message uint64) {
	mask := len(t.index) - 1
	hole := t.find(message)
	t.index[hole] = 0
	for p := (hole + 1) & mask; t.index[p] != 0; p = (p + 1) & mask {
		home := int(t.ring[t.index[p]-1].message) & mask
		if (p-home)&mask >= (p-hole)&mask { // the hole lies on the way from home to p
			t.index[hole], t.index[p] = t.index[p], 0
			hole = p
		}
	}
}

// reindex builds an index of the ring that is a quarter to half full.
func (t *Table) reindex() {
	t.index = make([]uint32, 1<<bits.Len(uint(2*len(t.ring))))
	for slot := range t.ring {
		t.index[t.find(t.ring[slot].message)] = uint32(slot + 1)
	}
}

// Resize changes the limit, 1 ≤ limit ≤ 1 << 24, and keeps the latest messages that fit.
func (t *Table) Resize(limit int) {
	all := t.ring // oldest first
	if len(t.ring) == t.limit {
		all = slices.Concat(t.ring[t.next:], t.ring[:t.next])
	}
	all = slices.Clone(all[max(0, len(all)-limit):])
	t.limit, t.ring, t.next = limit, all, len(all)%limit
	t.reindex()
}

const entrySize = 16

// Append appends the ring's slots in order, little endian:
//
//	uint64 message | uint64 label: the state in its two lowest bits, above it the source
//
// The caller must save Next separately.
func (t *Table) Append(dst []byte) []byte {
	for _, e := range t.ring {
		dst = binary.LittleEndian.AppendUint64(dst, e.message)
		dst = binary.LittleEndian.AppendUint64(dst, e.label)
	}
	return dst
}

// Restore replaces the messages by those that Append wrote. next is the saved Next. Bytes
// that no table can have written are an error, after which t must not be used.
func (t *Table) Restore(b []byte, next uint64) error {
	n := len(b) / entrySize
	if len(b)%entrySize != 0 || n > t.limit {
		return fmt.Errorf("last labels: %d bytes, want at most %d messages of %d", len(b), t.limit, entrySize)
	}
	if n < t.limit && next != uint64(n) || next >= uint64(t.limit) {
		return fmt.Errorf("last labels: a table of %d messages goes on at %d", n, next)
	}
	t.ring, t.next = make([]entry, n), int(next)
	t.index = make([]uint32, 1<<bits.Len(uint(2*n)))
	for slot := range t.ring {
		e := entry{binary.LittleEndian.Uint64(b[entrySize*slot:]), binary.LittleEndian.Uint64(b[entrySize*slot+8:])}
		if e.message == 0 || State(e.label&stateBits) == Unknown || t.Get(e.message).State != Unknown {
			return fmt.Errorf("last labels: message %d is empty or stands there twice", slot)
		}
		t.ring[slot] = e
		t.index[t.find(e.message)] = uint32(slot + 1)
	}
	return nil
}
