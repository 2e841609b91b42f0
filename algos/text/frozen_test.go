package text

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/feature"
)

// frozenMail are texts of few words, every third of them spam.
func frozenMail(n int) (texts []string) {
	words := strings.Fields("meeting report lunch invoice prize winner casino free click budget agenda claim")
	for i := range n {
		var b strings.Builder
		for j := range 5 + i%11 {
			k := (i*7 + j*j*3) % 12
			if i%3 == 0 && j%2 == 0 {
				k = 4 + k%5
			}
			fmt.Fprintf(&b, "%s ", words[k])
		}
		fmt.Fprintf(&b, "number%d", i) // in this text only
		texts = append(texts, b.String())
	}
	return texts
}

// freezerOf returns a Freezer that has learnt texts in so many passes.
func freezerOf(t testing.TB, texts []string, tableBits, passes int) *Freezer {
	t.Helper()
	f, err := NewFreezer(tableBits)
	if err != nil {
		t.Fatal(err)
	}
	for pass := range passes {
		for i, s := range texts {
			f.Learn(&Parts{Text: []byte(s)}, i%3 == 0, pass == 0)
		}
	}
	return f
}

func freeze(t testing.TB, f *Freezer, minCount int) *Frozen {
	t.Helper()
	frozen, err := f.Freeze(minCount)
	if err != nil {
		t.Fatal(err)
	}
	return frozen
}

func frozenView(s string, bits int) *View {
	v := new(View)
	FrozenReads.Read(feature.NewHasher(bits), v, &Parts{Text: []byte(s)})
	return v
}

// The oracle is the AdaGrad that was frozen. Each of the n weights is rounded by at most
// half a unit, so s = Σw/√n is off by at most √n/2 units, and the input by no more.
func TestFrozenAnswersAsItsAdaGrad(t *testing.T) {
	texts := frozenMail(300)
	learnt := freezerOf(t, texts, 12, 3)
	frozen := freeze(t, learnt, 1)
	apart := false
	for i, s := range append(texts, "", "abc", "words that nobody knows: xyzzy", strings.Repeat("free prize ", 900)) {
		v := frozenView(s, frozen.Bits())
		got, want := frozen.Score(v), learnt.expert.Score(v).Inputs[0]
		if tol := frozen.scale/2*math.Sqrt(float64(len(v.Index))) + 1e-12; math.Abs(got-want) > tol {
			t.Errorf("text %d: %v, want %v ± %v", i, got, want, tol)
		}
		if i < len(texts) && i%3 == 0 && got < 0 {
			t.Errorf("text %d is spam that was learnt: %v", i, got)
		}
		apart = apart || got != 0
	}
	if !apart {
		t.Error("every answer is 0")
	}
}

// The slow way: count texts by feature in a map, and read each weight from the bytes.
func TestFrozenLeavesOutRareFeatures(t *testing.T) {
	texts := frozenMail(200)
	const least = 5
	learnt := freezerOf(t, texts, 12, 2)
	frozen := freeze(t, learnt, least)
	count := map[uint32]int{}
	for _, s := range texts {
		for _, i := range frozenView(s, frozen.Bits()).Index {
			count[i]++
		}
	}
	frequent, rare := 0, 0
	for i, b := range frozen.Bytes()[48 : 48+1<<frozen.Bits()] {
		w, _ := learnt.expert.at(uint32(i))
		switch n := count[uint32(i)]; {
		case n < least && b != 0x80:
			t.Fatalf("feature %d of %d texts has the weight %d", i, n, int8(b))
		case n < least:
			rare += min(n, 1)
		case b == 0x80:
			t.Fatalf("feature %d of %d texts has no weight", i, n)
		case math.Abs(float64(int8(b))*frozen.scale-float64(w)) > frozen.scale*0.5000001:
			t.Fatalf("feature %d: %v, want %v", i, float64(int8(b))*frozen.scale, w)
		default:
			frequent++
		}
	}
	if frequent == 0 || rare == 0 || frozen.Features() != frequent {
		t.Errorf("%d frequent and %d rare features, %d by Features", frequent, rare, frozen.Features())
	}
	if ham, spam, n := frozen.Messages(); ham != 133 || spam != 67 || n != least {
		t.Errorf("%d ham, %d spam, features of %d", ham, spam, n)
	}
	v := frozenView("number7", frozen.Bits())
	if s := freeze(t, learnt, 1).Score(v); s == 0 {
		t.Error("a word of one text has no weight with --min-count 1")
	}
	for _, n := range []int{-1, 0, 1 << 16} {
		if _, err := learnt.Freeze(n); err == nil {
			t.Errorf("frozen with features of at least %d", n)
		}
	}
}

func TestFrozenRoundTrip(t *testing.T) {
	for _, f := range []*Freezer{freezerOf(t, frozenMail(60), 9, 1), freezerOf(t, nil, 8, 1)} {
		a := freeze(t, f, 2)
		b, err := DecodeFrozen(a.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) || &a.Bytes()[0] == &b.Bytes()[0] {
			t.Error("decoded: other bytes, or the same memory")
		}
		for _, s := range frozenMail(90) {
			if v := frozenView(s, a.Bits()); a.Score(v) != b.Score(v) {
				t.Errorf("%q: %v, decoded %v", s, a.Score(v), b.Score(v))
			}
		}
	}
}

// resealed returns b with a right checksum.
func resealed(b []byte) []byte {
	if len(b) >= 8 {
		binary.LittleEndian.PutUint64(b[len(b)-8:], xxhash.Sum64(b[:len(b)-8]))
	}
	return b
}

func TestHostileFrozen(t *testing.T) {
	good := freeze(t, freezerOf(t, frozenMail(60), 8, 1), 1).Bytes()
	le := binary.LittleEndian
	for what, c := range map[string]struct {
		change func(b []byte) []byte
		want   string
	}{
		"nothing":          {func(b []byte) []byte { return nil }, "not the bytes"},
		"another format":   {func(b []byte) []byte { b[0]++; return b }, "not the bytes"},
		"a later version":  {func(b []byte) []byte { le.PutUint32(b[8:], 2); return b }, "version 2"},
		"too few bits":     {func(b []byte) []byte { le.PutUint32(b[12:], 7); return b }, "2^7 slots"},
		"too many bits":    {func(b []byte) []byte { le.PutUint32(b[12:], 1<<31+9); return b }, "slots"},
		"other bits":       {func(b []byte) []byte { le.PutUint32(b[12:], 10); return b }, "2^10 slots take"},
		"cut":              {func(b []byte) []byte { return b[:len(b)-1] }, "2^9 slots take"},
		"more":             {func(b []byte) []byte { return append(b, 0) }, "2^9 slots take"},
		"scale NaN":        {func(b []byte) []byte { le.PutUint32(b[16:], 0x7fc00000); return b }, "in units of NaN"},
		"scale 0":          {func(b []byte) []byte { le.PutUint32(b[16:], 0); return b }, "in units of 0"},
		"scale ∞":          {func(b []byte) []byte { le.PutUint32(b[16:], 0x7f800000); return b }, "in units of +Inf"},
		"least 0":          {func(b []byte) []byte { le.PutUint32(b[20:], 0); return b }, "at least 0 have"},
		"too many spam":    {func(b []byte) []byte { le.PutUint64(b[32:], 1<<63); return b }, "spam"},
		"another hashing":  {func(b []byte) []byte { b[40]++; return b }, "hashes text differently"},
		"a flipped weight": {func(b []byte) []byte { b[60]++; return b }, ""}, // sealed again, any weight is sound
	} {
		_, err := DecodeFrozen(resealed(c.change(bytes.Clone(good))))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", what, err, c.want)
		}
	}
	damaged := bytes.Clone(good)
	damaged[60]++
	if _, err := DecodeFrozen(damaged); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a flipped weight: error %v", err)
	}
}

// Whatever is decoded has these bytes again and answers within the bounds of an input.
func FuzzDecodeFrozen(f *testing.F) {
	good := freeze(f, freezerOf(f, frozenMail(60), 8, 1), 1).Bytes()
	f.Add(good, "free prize")
	f.Add(good[:100], "")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		frozen, err := DecodeFrozen(resealed(bytes.Clone(b)))
		if err != nil {
			return
		}
		if !bytes.Equal(frozen.Bytes(), resealed(bytes.Clone(b))) {
			t.Error("other bytes")
		}
		if p := frozen.Score(frozenView(s, frozen.Bits())); !(math.Abs(p) <= 10) {
			t.Errorf("an answer of %v", p)
		}
	})
}
