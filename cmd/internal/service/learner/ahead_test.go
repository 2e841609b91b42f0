package learner

import (
	"fmt"
	"runtime"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

// Each record is prepared once and then applied, in order, whoever prepares it.
func TestRecordsAreAppliedInOrder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	m, err := model.New(model.Config{TableBits: 8})
	if err != nil {
		t.Fatal(err)
	}
	other, err := model.New(model.Config{TableBits: 9})
	if err != nil {
		t.Fatal(err)
	}
	for _, processors := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(processors)
		var a ahead
		for n := range 60 {
			of := m
			if n%10 == 9 {
				of = other // after a reload
			}
			bodies, prepared := make([]model.Body, n), make([]int, n)
			var applied []int
			prepare := func(i int) *model.Body {
				prepared[i]++
				if i%5 == 4 {
					return nil // a dead letter
				}
				text := fmt.Appendf(nil, "%d words to read, of %d", i, n)
				bodies[i] = model.Body{Message: &feature.Message{Body: text, BodyBytes: len(text)}}
				return &bodies[i]
			}
			a.each(of, n, prepare, func(i int) {
				applied = append(applied, i)
				if prepared[i] != 1 {
					t.Errorf("%d of %d is applied after it was prepared %d times", i, n, prepared[i])
				}
				if i%5 == 4 {
					return
				}
				ex := model.Example{ID: fmt.Sprint(n, " ", i), Spam: i%2 == 0, Body: bodies[i]}
				if _, err := of.Apply(&ex); err != nil {
					t.Error(err)
				}
			})
			for i := range n {
				if len(applied) != n || applied[i] != i || prepared[i] != 1 {
					t.Fatalf("%d processors: %d records are applied in the order %v, prepared %v times", processors, n, applied, prepared)
				}
			}
			if len(a.free) != cap(a.free) || len(a.ready) != 0 {
				t.Fatalf("after %d records %d turns are free and %d ready", n, len(a.free), len(a.ready))
			}
		}
		if (a.reader != nil) != (processors > 1) {
			t.Errorf("%d processors: read ahead: %t", processors, a.reader != nil)
		}
	}
}
