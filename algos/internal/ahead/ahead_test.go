package ahead_test

import (
	"testing"
	"unsafe"

	"hamlet/algos/internal/ahead"
)

// Feature i has the elements from i·each on.
func TestOf(t *testing.T) {
	type pair struct{ a, b float32 }
	for each := 1; each <= 3; each++ {
		s := make([]pair, 12*each)
		table := ahead.Of(s, each)
		for i := range 12 {
			at, want := unsafe.Add(unsafe.Pointer(table.Begin), i*table.Size), unsafe.Pointer(&s[i*each])
			if at != want {
				t.Errorf("feature %d of %d elements each lies at %p, want %p", i, each, at, want)
			}
		}
	}
	if table := ahead.Of([]pair{}, 1); table != (ahead.Table{}) {
		t.Errorf("of no elements: %v, want the zero Table", table)
	}
}
