package feature

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plainWords is the slow, obvious way to the words of a text.
func plainWords(text []byte) (words []string) {
	for _, w := range bytes.FieldsFunc(bytesAsRunes(text), func(r rune) bool {
		return !(r >= 128 || strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'-$._@", r))
	}) {
		b := []byte{}
		for _, r := range string(w) { // back to bytes
			b = append(b, byte(r))
		}
		words = append(words, string(lowered(b[:min(len(b), 30)])))
	}
	return words
}

// bytesAsRunes writes each byte as the rune of its value.
func bytesAsRunes(b []byte) []byte {
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return []byte(s.String())
}

func lowered(b []byte) []byte {
	b = bytes.Clone(b)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return b
}

// plainWordIndices and plainGramIndices are the indices in the simplest code: one
// feature after the other, and a map of those seen.

func plainWordIndices(text []byte, tableBits int) (index []uint32) {
	seen := map[uint32]bool{}
	enter := func(hash uint64) {
		if i := uint32(hash >> (64 - tableBits)); !seen[i] {
			seen[i] = true
			index = append(index, i)
		}
	}
	var before uint64
	for k, w := range plainWords(text) {
		hash := uint64(fnvOffset)
		for _, c := range []byte(w) {
			hash = (hash ^ uint64(c)) * fnvPrime
		}
		hash = mix(hash)
		enter(hash)
		if k > 0 {
			enter(mix(bits.RotateLeft64(before, 23) + hash))
		}
		before = hash
	}
	return index
}

func plainGramIndices(text []byte, n, tableBits int) (index []uint32) {
	seen := map[uint32]bool{}
	text = lowered(text)
	for j := 0; j+n <= len(text); j++ {
		gram := uint64(0)
		for _, c := range text[j : j+n] {
			gram = gram<<8 | uint64(c)
		}
		if i := uint32(mix(gram+uint64(n)<<59) >> (64 - tableBits)); !seen[i] {
			seen[i] = true
			index = append(index, i)
		}
	}
	return index
}

// distinct counts different words and different pairs of neighbours.
func distinct(words []string) int {
	seen := map[string]bool{}
	for i, w := range words {
		seen[w] = true
		if i > 0 {
			seen[words[i-1]+" "+w] = true
		}
	}
	return len(seen)
}

func anyText() *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 300),
		rapid.SliceOfN(rapid.SampledFrom([]byte("aAbB0 .-'$_@\n!\xc3\xa9")), 0, 300),
	)
}

// With 2^24 slots, texts this short have no collisions worth a word: the number
// of indices is the number of features.
func TestWordsAreThoseOfThePlainWay(t *testing.T) {
	h := NewHasher(MaxTableBits)
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		got := h.Words(nil, text)
		want := distinct(plainWords(text))
		if len(got) > want || len(got) < want-1 {
			t.Errorf("%d features of %q, want %d", len(got), text, want)
		}
		checkIndices(t, got, MaxTableBits)
	})
}

func TestGramsAreThoseOfThePlainWay(t *testing.T) {
	h := NewHasher(MaxTableBits)
	rapid.Check(t, func(t *rapid.T) {
		text, n := anyText().Draw(t, "text"), rapid.IntRange(1, 8).Draw(t, "n")
		seen := map[string]bool{}
		for i := 0; i+n <= len(text); i++ {
			seen[string(lowered(text[i:i+n]))] = true
		}
		got := h.Grams(nil, text, n)
		if len(got) > len(seen) || len(got) < len(seen)-1 {
			t.Errorf("%d different %d-grams of %q, want %d", len(got), n, text, len(seen))
		}
		checkIndices(t, got, MaxTableBits)
	})
}

func checkIndices(t rapid.TB, index []uint32, tableBits int) {
	seen := map[uint32]bool{}
	for _, i := range index {
		if i >= 1<<tableBits {
			t.Errorf("index %d in a table of 2^%d", i, tableBits)
		}
		if seen[i] {
			t.Errorf("index %d twice", i)
		}
		seen[i] = true
	}
}

func TestFeaturesIgnoreCaseAndWhatLiesBetweenWords(t *testing.T) {
	h := NewHasher(18)
	a := h.Words(nil, []byte("Free MONEY, now"))
	b := h.Words(nil, []byte("free\n(money) \x00 NOW"))
	if !slices.Equal(a, b) || len(a) != 5 {
		t.Errorf("%v and %v, want the same three words and two pairs", a, b)
	}
	if c := h.Words(nil, []byte("money free now")); slices.Equal(sorted(a), sorted(c)) {
		t.Error("the order of two words does not matter; it should, in a pair")
	}
	long := strings.Repeat("x", 30)
	if !slices.Equal(h.Words(nil, []byte(long)), h.Words(nil, []byte(long+"yz"))) {
		t.Error("more than 30 bytes of a word count")
	}
	if slices.Equal(h.Grams(nil, []byte("abcde"), 5), h.Grams(nil, []byte("abcdf"), 5)) {
		t.Error("two 5-grams share an index")
	}
}

func sorted(s []uint32) []uint32 { s = slices.Clone(s); slices.Sort(s); return s }

// A Hasher's scratch must not leak from one message into the next, whatever
// their lengths and however many they are.
func TestScratchDoesNotLeak(t *testing.T) {
	used := NewHasher(10)
	for k := range 700 { // past the 255th generation, with sizes up and down
		text := []byte(strings.Repeat(fmt.Sprintf("w%d x%d ", k%13, k%7), 1+(k*37)%50))
		fresh := NewHasher(10)
		if got, want := used.Words(nil, text), fresh.Words(nil, text); !slices.Equal(got, want) {
			t.Fatalf("message %d: %v, a new Hasher says %v", k, got, want)
		}
		if got, want := used.Grams(nil, text, 4), fresh.Grams(nil, text, 4); !slices.Equal(got, want) {
			t.Fatalf("message %d: %v, a new Hasher says %v", k, got, want)
		}
		if got, want := used.Shapes(nil, text, 5), fresh.Shapes(nil, text, 5); !slices.Equal(got, want) {
			t.Fatalf("message %d: %v, a new Hasher says %v", k, got, want)
		}
		var a, b Sparse
		numbers := []Number{{"a", 1}, {fmt.Sprint("b", k), -2}, {"c", 0}}
		used.Numbers(&a, numbers)
		fresh.Numbers(&b, numbers)
		if !slices.Equal(a.Index, b.Index) || !slices.Equal(a.Value, b.Value) {
			t.Fatalf("message %d: %v, a new Hasher says %v", k, a, b)
		}
	}
}

func TestNumbersHaveUnitLength(t *testing.T) {
	h := NewHasher(MinTableBits)
	rapid.Check(t, func(t *rapid.T) {
		var numbers []Number
		for i, v := range rapid.SliceOfN(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), 0, 60).Draw(t, "values") {
			numbers = append(numbers, Number{fmt.Sprint("n", i), v})
		}
		var s Sparse
		h.Numbers(&s, numbers)
		checkIndices(t, s.Index, MinTableBits)
		sum := 0.0
		for _, v := range s.Value {
			sum += v * v
		}
		if len(s.Index) != len(s.Value) || len(s.Index) > 0 && !(math.Abs(sum-1) <= 1e-12) {
			t.Errorf("%d indices, values %v of squared length %v", len(s.Index), s.Value, sum)
		}
	})
}

// Names that share an index and whose values cancel are no feature, however small
// what is left beside them.
func TestNumbersThatCancel(t *testing.T) {
	h := NewHasher(MinTableBits)
	var s Sparse
	at := map[uint32]string{}
	var one, other string
	for i := 0; other == ""; i++ {
		one = fmt.Sprint("n", i)
		h.Numbers(&s, []Number{{one, 1}})
		other = at[s.Index[0]]
		at[s.Index[0]] = one
	}
	shared := s.Index[0]
	for _, rest := range [][]Number{nil, {{"rest", 1}}, {{"rest", 1e-200}}, {{"rest", -5e-324}}, {{"much", 1e-170}, {"rest", -1e-170}}} {
		h.Numbers(&s, append([]Number{{one, -1}, {other, 1}}, rest...))
		sum := 0.0
		for _, v := range s.Value {
			sum += v * v
		}
		if slices.Contains(s.Index, shared) || len(s.Index) != len(rest) || len(s.Value) != len(rest) || len(rest) > 0 && !(math.Abs(sum-1) <= 1e-12) {
			t.Errorf("%q and %q cancel beside %v: indices %v, values %v of squared length %v", one, other, rest, s.Index, s.Value, sum)
		}
	}
}

func TestBinaryNumbersAreTheRecipe(t *testing.T) {
	h := NewHasher(18)
	var s Sparse
	h.Numbers(&s, []Number{{"a", 1}, {"b", 1}, {"c", 0}, {"d", 1}, {"e", 1}})
	if !slices.Equal(s.Value, []float64{.5, .5, .5, .5}) {
		t.Errorf("values %v, want 1/√4 each; 0 is missing", s.Value)
	}
	h.Numbers(&s, nil)
	if len(s.Index) != 0 || s.Value == nil {
		t.Errorf("no names: %v, want no features with values", s)
	}
}

// Reference: indices that models are made of. Moving them is a new version of
// the mathematics.
func TestIndicesStay(t *testing.T) {
	h := NewHasher(18)
	var s Sparse
	h.Numbers(&s, []Number{{"word", 1}})
	got := fmt.Sprint(h.Words(nil, []byte("Hello, wörld")), h.Grams(nil, []byte("Hello!"), 5), h.Grams(nil, []byte("Hell"), 4), s.Index, h.Shapes(nil, []byte("Hello! 1"), 5))
	if want := "[86236 246559 161916] [187496 221016] [38084] [10915] [24347 185747]"; got != want {
		t.Errorf("indices %s, want %s", got, want)
	}
}

func FuzzFeatures(f *testing.F) {
	f.Add([]byte("Subject: you won\n\nclick HERE http://example.org/?a=1"), 5)
	f.Add([]byte{}, 1)
	f.Add([]byte("\xff\xfe'-$._@"), 8)
	f.Add([]byte("[@AZ`az{ a incomprehensibilities@antidisestablishmentarianism-a 12345678 123456789"), 4)
	f.Add(bytes.Repeat([]byte("The quick brown fox, "), 30), 3)
	hashers := map[int]*Hasher{MinTableBits: NewHasher(MinTableBits), 18: NewHasher(18)}
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		n = 1 + (n&7+8)&7
		for _, tableBits := range []int{MinTableBits, 18} {
			h := hashers[tableBits]
			if got, want := h.Words(nil, text), plainWordIndices(text, tableBits); !slices.Equal(got, want) {
				t.Errorf("words of %q in 2^%d slots: %v, the plain way %v", text, tableBits, got, want)
			}
			if got, want := h.Grams(nil, text, n), plainGramIndices(text, n, tableBits); !slices.Equal(got, want) {
				t.Errorf("%d-grams of %q in 2^%d slots: %v, the plain way %v", n, text, tableBits, got, want)
			}
			if got, want := h.Shapes(nil, text, n), plainShapeIndices(text, n, tableBits); !slices.Equal(got, want) {
				t.Errorf("%d-grams of the shape of %q in 2^%d slots: %v, the plain way %v", n, text, tableBits, got, want)
			}
			if slices.ContainsFunc(h.present, func(word uint64) bool { return word != 0 }) {
				t.Fatalf("%q: indices are left in the scratch for 2^%d slots", text, tableBits)
			}
		}
		var facts [FactCount]float64
		Facts(facts[:], &Message{Body: text, BodyBytes: n})
		for j, v := range facts {
			if math.IsNaN(v) || math.Abs(v) > 30 {
				t.Errorf("fact %s = %v", FactNames[j], v)
			}
		}
	})
}

// prose returns texts of n bytes, of words as often as Zipf's law has them.
func prose(texts, n int) (all [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	rank := rand.NewZipf(r, 1.1, 4, 20_000)
	words := make([][]byte, 20_001)
	for i := range words {
		for range 2 + r.IntN(8) {
			words[i] = append(words[i], "etaoinshrdlucmfwypvbgkqjxz"[min(25, int(6*r.ExpFloat64()))])
		}
	}
	for range texts {
		var text []byte
		for len(text) < n {
			text = append(append(text, words[rank.Uint64()]...), ' ')
		}
		all = append(all, text[:n])
	}
	return all
}

// 1,800 bytes are what a message of SpamAssassin has of H, and of T.
func BenchmarkHasher(b *testing.B) {
	texts := prose(200, 1800)
	h := NewHasher(18)
	var dst []uint32
	b.Run("words", func(b *testing.B) {
		b.SetBytes(1800)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			dst = h.Words(dst[:0], texts[i%len(texts)])
		}
	})
	b.Run("5-grams", func(b *testing.B) {
		b.SetBytes(1800)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			dst = h.Grams(dst[:0], texts[i%len(texts)], 5)
		}
	})
}
