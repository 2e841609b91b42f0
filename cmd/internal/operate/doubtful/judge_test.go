package doubtful

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// A model believes what is said of a doubtful label. Of the other ways to confirm one, a correction to the
// same label teaches nothing, and another label is doubted as well.
func TestAnswersAreBelieved(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := map[stream.Label][]string{stream.Ham: {"lunch", "report", "friday"}, stream.Spam: {"winner", "prize", "cheap"}}
	event := func(i int, like, label stream.Label) stream.Event {
		var b strings.Builder
		for range 10 {
			fmt.Fprintf(&b, "%s%d ", words[like][random.IntN(3)], random.IntN(5))
		}
		return stream.Event{ID: fmt.Sprint(i), Source: "users", Tenant: "t", Label: label, Body: stream.Body{Kind: stream.Text, Text: b.String()}}
	}
	apply := func(m *model.Model, e stream.Event) model.Effect {
		t.Helper()
		ex, _, err := example.Of(&e)
		if err != nil {
			t.Fatal(err)
		}
		effect, err := m.Apply(&ex)
		if err != nil {
			t.Fatal(err)
		}
		return effect
	}
	m, err := model.New(model.Config{TableBits: 12})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		label := stream.Ham + stream.Label(i%2)
		apply(m, event(i, label, label))
	}
	doubtful := event(300, stream.Ham, stream.Spam)
	effect := apply(m, doubtful)
	if effect.Phi >= 0.5 {
		t.Fatalf("φ is %v", effect.Phi)
	}
	p := func(m *model.Model) float64 {
		t.Helper()
		ex, _, err := example.Of(&doubtful)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := m.NewPredictor().Predict(&ex.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.P()
	}
	before := p(m)
	item := Item{stream.JournalEntry{ID: example.Identity(&doubtful, nil), Label: stream.Spam, Doubt: &stream.Doubt{Phi: effect.Phi}}}
	after := func(events ...stream.Event) (at float64, last model.Effect) {
		t.Helper()
		other, err := m.Copy()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			last = apply(other, e)
		}
		return p(other), last
	}
	confirmed, last := after(Events(&item, "t", doubtful.Body, true, "ann", noon)...)
	if last.Phi != 1 || last.Standing != 1 || last.Receipt == nil || last.Receipt.Outcome != model.Replaced {
		t.Errorf("confirmed: %+v", last)
	}
	turned, last := after(Events(&item, "t", doubtful.Body, false, "ann", noon)...)
	if last.Phi != 1 || last.Receipt == nil || last.Receipt.Outcome != model.Replaced || !last.Receipt.Spam {
		t.Errorf("turned around: %+v", last)
	}
	same := Events(&item, "t", doubtful.Body, true, "ann", noon)[1]
	once, last := after(same)
	if last.Receipt == nil || last.Receipt.Outcome != model.Unchanged || once != before {
		t.Errorf("the same label once: %+v", last)
	}
	learnt := doubtful
	learnt.ID, learnt.Source = "again", "ann"
	twice, last := after(learnt)
	t.Logf("p before %.5f, confirmed %.5f, turned around %.5f, learnt again %.5f with φ %.3f", before, confirmed, turned, twice, last.Phi)
	if !(turned < before && before < twice && twice < confirmed) {
		t.Errorf("p before %v, turned around %v, learnt again %v, confirmed %v", before, turned, twice, confirmed)
	}
}
