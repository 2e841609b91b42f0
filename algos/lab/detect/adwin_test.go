package detect

import (
	"math"
	"math/rand/v2"
	"testing"
)

func mustNew[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// numbers draws a stream whose mean changes twice, from 0 to 1.
func numbers(r *rand.Rand, n int, coin bool) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		rate := []float64{.2, .7, .4}[3*i/n]
		xs[i] = r.Float64() * rate
		if coin {
			xs[i] = 0
			if r.Float64() < rate {
				xs[i] = 1
			}
		}
	}
	return xs
}

// plainADWIN is the definition: all cuts of a window kept in full, means and
// variance by their sums, and the oldest number dropped while any cut differs.
func plainADWIN(w []float64, δ float64) []float64 {
	mean := func(v []float64) (m float64) {
		for _, x := range v {
			m += x
		}
		return m / float64(len(v))
	}
	differs := func(w []float64) bool {
		n := float64(len(w))
		μ, variance := mean(w), 0.
		for _, x := range w {
			variance += (x - μ) * (x - μ) / n
		}
		for k := 1; k < len(w); k++ {
			m := 1 / (1/float64(k) + 1/(n-float64(k)))
			ln := math.Log(2 * math.Log(n) / δ)
			if math.Abs(mean(w[:k])-mean(w[k:])) > math.Sqrt(2/m*variance*ln)+2/(3*m)*ln {
				return true
			}
		}
		return false
	}
	for differs(w) {
		w = w[1:]
	}
	return w
}

// Reference: Bifet and Gavaldà (2007), figure 1 and eq. 3.1. With room for all
// numbers in buckets of one, the histogram is the window itself.
func TestADWINIsTheDefinition(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		xs := numbers(r, 400, seed%2 == 0)
		a := mustNew(NewADWIN(ADWINConfig{Delta: .05, Buckets: len(xs)}))
		var window []float64
		cuts := 0
		for i, x := range xs {
			before := append(window, x)
			window = plainADWIN(before, .05)
			c := a.Observe(x)
			if a.Len() != len(window) || c.Dropped != len(before)-len(window) {
				t.Fatalf("seed %d: after %d the window holds %d, want %d", seed, i+1, a.Len(), len(window))
			}
			if c.Dropped > 0 {
				cuts++
			}
		}
		if cuts == 0 {
			t.Errorf("seed %d: no cut in two changes", seed)
		}
	}
}

// The buckets hold the latest numbers, oldest first, in sizes of powers of two, at
// most M of each, none of them empty between others.
func TestADWINBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	xs := numbers(r, 6_000, true)
	a := mustNew(NewADWIN(ADWINConfig{}))
	for i, x := range xs {
		a.Observe(x)
		at := i + 1 - a.Len() // the oldest number of the window
		for size := len(a.rows) - 1; size >= 0; size-- {
			if len(a.rows[size]) > 5 || len(a.rows[size]) == 0 {
				t.Fatalf("after %d: %d buckets of 2^%d", i+1, len(a.rows[size]), size)
			}
			for _, b := range a.rows[size] {
				var sum, square float64
				for _, x := range xs[at : at+1<<size] {
					sum += x
				}
				for _, x := range xs[at : at+1<<size] {
					square += (x - sum/float64(b.n)) * (x - sum/float64(b.n))
				}
				// x is 0 or 1: sums are exact, squares go through some 13 joins.
				if b.n != 1<<size || b.sum != sum || math.Abs(b.square-square) > 1e-10 {
					t.Fatalf("after %d: bucket %+v at %d, want sum %v and square %v", i+1, b, at, sum, square)
				}
				at += b.n
			}
		}
		if at != i+1 {
			t.Fatalf("after %d: the buckets end at %d", i+1, at)
		}
	}
	if n := a.Len(); n > 2_500 {
		t.Errorf("the window holds %d numbers, 2,000 after the last change", n)
	}
}

// Reference: theorem 3.1: at a constant mean a cut has a probability below δ at
// each number, and a change is found. With the variance's bound in place of
// Hoeffding's cuts are rarer still.
func TestADWINStationary(t *testing.T) {
	const δ, events = .002, 50_000
	r := rand.New(rand.NewPCG(6, 2))
	a := mustNew(NewADWIN(ADWINConfig{Delta: δ}))
	cuts := 0
	for range events {
		x := 0.
		if r.Float64() < .1 {
			x = 1
		}
		if a.Observe(x).Dropped > 0 {
			cuts++
		}
	}
	if t.Logf("%d cuts in %d", cuts, events); cuts > δ*events {
		t.Errorf("%d cuts in %d, want at most %v", cuts, events, δ*events)
	}
	for i := range 400 {
		x := 0.
		if r.Float64() < .4 {
			x = 1
		}
		if c := a.Observe(x); c.Dropped > 0 {
			if c.Rise <= 0 {
				t.Errorf("the mean rose, and Rise is %v", c.Rise)
			}
			t.Logf("found after %d", i+1)
			return
		}
	}
	t.Error("a mean of .4 for .1 was not found in 400")
}

// Equal numbers are no change, a smaller δ cuts later, Reset empties the window, and
// a number outside 0 to 1 panics.
func TestADWINDegenerate(t *testing.T) {
	found := 0
	for _, δ := range []float64{.3, 1e-3, 1e-30} {
		a := mustNew(NewADWIN(ADWINConfig{Delta: δ}))
		for range 3_000 {
			if c := a.Observe(0); c.Dropped > 0 {
				t.Fatal("a cut of zeros")
			}
		}
		at := 1
		for ; a.Observe(1).Dropped == 0; at++ {
		}
		if at <= found {
			t.Errorf("δ = %g cuts after %d ones, a larger one after %d", δ, at, found)
		}
		found = at
	}
	for _, x := range []float64{-.1, 1.1, math.NaN()} {
		if !panics(func() { mustNew(NewADWIN(ADWINConfig{})).Observe(x) }) {
			t.Errorf("%v was taken", x)
		}
	}
	for _, cfg := range []ADWINConfig{{Delta: 2}, {Delta: -1}, {Buckets: -1}} {
		if _, err := NewADWIN(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

// A number costs O(M ln n); the window here holds 1,000,000 of them.
func BenchmarkADWIN(b *testing.B) {
	a := mustNew(NewADWIN(ADWINConfig{}))
	for i := range 1_000_000 {
		a.insert(bucket{n: 1, sum: float64(i & 1)})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		a.Observe(float64(i & 1))
		i++
	}
}
