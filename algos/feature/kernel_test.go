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

		for n := 1; n <= min(8, length); n++ {
			bits := uint(MinTableBits + r.IntN(MaxTableBits-MinTableBits+1))
			lower := appendLower(nil, text)
			b, wantB := make(bitmap, 1<<(bits-6)), make(bitmap, 1<<(bits-6))
			index, wantIndex := make([]uint32, length-n+1), make([]uint32, length-n+1)
			k := b.siftGrams(index, lower, n, 64-bits)
			wantK := wantB.siftGramsGo(wantIndex, lower, n, 64-bits)
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
