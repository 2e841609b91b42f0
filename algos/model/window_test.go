package model

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The window against a plain list of its last keys. Keys share low bits, so that
// the index has long runs to close up.
func TestWindowKnowsItsLastKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := window{limit: rapid.IntRange(1, 20).Draw(t, "limit")}
		var last []uint64
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			k := 1 + uint64(rapid.IntRange(0, 39).Draw(t, "key"))*16%61
			if has, want := w.has(k), slices.Contains(last, k); has != want {
				t.Fatalf("has(%d) = %v after %v", k, has, last)
			}
			if !slices.Contains(last, k) {
				w.add(k)
				last = append(last, k)
				last = last[max(0, len(last)-w.limit):]
			}
			if rapid.IntRange(0, 30).Draw(t, "resize") == 0 {
				w.resize(rapid.IntRange(1, 20).Draw(t, "limit"))
			}
			last = last[max(0, len(last)-w.limit):]

			var b []byte
			for _, k := range w.ring {
				b = binary.LittleEndian.AppendUint64(b, k)
			}
			back := window{limit: w.limit}
			if err := back.restore(b, uint64(w.next)); err != nil {
				t.Fatalf("restore %v: %v", w.ring, err)
			}
			if rapid.Bool().Draw(t, "go on restored") {
				w = back
			}
		}
		for k := uint64(1); k < 64; k++ {
			if w.has(k) != slices.Contains(last, k) {
				t.Fatalf("has(%d) = %v at the end, the last are %v", k, w.has(k), last)
			}
		}
	})
}
