package model_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
)

// addUp checks that a's inputs, and its words with the rest, sum to its mean.
func addUp(t *testing.T, what string, a model.Attribution) {
	t.Helper()
	var inputs, words float64
	for _, c := range a.Inputs {
		inputs += c.Contribution
	}
	for _, w := range a.Words {
		words += w.Contribution
	}
	for _, c := range a.Rest {
		words += c.Contribution
	}
	if m := a.Prediction.Mean; !(math.Abs(inputs-m) <= 1e-9) || !(math.Abs(words-m) <= 1e-9) {
		t.Errorf("%s: inputs sum to %v, words and rest to %v; the mean is %v\n%+v", what, inputs, words, m, a)
	}
}

// frozenFrom returns a frozen expert that has learnt the messages among events.
func frozenFrom(t *testing.T, bits int, events []model.Example) *text.Frozen {
	t.Helper()
	f, err := model.NewFreezer(bits)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if events[i].Body.Message == nil {
			continue
		}
		if err := f.Learn(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	frozen, err := f.Freeze(1)
	if err != nil {
		t.Fatal(err)
	}
	return frozen
}

// Words and rest sum to the mean in every configuration. Every expert is in one of them.
func TestWordsAddUp(t *testing.T) {
	all := madeUp(420, 7)
	taught, asked := all[:360], all[360:]
	lean := model.Config{TableBits: 10, TextExperts: []string{text.Lean}, Dense: dense}
	stacked := lean
	stacked.SecondHead, stacked.TextEnsembles, stacked.VectorEnsembles = 0.99, []string{"adaboost"}, []string{"adaboost"}
	stacked.Window, stacked.Rebuild, stacked.Rounds = 100, 50, 20
	personal := model.Config{TableBits: 10, TextExperts: []string{text.HeaderWords, text.TextWordsBayes}, PersonalExperts: []string{text.TextWordsBayes, text.TextShapes}, SpamShare: true}
	for _, tt := range []struct {
		name string
		cfg  model.Config
	}{
		{"full", model.Config{TableBits: 10}},
		{"all experts", model.Config{TableBits: 10, TextExperts: text.Names()}},
		{"lean", lean},
		{"stacked", stacked},
		{"personal", personal},
		{"frozen", lean.WithFrozen(frozenFrom(t, 10, all[:200]))},
		{"frozen, read apart", model.Config{TableBits: 10}.WithFrozen(frozenFrom(t, 11, all[:200]))},
		{"frozen, read with others", model.Config{TableBits: 10}.WithFrozen(frozenFrom(t, 10, all[:200]))},
	} {
		m := newModel(t, tt.cfg)
		apply(t, m, taught)
		before := sumOf(t, m)
		predictor := m.NewPredictor()
		found := 0
		for i := range asked {
			body := &asked[i].Body
			a, err := predictor.Attribute(body)
			if err != nil {
				t.Fatal(err)
			}
			addUp(t, fmt.Sprint(tt.name, ", event ", i), a)
			p, inputs, err := predictor.Explain(body)
			if err != nil || p != a.Prediction || !slices.Equal(inputs, a.Inputs) {
				t.Errorf("%s, event %d: %+v %v, %v; Attribute says %+v %v", tt.name, i, p, inputs, err, a.Prediction, a.Inputs)
			}
			found += len(a.Words)
		}
		if found < 10*len(asked) {
			t.Errorf("%s: %d words of %d bodies", tt.name, found, len(asked))
		}
		if sumOf(t, m) != before {
			t.Errorf("%s: attributing has changed the model", tt.name)
		}
	}
	untaught, err := newModel(t, lean).NewPredictor().Attribute(&all[0].Body)
	if err != nil || len(untaught.Words) > 0 {
		t.Errorf("a new model: words %v, %v", untaught.Words, err)
	}
	addUp(t, "a new model", untaught)
}

// What no word has is the bias, the facts and the like. The experts leave nothing but the
// length of the text, and what the byte model says of white space.
func TestExpertsGiveAllToWords(t *testing.T) {
	all := madeUp(300, 8)
	m := newModel(t, model.Config{TableBits: 12})
	apply(t, m, all[:280])
	for _, ex := range all[280:] {
		a, err := m.NewPredictor().Attribute(&ex.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range a.Rest {
			if ex.Body.Message != nil && c.Name != "bias" && c.Name != "words by length of text" && !strings.HasPrefix(c.Name, "fact: ") && !strings.HasPrefix(c.Name, "text bytes") {
				t.Errorf("no word has %v", c)
			}
		}
	}
}

// lessons returns mails of which those with the word prize in the text, the field x-mailer:
// bulk and a link to win.example are spam.
func lessons() (all []model.Example) {
	for i := range 200 {
		spam := i%2 == 0
		body, head := fmt.Sprintf("Shall we meet at %d for lunch? See http://work.example/map now", i%12), "from: a@work.example\nx-mailer: plain\n"
		if spam {
			body, head = fmt.Sprintf("You get a prize of %d coins! See http://win.example/claim?u=%d now", i%12, i), "from: b@pills.example\nx-mailer: bulk\n"
		}
		all = append(all, model.Example{ID: fmt.Sprint(i), Spam: spam, Body: model.Body{
			Message: &feature.Message{Head: []byte(head), Subject: []byte("Hello"), Body: []byte(body), BodyBytes: len(body), Parts: 1},
		}})
	}
	return all
}

// A word says where it stands, and how much it moves the answer.
func TestWordsAreThoseThatDecide(t *testing.T) {
	m := newModel(t, model.Config{TableBits: 18})
	apply(t, m, lessons())
	text := "Big PRIZE, prize: http://user@WIN.example:80/claim?u=9 and lunch now"
	a, err := m.NewPredictor().Attribute(&model.Body{Message: &feature.Message{
		Head: []byte("x-mailer: bulk\n"), Subject: []byte("Coins"), Body: []byte(text), BodyBytes: len(text), Parts: 1,
	}})
	if err != nil {
		t.Fatal(err)
	}
	by := map[[2]string]float64{}
	for _, w := range a.Words {
		by[[2]string{w.Where, w.Text}] = w.Contribution
		if w.Shared {
			t.Errorf("%+v shares its slot, in a table of 2^18", w)
		}
	}
	for _, at := range [][2]string{{"text", "prize"}, {"x-mailer", "bulk"}, {"link", "win.example"}, {"subject", "coins"}} {
		if by[at] < 0.05 {
			t.Errorf("%v adds %v", at, by[at])
		}
	}
	if by[[2]string{"text", "lunch"}] >= 0 {
		t.Errorf("lunch adds %v", by[[2]string{"text", "lunch"}])
	}
	for _, at := range [][2]string{{"link", "claim"}, {"text", "http"}, {"text", "u"}, {"text", "PRIZE"}} {
		if v, found := by[at]; found {
			t.Errorf("%v is a word, which adds %v", at, v)
		}
	}
}

// Two words of one slot are both marked, and a message with one of them is not.
func TestSharedSlotsAreMarked(t *testing.T) {
	h := feature.NewHasher(8)
	slot := func(word string) uint32 { return h.Words(nil, []byte(word))[0] }
	first, second := "prize", ""
	for i := 0; second == ""; i++ {
		if word := fmt.Sprint("w", i); slot(word) == slot(first) {
			second = word
		}
	}
	cfg := model.Config{TableBits: 8, TextExperts: []string{text.LeanTextWords}}
	m := newModel(t, cfg)
	apply(t, m, lessons())
	words := func(body string) (shared []string) {
		a, err := m.NewPredictor().Attribute(&model.Body{Message: &feature.Message{Body: []byte(body), BodyBytes: len(body)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range a.Words {
			if w.Shared {
				shared = append(shared, w.Text)
			}
		}
		slices.Sort(shared)
		return shared
	}
	if got, want := words(first+" "+second), []string{first, second}; !slices.Equal(got, want) {
		t.Errorf("shared: %v, want %v", got, want)
	}
	if got := words(first + " " + first); got != nil {
		t.Errorf("shared: %v in a message of one word", got)
	}
}
