package feature

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// list writes tokens as where:text, a mark in brackets.
func list(tokens []Token) (all []string) {
	for _, t := range tokens {
		text := string(t.Text)
		if t.Mark {
			text = "(" + text + ")"
		}
		all = append(all, t.Where+":"+text)
	}
	return all
}

func TestTokens(t *testing.T) {
	h := "From a@b Mon\nReceived: from dynamic.example (HELO x)\nx-mailer:\nx-cut"
	got := strings.Join(list(HeadTokens(nil, []byte(h))), " ")
	if want := "from-line:from from-line:a@b from-line:mon header:received Received:from Received:dynamic.example Received:(() Received:helo Received:x Received:()) header:x-mailer header:x-cut"; got != want {
		t.Errorf("H: %s\nwant %s", got, want)
	}
	m := &Message{Subject: []byte("Win big!"), Body: []byte("Go to <HTTPS://me:pw@Win.Example:443/a?b#c> or www.b.example/x, not://, mailto:a@b !!!")}
	got = strings.Join(list(m.TextTokens(nil, m.AppendT(nil))), " ")
	if want := "header:subject subject:win subject:big subject:(!) text:go text:to text:(<) link:win.example text:(>) text:or link:www.b.example text:not text:(://,) text:mailto text:(:) text:a@b text:(!!!)"; got != want {
		t.Errorf("T: %s\nwant %s", got, want)
	}
	got = strings.Join(list(HeadTokens(nil, []byte("text: a\nlink: b\n: c\nsubject: d"))), " ")
	if want := `header:text header "text":a header:link header "link":b header "":c header:subject subject:d`; got != want {
		t.Errorf("fields with other places' names: %s\nwant %s", got, want)
	}
	plain := &Message{Body: []byte("subject: x")}
	if got := strings.Join(list(plain.TextTokens(nil, plain.AppendT(nil))), " "); got != "text:subject text:(:) text:x" {
		t.Errorf("a plain text: %s", got)
	}
}

// What only begins like a link is not read to its end again and again.
func TestTokensOfNoLinks(t *testing.T) {
	for _, piece := range []string{"http:///", "http://@,www.@,", "www.@,", "http://?", "http://a"} {
		text := []byte(strings.Repeat(piece, 1<<20/len(piece)))
		start := time.Now()
		tokens := appendTokens(nil, text, 0, len(text), InText, true)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%d bytes of %q: %d tokens in %v", len(text), piece, len(tokens), took)
		}
	}
	for size, want := range map[int]string{maxAuthority - 10: "link:b.example", maxAuthority: "text:http"} {
		text := []byte("http://" + strings.Repeat("u", size) + "@b.example/" + strings.Repeat("p", 2*maxAuthority))
		if got := list(appendTokens(nil, text, 0, len(text), InText, true)); got[0] != want {
			t.Errorf("a user of %d bytes: %.80s, want %s", size, got[0], want)
		}
	}
}

// Whatever stands in H and T, tokens follow one another and hold every byte that is no space.
// The words of a text without links are those that are hashed.
func TestTokensHoldAllBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"http://", "www.", "a", "B1", " ", "\n", ":", "/", "From ", "!", "\xff", "ü", "\x00", "<", ">", "\"", "@", ".", "-"}
	for range 3000 {
		var s strings.Builder
		for range r.IntN(30) {
			s.WriteString(pieces[r.IntN(len(pieces))])
		}
		text := []byte(s.String())
		m := &Message{Subject: text[:r.IntN(len(text)+1)], Body: text}
		if r.IntN(2) == 0 {
			m.Subject = nil
		}
		body := m.AppendT(nil)
		body = body[:r.IntN(len(body)+1)] // as a long one is cut
		for part, tokens := range map[string][]Token{"H": HeadTokens(nil, text), "T": m.TextTokens(nil, body)} {
			whole := text
			if part == "T" {
				whole = body
			}
			at := 0
			for _, token := range append(tokens, Token{Begin: len(whole), End: len(whole) + 1, Where: "end", Text: []byte("end")}) {
				if token.Begin < at || token.End <= token.Begin || len(token.Text) == 0 || token.Where == "" {
					t.Fatalf("%s %q: token %+v after byte %d", part, whole, token, at)
				}
				for _, c := range whole[at:token.Begin] {
					if !isSpace(c) && c != ':' {
						t.Fatalf("%s %q: no token holds %q before %+v", part, whole, c, token)
					}
				}
				at = token.End
			}
		}
		if strings.Contains(strings.ToLower(s.String()), "://") || strings.Contains(s.String(), "www.") {
			continue
		}
		var words []string
		var h Hasher
		for bounds := h.words(text); len(bounds) > 0; bounds = bounds[2:] {
			words = append(words, string(h.folded[bounds[0]:bounds[1]]))
		}
		var tokens []string
		for _, token := range (&Message{Body: text}).TextTokens(nil, text) {
			if !token.Mark {
				tokens = append(tokens, string(token.Text))
			}
		}
		if fmt.Sprint(words) != fmt.Sprint(tokens) {
			t.Fatalf("%q: hashed are %q, tokens are %q", text, words, tokens)
		}
	}
}

// Two features of one slot share it; a feature that occurs twice does not.
func TestTraceFindsSharedSlots(t *testing.T) {
	h, first := NewHasher(MinTableBits), "prize"
	second := ""
	for i := 0; second == ""; i++ {
		if w := fmt.Sprint("w", i); h.Words(nil, []byte(w))[0] == h.Words(nil, []byte(first))[0] {
			second = w
		}
	}
	var trace Trace
	shared := func(text string) bool {
		h.Trace(&trace)
		index := h.Words(nil, []byte(text))
		h.Trace(nil)
		trace.Resolve(index)
		return trace.Shared[0]
	}
	if shared(first+" "+strings.ToUpper(first)) || !shared(first+" "+second) {
		t.Errorf("%q shares its slot with itself, or not with %q", first, second)
	}
	var numbers Sparse
	h.Trace(&trace)
	h.Numbers(&numbers, []Number{{first, 1}, {"zero", 0}, {second, 1}})
	h.Trace(nil)
	trace.Resolve(numbers.Index)
	if numbersSlots := len(numbers.Index); numbersSlots == 1 && !trace.Shared[0] {
		t.Error("two names of one slot do not share it")
	}
	places := slices.Clone(trace.Spans)
	if len(places) != 2 || places[0].Begin != 0 || places[1].Begin != 2 {
		t.Errorf("places of numbers: %+v", places)
	}
}
