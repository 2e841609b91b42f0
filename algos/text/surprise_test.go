package text_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// The oracle counts with maps and takes the logarithms of package math. Mitchell's
// is never above those, and below by less than .0861·ln 2.
func TestSurprise(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	e := text.NewNaiveBayes(text.NewColumn(8), lean)
	counts, learnt := map[uint32]float64{}, 0.0
	place := func(f feature.Sparse, k int) (slot uint32, u float64) {
		if f.Value == nil {
			return f.Index[k], 1 / math.Sqrt(float64(len(f.Index)))
		}
		if f.Value[k] < 0 {
			return f.Index[k] ^ 1, f.Value[k]
		}
		return f.Index[k], f.Value[k]
	}
	for n, f := range messages(r, 400, 0, 200) {
		if len(f.Index) == 0 {
			continue
		}
		got, exact := e.Score(see(f)).Surprise, 0.0
		for k := range f.Index {
			slot, u := place(f, k)
			exact += u * u * math.Log((learnt+10)/(counts[slot]+.5))
		}
		if got < exact-1e-12 || got > exact+.0861*math.Ln2+1e-12 {
			t.Fatalf("message %d: %v, want up to %v above %v", n, got, .0861*math.Ln2, exact)
		}
		ω := float64(1+r.IntN(1024)) / 1024
		e.Learn(see(f), text.Score{}, r.IntN(2) == 0, ω)
		learnt += ω
		for k := range f.Index {
			slot, _ := place(f, k)
			counts[slot] += ω
		}
	}
}

// What has been learnt surprises less each time; what shares nothing with it, more
// with every message that is no like it.
func TestSurpriseFallsWithLearning(t *testing.T) {
	e := text.NewNaiveBayes(text.NewColumn(8), lean)
	known, other := feature.Sparse{Index: []uint32{1, 2, 3}}, feature.Sparse{Index: []uint32{7, 8}}
	was, wasOther := e.Score(see(known)).Surprise, e.Score(see(other)).Surprise
	for n := range 20 {
		e.Learn(see(known), text.Score{}, n%2 == 0, 1)
		is, isOther := e.Score(see(known)).Surprise, e.Score(see(other)).Surprise
		if is >= was || isOther <= wasOther {
			t.Fatalf("after %d: %v, was %v; of others %v, was %v", n+1, is, was, isOther, wasOther)
		}
		was, wasOther = is, isOther
	}
	if mixed := e.Score(see(feature.Sparse{Index: []uint32{1, 2, 3, 7, 8}})).Surprise; math.Abs(mixed-(3*was+2*wasOther)/5) > 1e-12 {
		t.Errorf("a message of both: %v, want the mean of %v and %v", mixed, was, wasOther)
	}
}

// messages draws n messages of features in [from, to), binary ones and vectors of
// unit length in turn.
func messages(r *rand.Rand, n int, from, to uint32) (all []feature.Sparse) {
	for i := range n {
		var f feature.Sparse
		square := 0.0
		for j := from; j < to; j++ {
			if r.IntN(3) > 0 {
				continue
			}
			f.Index = append(f.Index, j)
			if i%2 == 1 {
				v := r.NormFloat64()
				f.Value = append(f.Value, v)
				square += v * v
			}
		}
		for k := range f.Value {
			f.Value[k] /= math.Sqrt(square)
		}
		all = append(all, f)
	}
	return all
}
