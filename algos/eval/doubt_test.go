package eval

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDoubtsByHand(t *testing.T) {
	var d Doubts
	if d.Doubtful() != 0 || d.Learnt() != 0 || d.Worst(9) == nil || len(d.Worst(9)) != 0 {
		t.Errorf("before the first label: %+v", d)
	}
	add := func(source string, doubtful, fine int) {
		for range doubtful {
			d.Add(source, 0.49)
		}
		for range fine {
			d.Add(source, 0.5) // ½ is not below it
		}
	}
	add("clean", 0, 100)
	add("once", 1, 0)
	add("forged", 40, 10)
	add("big", 60, 99_940)
	want := []SourceDoubt{{"forged", 40, 50}, {"once", 1, 1}, {"big", 60, 100_000}}
	if got := d.Worst(20); !slices.Equal(got, want) {
		t.Errorf("worst %v, want %v", got, want)
	}
	if got := d.Worst(1); !slices.Equal(got, want[:1]) {
		t.Errorf("worst one %v, want %v", got, want[:1])
	}
	if d.Doubtful() != 101 || d.Learnt() != 100_151 || d.others != (SourceDoubt{}) {
		t.Errorf("%d of %d, others %v", d.Doubtful(), d.Learnt(), d.others)
	}
}

// Wilson's interval holds the shares p that √n·|p̂−p| ≤ z·√(p(1−p)) allows: at its
// lower end that is an equality. Of 1 in 1 it is 1/(1+z²).
func TestWilson(t *testing.T) {
	for _, s := range []SourceDoubt{{"", 1, 1}, {"", 40, 50}, {"", 60, 100_000}, {"", 3, 7}} {
		p, n := s.leastFraction(), float64(s.Learnt)
		share := float64(s.Doubtful) / n
		if got, want := math.Sqrt(n)*(share-p), z95*math.Sqrt(p*(1-p)); math.Abs(got-want) > 1e-12*(1+want) {
			t.Errorf("%d of %d: %v, which is %v from the share where %v is asked for", s.Doubtful, s.Learnt, p, got, want)
		}
	}
	if got, want := (SourceDoubt{"", 1, 1}).leastFraction(), 1/(1+z95*z95); math.Abs(got-want) > 1e-15 {
		t.Errorf("one of one: %v, want %v", got, want)
	}
}

// Whatever comes, memory is bounded, every label is counted once, and the sources
// that matter are named with counts that are right to D/1024.
func TestDoubtsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		many := rapid.IntRange(1, 6000).Draw(t, "sources of one label each")
		heavy := rapid.IntRange(1, 40).Draw(t, "heavy")
		every := rapid.IntRange(2, 60).Draw(t, "every")
		var d Doubts
		type tally struct{ doubtful, learnt int }
		truth := map[string]*tally{}
		add := func(source string, φ float64) {
			d.Add(source, φ)
			if truth[source] == nil {
				truth[source] = &tally{}
			}
			truth[source].learnt++
			if φ < 0.5 {
				truth[source].doubtful++
			}
		}
		for i := range many {
			add(fmt.Sprint("s", i), rapid.SampledFrom([]float64{0.1, 0.1, 0.9}).Draw(t, "φ"))
			if i%every == 0 {
				for h := range heavy {
					add(fmt.Sprint("heavy", h), 0.2)
					add(fmt.Sprint("heavy", h), 0.8)
				}
			}
		}
		if len(d.named) > SourcesKept || len(d.at) != len(d.named) {
			t.Fatalf("%d sources are named, %d have a place", len(d.named), len(d.at))
		}
		sum := d.others
		for i, k := range d.named {
			sum.Doubtful += k.Doubtful
			sum.Learnt += k.Learnt
			if d.at[k.Source] != i {
				t.Fatalf("%s is at %d, not %d", k.Source, i, d.at[k.Source])
			}
			if k.Doubtful > truth[k.Source].doubtful || k.Learnt > truth[k.Source].learnt || k.rank < truth[k.Source].doubtful {
				t.Fatalf("%+v, in truth %+v", k, *truth[k.Source])
			}
		}
		if sum.Doubtful != d.Doubtful() || sum.Learnt != d.Learnt() {
			t.Fatalf("sources and others have %d of %d, all %d of %d", sum.Doubtful, sum.Learnt, d.Doubtful(), d.Learnt())
		}
		for source, n := range truth {
			i, named := d.at[source]
			if n.doubtful*SourcesKept > d.Doubtful() && !named {
				t.Fatalf("%s has %d of %d doubtful labels and is not named", source, n.doubtful, d.Doubtful())
			}
			if named && (n.doubtful-d.named[i].Doubtful)*SourcesKept > d.Doubtful() {
				t.Fatalf("%s is counted %d times, in truth %d, of %d", source, d.named[i].Doubtful, n.doubtful, d.Doubtful())
			}
			if len(truth) <= SourcesKept && (!named || d.named[i].SourceDoubt != SourceDoubt{source, n.doubtful, n.learnt}) {
				t.Fatalf("%s is not exact", source)
			}
		}
	})
}
