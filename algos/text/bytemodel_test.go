package text_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// plainBytes is the byte model of the package doc that keeps its strings in a map.
type plainBytes struct {
	count [2]map[string]float64
	total [2]float64
}

func newPlainBytes() *plainBytes {
	return &plainBytes{count: [2]map[string]float64{{}, {}}}
}

func (m *plainBytes) sum(text string) (s float64) {
	for i := range text {
		var p [2]float64
		for y := range p {
			p[y] = (m.count[y][text[i:i+1]] + .5) / (m.total[y] + 128)
			for l := 2; l <= 5 && i >= l-1; l++ {
				g, c := m.count[y][text[i-l+1:i+1]], m.count[y][text[i-l+1:i]]
				p[y] = (g + 2*p[y]) / (max(c, g) + 2)
			}
		}
		s += math.Log(max(math.Exp(-5), min(math.Exp(5), p[1]/p[0])))
	}
	return s
}

func (m *plainBytes) learn(text string, y int, ω float64) {
	for i := range text {
		for l := 1; l <= min(5, i+1); l++ {
			m.count[y][text[i-l+1:i+1]] += ω
		}
	}
	m.total[y] += ω * float64(len(text))
}

func stringsOf(h *feature.Hasher, s string) *text.View {
	return &text.View{Bytes: []byte(s), Sparse: feature.Sparse{Index: h.Strings(nil, []byte(s), 5)}}
}

// draw draws a text of which spam and ham have other strings. Its strings are few enough
// to have a slot each.
func drawText(r *rand.Rand, spam bool) string {
	b := make([]byte, r.IntN(90))
	for i := range b {
		b[i] = "abcd"[r.IntN(3)]
		if spam && i > 0 && b[i-1] == 'a' {
			b[i] = 'd'
		}
	}
	return string(b)
}

func TestByteModelEqualsItsFormula(t *testing.T) {
	const bits = 22 // four letters make 1,360 strings
	r := rand.New(rand.NewPCG(9, 10))
	h := feature.NewHasher(bits)
	e, o := text.NewByteModel(text.NewColumn(bits)), newPlainBytes()
	collided := map[uint32]string{}
	right := 0
	for n := range 400 {
		spam := r.IntN(2) == 0
		s := drawText(r, spam)
		v := stringsOf(h, s)
		for i := range s {
			for l := 2; l <= min(5, i+1); l++ {
				of := s[i-l+1 : i+1]
				if was, ok := collided[v.Index[4*i+l-2]]; ok && was != of {
					t.Fatalf("%q and %q have one slot: take another seed", was, of)
				}
				collided[v.Index[4*i+l-2]] = of
			}
		}
		got, sum, size := e.Score(v), o.sum(s), float64(len(s))
		want := text.Score{LogOdds: sum / math.Sqrt(size+1), Inputs: [text.MaxInputs]float64{clip(sum / math.Sqrt(size+1)), clip(10 * sum / (size + 21))}}
		if math.Abs(got.LogOdds-want.LogOdds) > 1e-9 || math.Abs(got.Inputs[0]-want.Inputs[0]) > 1e-9 || math.Abs(got.Inputs[1]-want.Inputs[1]) > 1e-9 || got.Inputs[2] != 0 {
			t.Fatalf("text %d, %q: %+v, want %+v", n, s, got, want)
		}
		if n >= 200 && (got.LogOdds > 0) == spam {
			right++
		}
		ω := float64(100+r.IntN(925)) / 1024
		y, margin := 0, -got.LogOdds
		if spam {
			y, margin = 1, got.LogOdds
		}
		counted := e.Learn(v, got, spam, ω)
		if learns := len(s) > 0 && margin <= 7; (counted > 0) != learns {
			t.Fatalf("text %d, margin %v: counted %v", n, margin, counted)
		} else if learns {
			o.learn(s, y, ω)
		}
	}
	if right < 180 {
		t.Errorf("%d of the last 200 right; it has not learnt", right)
	}
}

// However often a text is learnt and withdrawn, and where counts are rounded, an answer
// stays finite and no count falls below 0.
func TestByteModelBeyondExactCounts(t *testing.T) {
	const bits = 8
	h := feature.NewHasher(bits)
	e := text.NewByteModel(text.NewColumn(bits))
	v := stringsOf(h, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	for range 5000 {
		e.Learn(v, text.Score{}, true, .97)
	}
	for range 6000 {
		e.Withdraw(v, true, .97)
	}
	if s := e.Score(v); s.LogOdds != s.LogOdds || math.Abs(s.LogOdds) > 1e3 {
		t.Errorf("%+v", s)
	}
	b, _ := e.AppendBinary(nil)
	if err := text.NewByteModel(text.NewColumn(bits)).UnmarshalBinary(b); err != nil {
		t.Error(err)
	}
}

func FuzzByteModelBytes(f *testing.F) {
	const bits = 8
	h := feature.NewHasher(bits)
	b, _ := text.NewByteModel(text.NewColumn(bits)).AppendBinary(nil)
	f.Add(b, "cheap")
	f.Add(bytes.Repeat([]byte{0x7f}, len(b)), "pills")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		e := text.NewByteModel(text.NewColumn(bits))
		if e.UnmarshalBinary(b) != nil {
			return
		}
		if back, _ := e.AppendBinary(nil); !bytes.Equal(back, b) {
			t.Error("read and written, other bytes")
		}
		if got := e.Score(stringsOf(h, s)); got.LogOdds != got.LogOdds || math.Abs(got.Inputs[0]) > 10 || math.Abs(got.Inputs[1]) > 10 {
			t.Errorf("scores %+v", got)
		}
	})
}
