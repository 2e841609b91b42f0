package scorer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
	"hamlet/stream"
)

// An explanation has the largest words, largest first, and an answer without one has none.
func TestAnswersHaveWords(t *testing.T) {
	m, err := model.New(model.Config{TableBits: 12, TextExperts: []string{text.Lean}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		body := []byte(fmt.Sprint([]string{"lunch", "prize"}[i%2], " of ", i%7, " and w", i%60))
		ex := model.Example{ID: fmt.Sprint(i), Spam: i%2 == 1, Body: model.Body{Message: &feature.Message{Body: body, BodyBytes: len(body)}}}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	served := servedOf(t, m)
	ask := func(explain bool, most int) stream.Verdict {
		var many strings.Builder
		for i := range 60 {
			fmt.Fprintf(&many, " w%d", i)
		}
		request := &stream.Event{Body: stream.Body{Kind: stream.Text, Text: "a PRIZE of 3 for lunch" + many.String()}}
		verdicts, _, err := served.score(t.Context(), []*stream.Event{request}, scoreConfig{explain: explain, maxWords: most}, fixedRules, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return verdicts[0]
	}
	if v := ask(false, 0); v.Words != nil || v.Reasons != nil {
		t.Errorf("an answer without explanation has %+v", v)
	}
	words := ask(true, 0).Words
	if len(words) != stream.MaxWords {
		t.Errorf("%d words, want %d", len(words), stream.MaxWords)
	}
	if more := ask(true, 50).Words; len(more) != 50 || !slices.Equal(more[:len(words)], words) {
		t.Errorf("asked for 50 words: %d, %v", len(more), more)
	}
	find := func(text string) float64 {
		i := slices.IndexFunc(words, func(w stream.Word) bool { return w.Text == text && w.Where == "text" })
		if i < 0 {
			t.Fatalf("no %q in %v", text, words)
		}
		return words[i].Contribution
	}
	if find("prize") <= 0 || find("lunch") >= 0 {
		t.Errorf("prize adds %v, lunch %v", find("prize"), find("lunch"))
	}
	for i, w := range words[1:] {
		if math.Abs(w.Contribution) > math.Abs(words[i].Contribution) {
			t.Errorf("not in order: %v", words)
		}
	}
}
