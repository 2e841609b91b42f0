package ensemble

import (
	"fmt"
	"testing"
)

// A rebuild by kind and window, at 60 inputs: the facts of mail and columns like
// them. "µs/event" is its cost spread over R = 500 events.
func BenchmarkBuild(b *testing.B) {
	for _, k := range Kinds() {
		for _, n := range []int{500, 2000} {
			w := spambaseWindow(b, 1, n, 60)
			b.Run(fmt.Sprintf("%s/n=%d,d=60", k, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if r := Build(b.Context(), []Kind{k}, w); r[0].Err != nil {
						b.Fatal(r[0].Err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e3/500, "µs/event")
			})
		}
	}
}

func BenchmarkLogOdds(b *testing.B) {
	w := spambaseWindow(b, 1, 2000, 60)
	x := w.row(0)
	for _, e := range buildAll(b, w) {
		b.Run(string(e.Kind()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.LogOdds(x)
			}
		})
	}
}
