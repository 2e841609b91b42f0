package dedup

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The window against a plain list of its last keys. Keys share low bits, so that
// the index has long runs to close up.
func TestWindowKnowsItsLastKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(rapid.IntRange(1, 20).Draw(t, "limit"))
		var last []uint64
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			k := 1 + uint64(rapid.IntRange(0, 39).Draw(t, "key"))*16%61
			if has, want := w.Has(k), slices.Contains(last, k); has != want {
				t.Fatalf("Has(%d) = %v after %v", k, has, last)
			}
			if !slices.Contains(last, k) {
				w.Add(k)
				last = append(last, k)
				last = last[max(0, len(last)-w.limit):]
			}
			if rapid.IntRange(0, 30).Draw(t, "resize") == 0 {
				w.Resize(rapid.IntRange(1, 20).Draw(t, "limit"))
			}
			last = last[max(0, len(last)-w.limit):]

			restored := New(w.limit)
			if err := restored.Restore(w.Append(nil), uint64(w.Next())); err != nil {
				t.Fatalf("restore %v: %v", w.ring, err)
			}
			if rapid.Bool().Draw(t, "go on restored") {
				w = restored
			}
		}
		for k := uint64(1); k < 64; k++ {
			if w.Has(k) != slices.Contains(last, k) {
				t.Fatalf("Has(%d) = %v at the end, the last are %v", k, w.Has(k), last)
			}
		}
		if w.Len() != len(last) {
			t.Fatalf("%d keys, want %d", w.Len(), len(last))
		}
	})
}

// The parts of a name do not run into each other, and the key is that of the bytes
// drawn: it is saved in models.
func TestKey(t *testing.T) {
	w, keys := New(1), map[uint64][]string{}
	for _, parts := range [][]string{{}, {""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"ab", ""}} {
		k := w.Key(parts...)
		if other, known := keys[k]; known {
			t.Errorf("%q and %q have one key", parts, other)
		}
		keys[k] = parts
	}
	// printf '\1\0\0\0a' | sha256sum | cut -c1-16, little endian
	if got, want := w.Key("a"), uint64(0xa73bfb42f0eff2f9); got != want {
		t.Errorf("Key(a) = %#x, want %#x", got, want)
	}
}

func TestRestoreRefuses(t *testing.T) {
	ring := func(keys ...uint64) (b []byte) {
		for _, k := range keys {
			b = binary.LittleEndian.AppendUint64(b, k)
		}
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		next uint64
		want string
	}{
		"half a key":            {ring(1, 2)[:12], 1, "of 12 bytes"},
		"more than the limit":   {ring(1, 2, 3, 4), 0, "of 32 bytes, want at most 24"},
		"a hole":                {ring(1, 2), 1, "of 2 keys goes on at 1"},
		"next behind the limit": {ring(1, 2, 3), 3, "of 3 keys goes on at 3"},
		"no key":                {ring(1, 0), 2, "key 1 is empty or a copy"},
		"a copy":                {ring(7, 5, 7), 0, "key 2 is empty or a copy"},
	} {
		if err := New(3).Restore(c.b, c.next); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
