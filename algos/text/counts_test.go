package text_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// counted returns an expert that has learnt ham and spam messages, all of which held
// feature 1.
func counted(t *testing.T, ham, spam float64) *text.NaiveBayes {
	t.Helper()
	b := make([]byte, text.NaiveBayesSize(8))
	binary.LittleEndian.PutUint64(b, math.Float64bits(ham))
	binary.LittleEndian.PutUint64(b[8:], math.Float64bits(spam))
	binary.LittleEndian.PutUint32(b[16+8:], math.Float32bits(float32(ham)))
	binary.LittleEndian.PutUint32(b[16+8+4:], math.Float32bits(float32(spam)))
	e := text.NewNaiveBayes(text.NewColumn(8), lean)
	if err := e.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	return e
}

func bytesOf(t *testing.T, e *text.NaiveBayes) []byte {
	t.Helper()
	b, err := e.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// However many messages have been counted, the counts of a feature that all of them
// hold go with the totals, and the feature says nothing; withdrawn again, both are
// what they were. The counts lie where weights of 993/1024 are rounded in the last
// bits, where 1 no longer counts, and where it is a small part of a step. A weight is
// off by at most half a step in standard deviation: the tolerance is six of the sum's.
func TestCountsGoWithTheTotals(t *testing.T) {
	const messages = 60_000
	f := feature.Sparse{Index: []uint32{1}}
	for _, many := range []float64{0, 1 << 14, 1 << 20, 1 << 24, 1 << 30} {
		e := counted(t, 2*many, many)
		learn := func(by func(spam bool, ω float64)) {
			for n := range messages {
				if n%3 == 0 {
					by(true, 1)
				} else {
					by(false, .97)
				}
			}
		}
		check := func(after string, ham, spam float64) {
			b := bytesOf(t, e)
			for class, want := range map[int]float64{0: ham, 1: spam} {
				total := math.Float64frombits(binary.LittleEndian.Uint64(b[8*class:]))
				count := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[24+4*class:])))
				step := float64(math.Nextafter32(float32(3*many+messages), math.MaxFloat32) - float32(3*many+messages))
				if most := 6 * step / 2 * math.Sqrt(2*messages); total != want || !(math.Abs(count-total) <= most) {
					t.Errorf("%v messages and %d more %s: class %d counts %v of %v, want all of %v to %v", 3*many, messages, after, class, count, total, want, most)
				}
			}
		}
		learn(func(spam bool, ω float64) { e.Learn(see(f), text.Score{}, spam, ω) })
		check("learnt", 2*many+messages*2/3*993./1024, many+messages/3)
		if s := e.Score(see(f)).LogOdds; many >= 1<<20 && !(math.Abs(s) < 1e-3) {
			t.Errorf("%v messages: a feature of all of them says %v, want 0", 3*many, s)
		}
		learn(func(spam bool, ω float64) { e.Withdraw(see(f), spam, ω) })
		check("learnt and withdrawn", 2*many, many)
	}
}

// What is rounded by chance is a function of what has been learnt.
func TestCountingIsRepeatable(t *testing.T) {
	var was []byte
	for range 2 {
		e := counted(t, 1<<25, 1<<24)
		for n := range 500 {
			e.Learn(see(feature.Sparse{Index: []uint32{1}}), text.Score{}, n%2 == 0, .9)
			if n == 250 {
				b := bytesOf(t, e)
				e = text.NewNaiveBayes(text.NewColumn(8), lean)
				if err := e.UnmarshalBinary(b); err != nil {
					t.Fatal(err)
				}
			}
		}
		b := bytesOf(t, e)
		if was != nil && !bytes.Equal(b, was) {
			t.Error("the same messages are counted in another way")
		}
		was = b
	}
}
