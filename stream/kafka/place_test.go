package kafka

import "testing"

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		next       int64
		ok         bool
		first, end int64
		want       placement
	}{
		{0, false, 0, 0, unplaced},
		{0, false, 5, 9, unplaced},
		{0, true, 0, 0, beforeFirst},
		{4, true, 5, 9, beforeFirst},
		{5, true, 5, 9, beforeFirst},
		{6, true, 5, 9, within},
		{9, true, 5, 9, within},
		{10, true, 5, 9, beyondEnd},
		{1, true, 0, 0, beyondEnd},
	} {
		if got := place(c.next, c.ok, c.first, c.end); got != c.want {
			t.Errorf("position %d (%v) in a log of %d to %d: %v, want %v", c.next, c.ok, c.first, c.end, got, c.want)
		}
	}
}
