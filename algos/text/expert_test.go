package text_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/text"
)

func entries() []*text.Entry { return slices.Concat(text.Messages, text.Vectors, personals()) }

// What a registration says is what the expert does. An expert of a new type passes
// this without a word about it here.
func TestEntriesSayWhatTheirExpertsDo(t *testing.T) {
	const bits = 10
	names := map[string]bool{}
	for _, e := range entries() {
		t.Run(e.Name, func(t *testing.T) {
			if e.Name == "" || names[e.Name] || e.Reads == nil {
				t.Errorf("name %q: given twice or empty, or nothing to read", e.Name)
			}
			names[e.Name] = true
			if n := len(e.Inputs); n < 1 || n > text.MaxInputs {
				t.Fatalf("%d inputs, want 1 to %d", n, text.MaxInputs)
			}
			if !(e.Mean >= 0 && e.Variance > 0) {
				t.Errorf("prior mean %v and variance %v of its opinions", e.Mean, e.Variance)
			}
			r := rand.New(rand.NewPCG(5, 6))
			h := feature.NewHasher(bits)
			scratch := new(text.View)
			view := func() *text.View {
				words := make([]byte, 1+r.IntN(120))
				numbers := []feature.Number{}
				for i := range words {
					words[i] = "abc  "[r.IntN(5)]
				}
				for range 8 {
					numbers = append(numbers, feature.Number{Name: string(rune('a' + r.IntN(26))), Value: r.NormFloat64()})
				}
				v, parts := new(text.View), &text.Parts{Head: words, Text: words, Numbers: numbers}
				e.Reads.Read(h, v, parts)
				if e.Reads.Read(h, scratch, parts); !slices.Equal(scratch.Index, v.Index) || !slices.Equal(scratch.Value, v.Value) {
					t.Fatal("a view that is used again holds more than the body")
				}
				return v
			}
			image := func(e text.Expert) []byte {
				b, err := e.AppendBinary(nil)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			expert, fresh := e.New(text.NewColumn(bits)), e.New(text.NewColumn(bits))
			if n := len(image(expert)); n != e.Size(bits) {
				t.Errorf("%d bytes, its entry says %d", n, e.Size(bits))
			}
			if s := expert.Score(new(text.View)); s != (text.Score{}) {
				t.Errorf("of nothing it says %+v", s)
			}
			surprised := false
			type learnt struct {
				v       *text.View
				spam    bool
				counted float64
			}
			var all []learnt
			for range 200 {
				v := view()
				was := expert.Score(v)
				if alone := expert.Pool([]text.Expert{expert}, v); abs(alone.LogOdds-was.LogOdds) > 1e-9*(1+abs(was.LogOdds)) {
					t.Fatalf("pooled alone it says %+v, else %+v", alone, was)
				}
				if empty := expert.Pool([]text.Expert{expert, fresh}, v); abs(empty.LogOdds-was.LogOdds) > 1e-9*(1+abs(was.LogOdds)) {
					t.Fatalf("pooled with one that learnt nothing it says %+v, else %+v", empty, was)
				}
				for _, input := range was.Inputs {
					if !(abs(input) <= 10) {
						t.Fatalf("the input %v is beyond ±10", input)
					}
				}
				for _, rest := range was.Inputs[len(e.Inputs):] {
					if rest != 0 {
						t.Fatalf("more inputs than %d: %+v", len(e.Inputs), was)
					}
				}
				surprised = surprised || was.Surprise != 0
				spam := r.IntN(2) == 0
				counted := expert.Learn(v, was, spam, 0.75)
				if !(counted >= 0 && counted <= 1) {
					t.Fatalf("the weight %v to withdraw is not in 0…1", counted)
				}
				all = append(all, learnt{v, spam, counted})
			}
			if v := view(); fresh.Pool([]text.Expert{fresh, expert}, v).LogOdds == fresh.Score(v).LogOdds {
				t.Error("pooled with one that learnt, an expert says what it says alone")
			}
			surprise := e.Surprise
			if original := text.ByName(strings.TrimPrefix(e.Name, "personal-")); original != nil {
				surprise = original.Surprise // nobody watches a personal expert's
			}
			if surprised != surprise {
				t.Errorf("surprised: %v, its entry says %v", surprised, surprise)
			}
			again := e.New(text.NewColumn(bits))
			if err := again.UnmarshalBinary(image(expert)); err != nil || !bytes.Equal(image(again), image(expert)) {
				t.Errorf("read again: %v, or other bytes", err)
			}
			counts := slices.ContainsFunc(all, func(l learnt) bool { return l.counted > 0 })
			for _, l := range all {
				if l.counted > 0 {
					expert.Withdraw(l.v, l.spam, l.counted)
				}
			}
			if counts != e.Counts || counts && !bytes.Equal(image(expert), image(fresh)) {
				t.Errorf("counts: %v, its entry says %v; or something is left of what was withdrawn", counts, e.Counts)
			}
		})
	}
}

func abs(v float64) float64 { return max(v, -v) }

func TestNames(t *testing.T) {
	for _, name := range append(text.Names(), text.Default()...) {
		if e := text.ByName(name); e == nil || e.Name != name {
			t.Errorf("%q: %+v", name, e)
		}
	}
	if text.ByName("names") != nil {
		t.Error("an expert of vectors is found for messages")
	}
}

// A view may be read by one list after another. The bytes that it saw before are the
// caller's.
func TestListsLeaveTheBodyAlone(t *testing.T) {
	const body = "Subject: FREE Pills\n\nCall NOW, 0800 1234"
	h := feature.NewHasher(10)
	for _, first := range entries() {
		for _, second := range entries() {
			roomy := func() []byte { return append(make([]byte, 0, 2*len(body)), body...) }
			p := &text.Parts{Head: roomy(), Text: roomy()}
			var v text.View
			first.Reads.Read(h, &v, p)
			second.Reads.Read(h, &v, p)
			if string(p.Head) != body || string(p.Text) != body {
				t.Errorf("%s after %s: H is %q, T is %q", second.Name, first.Name, p.Head, p.Text)
			}
		}
	}
}
