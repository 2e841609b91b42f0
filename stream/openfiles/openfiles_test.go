package openfiles

import (
	"math"
	"testing"
)

func TestShare(t *testing.T) {
	for _, test := range []struct {
		limit uint64
		most  int
		want  int
	}{
		{0, 4096, fewest},
		{64, 4096, 4},
		{1024, 4096, 96},
		{1200, 512, 118},
		{65536, 4096, 4096},
		{65536, 512, 512},
		{math.MaxUint64, 4096, 4096}, // no limit
	} {
		got := share(test.limit, test.most)
		if got != test.want {
			t.Errorf("limit %d, at most %d: %d connections, want %d", test.limit, test.most, got, test.want)
		}
		if test.limit >= 64 && uint64(got) > (test.limit-min(own, test.limit/2))/listeners {
			t.Errorf("limit %d: eight listeners with %d connections leave too few files", test.limit, got)
		}
	}
}
