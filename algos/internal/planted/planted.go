// Package planted lets a test plant panics where this program has none that is known. Tests
// reach it by package plant. Nothing is planted otherwise, which costs one atomic load.
package planted

import (
	"bytes"
	"slices"
	"sync/atomic"
)

// Plants say where to panic.
type Plants struct {
	Word   string   // in the text of a message: reading it panics; "": none does
	Events []string // IDs of events: learning one panics, when the model is half changed
}

var plants atomic.Pointer[Plants]

// Set plants p in place of what was planted before, which it returns. nil is nothing.
func Set(p *Plants) (before *Plants) { return plants.Swap(p) }

// Read panics if the text of a message has the word.
func Read(text []byte) {
	if p := plants.Load(); p != nil && p.Word != "" && bytes.Contains(text, []byte(p.Word)) {
		panic("a panic that a test has planted in a parser")
	}
}

// Learn panics if the event is one that was named.
func Learn(id string) {
	if p := plants.Load(); p != nil && slices.Contains(p.Events, id) {
		panic("a panic that a test has planted in learning")
	}
}
