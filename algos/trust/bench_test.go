package trust

import (
	"fmt"
	"testing"
)

// What a label costs the sub-model beside its learners: by one source, by a hundred, and
// where each has a new name and the table is full.
func BenchmarkLabel(b *testing.B) {
	policy := Policy{Heads: true, Experts: true, BySource: true, Agreement: true}
	for _, sources := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("sources=%d", sources), func(b *testing.B) {
			labels, names := New(), make([]string, sources)
			for i := range names {
				names[i] = fmt.Sprint("source-", i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x := Label{Source: names[i%sources], Spam: i%2 == 0, Q: 0.9, Prob: 0.9}
				labels.Observe(x, labels.Weigh(x, policy))
			}
		})
	}
}
