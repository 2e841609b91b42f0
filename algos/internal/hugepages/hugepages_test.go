package hugepages_test

import (
	"testing"

	"hamlet/algos/internal/hugepages"
)

// Advice about any memory is safe, also about memory that is in use.
func TestAdvise(t *testing.T) {
	for _, n := range []int{0, 1, 1 << 10, 1<<18 - 1, 1 << 18, 3 << 18} {
		s := make([]uint64, n)
		for range 2 {
			hugepages.Advise(s)
			for i := range s {
				s[i] += uint64(i)
			}
		}
		for i := range s {
			if s[i] != 2*uint64(i) {
				t.Fatalf("of %d numbers %d is %d", n, i, s[i])
			}
		}
	}
}
