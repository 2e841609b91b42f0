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

// Terms sum to the inputs of the answer, but for clipping, and a trace knows where
// each feature stands: reading those bytes alone gives its index. So an explanation names
// what was hashed. The length of a text stands nowhere.
func TestTermsAndPlacesExplainAnAnswer(t *testing.T) {
	const bits = 10
	for _, e := range entries() {
		r, byLength := rand.New(rand.NewPCG(8, 9)), strings.HasSuffix(e.Name, text.WordsByLength)
		h := feature.NewHasher(bits)
		expert := e.New(text.NewColumn(bits))
		for round := range 120 {
			part := make([]byte, r.IntN(150))
			for i := range part {
				part[i] = "aabcde  .!,9Z\n"[r.IntN(14)]
			}
			var ns []feature.Number
			for range 8 {
				ns = append(ns, feature.Number{Name: string(rune('a' + r.IntN(26))), Value: r.NormFloat64()})
			}
			parts := &text.Parts{Tenant: "t", Head: part, Text: part, Numbers: ns}
			var v, plain text.View
			e.Reads.Read(h, &v, parts)
			if round < 80 {
				expert.Learn(&v, expert.Score(&v), round%3 == 0, 0.9)
				continue
			}
			var trace feature.Trace
			e.Reads.Trace(&trace, h, &plain, parts)
			if len(plain.Index) != len(v.Index) || e.Reads.Salts == nil && !slices.Equal(plain.Index, v.Index) {
				t.Fatalf("%s: traced %v, read %v", e.Name, plain.Index, v.Index)
			}
			terms := expert.Terms(nil, &v)
			if len(terms) != len(v.Index) {
				t.Fatalf("%s: %d terms of %d features", e.Name, len(terms), len(v.Index))
			}
			score := expert.Score(&v)
			for j := range e.Inputs {
				sum := 0.0
				for _, term := range terms {
					sum += term[j]
				}
				if got := max(-text.ClipAt, min(text.ClipAt, sum)); abs(got-score.Inputs[j]) > 1e-10 {
					t.Errorf("%s: the terms of input %d sum to %v, the answer is %v", e.Name, j, got, score.Inputs[j])
				}
			}
			placed := map[int]bool{}
			for _, p := range trace.Spans {
				placed[p.Feature] = true
				alone, from := new(text.View), *parts
				switch e.Reads.Part {
				case text.OfHead:
					from.Head, from.Text = part[p.Begin:p.End], nil
				case text.OfText:
					from.Head, from.Text = nil, part[p.Begin:p.End]
				case text.OfNumbers:
					from.Numbers = ns[p.Begin:p.End]
				}
				if byLength {
					continue // it reads how long the whole text is
				}
				list := e.Reads
				if list.Salts != nil {
					list = list.Salts
				}
				if list.Read(h, alone, &from); !slices.Contains(alone.Index, plain.Index[p.Feature]) {
					t.Errorf("%s: feature %d has the index %d; the bytes %d to %d of %q have %v", e.Name, p.Feature, plain.Index[p.Feature], p.Begin, p.End, part, alone.Index)
				}
			}
			nowhere := 0
			if byLength {
				nowhere = 1
			}
			if n := len(v.Index) - len(placed); n > nowhere {
				t.Errorf("%s: %d of %d features have no place in %q", e.Name, n, len(v.Index), part)
			}
		}
	}
}

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
			if v := view(); expert.Score(v).LogOdds == fresh.Score(v).LogOdds {
				t.Error("an expert that has learnt says what one says that has not")
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
