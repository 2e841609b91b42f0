package feature

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/algos/internal/ahead"
)

// The longest text has counters at their most.
func TestCountsOfTheLongestText(t *testing.T) {
	for _, c := range []byte("Aa0!$ \xff") {
		text := guarded(t, bytes.Repeat([]byte{c}, FactBytes))
		if got, want := counts(text), factCounters[c]*FactBytes; got != want {
			t.Errorf("%d times %q: counts %x, want %x", FactBytes, c, got, want)
		}
	}
}

// The kernels that the processor chooses give what those in Go give, and read nothing behind what they may read.
func TestKernelsGiveTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	table := ahead.Of(make([]uint64, 1<<MaxTableBits), 1)
	const alphabet = "aAzZ09'-$._@ \n\x00\x7f\x80\xff/:[`{^"
	for length := range 200 {
		text := make([]byte, length)
		for i := range text {
			if r.IntN(3) == 0 {
				text[i] = byte(r.Uint32())
			} else {
				text[i] = alphabet[r.IntN(len(alphabet))]
			}
		}
		text = guarded(t, text)

		folded, want := make([]byte, length), make([]byte, length)
		inside, wantInside := make([]uint64, length/64+1), make([]uint64, length/64+1)
		foldWords(folded, inside, text)
		foldWordsGo(want, wantInside, text)
		if !slices.Equal(folded, want) || !slices.Equal(inside, wantInside) {
			t.Fatalf("%q is folded to %q, %x, in Go to %q, %x", text, folded, inside, want, wantInside)
		}

		bits := uint(MinTableBits + r.IntN(MaxTableBits-MinTableBits+1))
		h := Hasher{present: make(bitmap, 1<<(bits-6))}
		if bounds := h.words(text); len(bounds) > 0 {
			salt := r.Uint64()
			if w := 2 * r.IntN(len(bounds)/2); r.IntN(2) == 0 { // the hash of some word is 0
				salt = -wordHash(h.folded[bounds[w]:], int(bounds[w+1]-bounds[w]))
			}
			h.folded = guarded(t, h.folded)
			index, want, wantB := make([]uint32, len(bounds)), make([]uint32, len(bounds)), make(bitmap, len(h.present))
			k, loaded := h.present.siftWords(index, h.folded, bounds, salt, 64-bits, table)
			wantK, _ := wantB.siftWordsGo(want, 0, h.folded, bounds, salt, 0, 64-bits)
			if !slices.Equal(index[:k], want[:wantK]) || !slices.Equal(h.present, wantB) || loaded > k {
				t.Fatalf("the words of %q are %v, in Go %v", text, index[:k], want[:wantK])
			}
		}

		if got, want := counts(text), countsGo(text); got != want {
			t.Fatalf("%q has the counts %x, in Go %x", text, got, want)
		}

		lowered, wantLowered := make([]byte, length+wordLoad), make([]byte, length+wordLoad)
		lower(lowered, text)
		lowerGo(wantLowered, text)
		if !slices.Equal(lowered[:length], wantLowered[:length]) {
			t.Fatalf("%q is %q in lower case, in Go %q", text, lowered, wantLowered)
		}

		runs := guarded(t, text)
		for i := range runs {
			if i > 0 && r.IntN(2) == 0 {
				runs[i] = runs[i-1]
			}
		}
		shaped, wantShaped := make([]byte, length+wordLoad), make([]byte, length+wordLoad)
		k, wantK := shape(shaped, runs), shapeGo(wantShaped, runs, 0, 0)
		if !slices.Equal(shaped[:k], wantShaped[:wantK]) {
			t.Fatalf("%q has the shape %q, in Go %q", runs, shaped[:k], wantShaped[:wantK])
		}

		if length > 4 {
			shift := uint(64 - MinTableBits - r.IntN(MaxTableBits-MinTableBits+1))
			index, want := make([]uint32, 4*(length-4)), make([]uint32, 4*(length-4))
			hashStrings(index, text, shift, ahead.Table{})
			hashStringsGo(want, text, shift)
			if !slices.Equal(index, want) {
				t.Fatalf("the strings of %q are %v, in Go %v", text, index, want)
			}
		}

		for n := 1; n <= min(8, length); n++ {
			bits := uint(MinTableBits + r.IntN(MaxTableBits-MinTableBits+1))
			lower := guarded(t, appendLower(nil, text))
			b, wantB := make(bitmap, 1<<(bits-6)), make(bitmap, 1<<(bits-6))
			index, wantIndex := make([]uint32, length-n+1), make([]uint32, length-n+1)
			k, loaded := b.siftGrams(index, lower, n, 64-bits, table)
			wantK := wantB.siftGramsGo(wantIndex, 0, 0, lower, n, 64-bits)
			if !slices.Equal(index[:k], wantIndex[:wantK]) || !slices.Equal(b, wantB) || loaded > k {
				t.Fatalf("%d-grams of %q: %v, in Go %v", n, text, index[:k], wantIndex[:wantK])
			}
			b.clear(index[:k])
			if slices.ContainsFunc(b, func(word uint64) bool { return word != 0 }) {
				t.Fatal("a bit is left")
			}
		}
	}
}
