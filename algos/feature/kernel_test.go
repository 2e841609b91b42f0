package feature

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The kernels that the processor chooses give what those in Go give.
func TestKernelsGiveTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
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

		folded, want := make([]byte, length), make([]byte, length)
		inside, wantInside := make([]uint64, length/64+1), make([]uint64, length/64+1)
		foldWords(folded, inside, text)
		foldWordsGo(want, wantInside, text)
		if !slices.Equal(folded, want) || !slices.Equal(inside, wantInside) {
			t.Fatalf("%q is folded to %q, %x, in Go to %q, %x", text, folded, inside, want, wantInside)
		}

		lowered, wantLowered := make([]byte, length+wordLoad), make([]byte, length+wordLoad)
		lower(lowered, text)
		lowerGo(wantLowered, text)
		if !slices.Equal(lowered[:length], wantLowered[:length]) {
			t.Fatalf("%q is %q in lower case, in Go %q", text, lowered, wantLowered)
		}

		runs := slices.Clone(text)
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
			hashStrings(index, text, shift)
			hashStringsGo(want, text, shift)
			if !slices.Equal(index, want) {
				t.Fatalf("the strings of %q are %v, in Go %v", text, index, want)
			}
		}

		for n := 1; n <= min(8, length); n++ {
			bits := uint(MinTableBits + r.IntN(MaxTableBits-MinTableBits+1))
			lower := appendLower(nil, text)
			b, wantB := make(bitmap, 1<<(bits-6)), make(bitmap, 1<<(bits-6))
			index, wantIndex := make([]uint32, length-n+1), make([]uint32, length-n+1)
			k := b.siftGrams(index, lower, n, 64-bits)
			wantK := wantB.siftGramsGo(wantIndex, 0, 0, lower, n, 64-bits)
			if !slices.Equal(index[:k], wantIndex[:wantK]) || !slices.Equal(b, wantB) {
				t.Fatalf("%d-grams of %q: %v, in Go %v", n, text, index[:k], wantIndex[:wantK])
			}
			b.clear(index[:k])
			if slices.ContainsFunc(b, func(word uint64) bool { return word != 0 }) {
				t.Fatal("a bit is left")
			}
		}
	}
}
