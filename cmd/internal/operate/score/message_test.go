package score

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"hamlet/algos/feature"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/wire"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
)

func joined(pieces []piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Whatever is coloured, the pieces together are the text; and each token of a word of the answer
// is one coloured piece.
func TestPiecesAreTheText(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	vocabulary := []string{"prize", "Meeting", "don't", "!!!", "grüße", "日本", "https://a.example/x?y", "HTTP://b.example", "a@b.example", "$5", "…", "\u202e", "\n", "\n\n", " ", "--", "x:y", strings.Repeat("long", 30)}
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(vocabulary[random.IntN(len(vocabulary))])
			if random.IntN(3) > 0 {
				b.WriteByte(' ')
			}
		}
		return b.String()
	}
	oneLine := func(n int) string { return strings.ReplaceAll(text(n), "\n", " ") }
	for i := range 80 {
		raw := fmt.Sprintf("From ann Mon\nFrom: %s\nX-Spam-Flag: %s\nSubject: %s\nX-%d: %s\n\n%s", oneLine(3), oneLine(2), oneLine(random.IntN(2000)*(i%2)), i, oneLine(random.IntN(200)), text(random.IntN(3000)))
		body := stream.Body{Kind: stream.Mail, Mail: []byte(raw)}
		read, how, err := example.Body("", &body)
		if err != nil {
			t.Fatal(err)
		}
		from := read.Message
		head, all := from.AppendH(nil, nil), from.AppendT(nil)
		tokens := from.TextTokens(nil, all)
		var words []stream.Word
		seen := map[wordKey]bool{}
		for k, token := range append(feature.HeadTokens(nil, head), tokens...) {
			if k%3 == 0 {
				w := stream.Word{Text: wire.ShownWord(string(token.Text)), Where: wire.ShownWord(token.Where), Contribution: float64(k%5 - 2)}
				if !seen[wordKey{w.Where, w.Text}] {
					seen[wordKey{w.Where, w.Text}], words = true, append(words, w)
				}
			}
		}
		m, err := newMessage("", &body, words)
		if err != nil {
			t.Fatal(err)
		}
		same := func(what, got, want string) {
			t.Helper()
			got, want = strings.ReplaceAll(got, "\ufffd", ""), strings.ReplaceAll(want, "\ufffd", "")
			if !strings.HasPrefix(want, got) || len(want)-len(got) > 3 { // the model's bound may cut a letter
				t.Fatalf("message %d: the %s is %q, want %q", i, what, got, want)
			}
		}
		same("subject", joined(m.Subject), page.Visible(string(from.Subject[:min(len(from.Subject), feature.TextBytes-len("subject: "))])))
		if len(from.Subject) < feature.TextBytes-20 {
			shown := clip(from.Body, mostText)
			got := joined(m.Text) + m.Rest
			if want := page.Visible(string(shown)); got != want || m.Cut != len(from.Body)-len(shown) {
				t.Fatalf("message %d: %d bytes of text and %d that are cut, want %d of %d", i, len(got), m.Cut, len(want), len(how.Mail.Text))
			}
		}
		var lines []string
		for _, f := range m.Fields {
			line := joined(f.Value)
			if len(f.Name) > 0 {
				line = joined(f.Name) + ":" + line
			}
			lines = append(lines, line)
		}
		same("header", strings.Join(lines, "\n"), page.Visible(strings.TrimSuffix(string(head), "\n")))
		if !strings.HasPrefix(m.Unread, "x-spam-flag:") {
			t.Fatalf("message %d: unread is %q", i, m.Unread)
		}
		coloured, want := 0, 0
		for _, p := range append(m.Subject, m.Text...) {
			if p.Class != "" {
				coloured++
			}
		}
		c := newColouring(words)
		for _, token := range tokens {
			if w, ok := c.of(&token); ok && w.Contribution != 0 && token.Begin >= len("subject: ") && token.Begin < len(all) {
				want++
			}
		}
		cut := len(all) == feature.TextBytes // perhaps within a letter, which is of no piece then
		if coloured != want && (!cut || coloured != want-1) {
			t.Fatalf("message %d: %d pieces are coloured, want %d", i, coloured, want)
		}
	}
}
