package bench

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/feature"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

// benchWords runs `hamlet-lab bench words --json`.
func benchWords(t *testing.T, args ...string) (r wordsResult) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = append([]string{"words", "--json"}, args...)
	if err := settings.Run(t.Context(), "bench", "", &c, args, stdio); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	return r
}

// Of 500 mails of SpamAssassin, after 500 others, words and rest add up to the mean. Spam
// without its five top words has lower log-odds. Over the whole corpus it is 98.4 % of the
// spam (MEASURED.md).
func TestWordsOfSpamAssassinDecide(t *testing.T) {
	dir := dataset.Path(t, "spamassassin")
	r := benchWords(t, "--index", filepath.Join(dir, "index.csv"), "--limit", "1000", "--from", "500",
		filepath.Join(dir, "spamassassin.tar.gz"))
	t.Logf("%+v", r)
	if r.Events != 500 || r.Spam < 200 || r.Top.Messages < 9*r.Spam/10 {
		t.Errorf("%d explained, %d spam, %d with words; want 500, and most spam with words", r.Events, r.Spam,
			r.Top.Messages)
	}
	if !(r.Error <= 1e-9) {
		t.Errorf("words and rest miss the mean by %v", r.Error)
	}
	if r.Top.Lowered < 0.95 || r.Top.Lowered < r.Drawn.Lowered+0.2 {
		t.Errorf("log-odds fell in %.3f of the spam, and in %.3f without words that were drawn", r.Top.Lowered,
			r.Drawn.Lowered)
	}
}

// Words are taken out wherever they stand in subject and text, as whole words, and nowhere else.
func TestWordsAreTakenOut(t *testing.T) {
	m := &feature.Message{
		Head:    []byte("from: prize@example.org\nsubject: A Prize for you\nx-prize: prize\n"),
		Subject: []byte("A Prize for you"),
		Body:    []byte("prize, PRIZE! prizes http://prize.example/prize !!! prize"),
	}
	got := withoutWords(m, map[string]bool{"prize": true, "!!!": true})
	want := []string{"from: prize@example.org\nsubject: A  for you\nx-prize: prize\n", "A  for you",
		", ! prizes http://prize.example/prize  "}
	if have := []string{string(got.Head), string(got.Subject), string(got.Body)}; !slices.Equal(have, want) {
		t.Errorf("got  %q\nwant %q", have, want)
	}
	if text := withoutWords(&feature.Message{Body: []byte("a prize")},
		map[string]bool{"a": true}); text.Subject != nil || string(text.Body) != " prize" {
		t.Errorf("a text without a: %+v", text)
	}
}
