package detect

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Hand-worked: of 100 events each tenth is wrong. From the 30th on p + s was least
// at the 39th: p = 3/39 = .0769, s = .0427, so that the levels lie at p_min + 2·s_min
// = .1623 and p_min + 3·s_min = .2049. Wrong ones from there on make p + s .1589 at
// 103, .1681 at 104, .2025 at 108 and .2106 at 109.
func TestDDMByHand(t *testing.T) {
	d := mustNew(NewDDM(DDMConfig{}))
	for i := range 100 {
		if level := d.Observe(i%10 == 9); level != InControl {
			t.Fatalf("event %d: level %d", i+1, level)
		}
	}
	if p, s := d.Rate(); p != .1 || math.Abs(s-.03) > 1e-15 {
		t.Fatalf("p %v, s %v", p, s)
	}
	for n := 101; n <= 115; n++ {
		want := InControl
		switch {
		case n >= 109:
			want = OutOfControl
		case n >= 104:
			want = Warning
		}
		if got := d.Observe(true); got != want {
			t.Errorf("event %d: level %d, want %d", n, got, want)
		}
	}
}

// A DDM finds a rising rate of wrong predictions, not a falling one. Reset begins a
// new context.
func TestDDMFindsARise(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	d := mustNew(NewDDM(DDMConfig{}))
	feed := func(n int, rate float64) (at int) {
		for i := range n {
			if d.Observe(r.Float64() < rate) == OutOfControl {
				d.Reset()
				return i + 1
			}
		}
		return 0
	}
	if at := feed(2_000, .3); at != 0 {
		t.Fatalf("out of control at %d of a constant .3", at)
	}
	if at := feed(2_000, .05); at != 0 {
		t.Fatalf("out of control at %d of a fall to .05", at)
	}
	if at := feed(4_000, .5); at == 0 || at > 2_000 {
		t.Fatalf("a rise to .5 after 4,000 events: out of control at %d", at)
	}
	if p, _ := d.Rate(); p != 0 {
		t.Fatalf("after Reset p is %v", p)
	}
	if at := feed(2_000, .5); at != 0 {
		t.Fatalf("out of control at %d of a new context at .5", at)
	}
}

// What the paper leaves open: no wrong prediction at all, and the first one, are no
// change; and nothing is said before Least events.
func TestDDMDegenerate(t *testing.T) {
	d := mustNew(NewDDM(DDMConfig{Least: 50}))
	for i := range 500 {
		if level := d.Observe(i == 400); level != InControl {
			t.Fatalf("event %d: level %d", i+1, level)
		}
	}
	d.Reset()
	for i := range 49 {
		if level := d.Observe(i > 25); level != InControl {
			t.Fatalf("event %d: level %d before Least", i+1, level)
		}
	}
	for _, cfg := range []DDMConfig{{Warning: -1}, {Drift: math.NaN()}, {Least: -1}, {Warning: 4}} {
		if _, err := NewDDM(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}
