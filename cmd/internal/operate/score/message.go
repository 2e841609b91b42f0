package score

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"hamlet/algos/feature"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/wire"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
)

// Bounds of what is shown of a message, in bytes. The model reads less of most: feature.HeadBytes
// and feature.TextBytes.
const (
	mostText   = 20_000
	mostUnread = 8_000 // of header fields that the model does not read
	mostLink   = 120   // of one link
	mostLinks  = 50
)

// A message is a mail or a text as the model reads it, cut into pieces.
type message struct {
	Mail    bool
	Subject []piece
	Fields  []field // that are read
	Unread  string  // header fields that are not
	Text    []piece
	Rest    string // of the text, which is not read
	Cut     int    // bytes of the text that are not shown
	Links   []link
	Broken  string // why a part was read as raw text; empty: none was
}

// A piece is a stretch of text with what its word adds to the log-odds.
type piece struct {
	Text  string // visible
	Class string // of the style; empty: it adds next to nothing
	Title string
}

type field struct {
	Name  []piece // empty for the line "From " of a mailbox
	Value []piece
}

// A link is a host that links of the text lead to.
type link struct {
	Host, First string // visible; First is the first link as it stands there
	Times       int
	Known       bool // it is among the words of the answer
	Adds        float64
}

// A wordKey is what names a word in an answer.
type wordKey struct{ where, text string }

// A colouring knows the words of an answer.
type colouring map[wordKey]stream.Word

func newColouring(words []stream.Word) colouring {
	c := colouring{}
	for _, w := range words {
		c[wordKey{w.Where, w.Text}] = w
	}
	return c
}

// of returns the word that a token stands for. The tokens are cut as the model cuts them, and
// their names are made as the answer's, so both are equal for the same word.
func (c colouring) of(t *feature.Token) (stream.Word, bool) {
	if len(c) == 0 {
		return stream.Word{}, false
	}
	w, ok := c[wordKey{wire.ShownWord(t.Where), wire.ShownWord(string(t.Text))}]
	return w, ok
}

// newMessage cuts a body of a tenant into pieces.
func newMessage(tenant string, body *stream.Body, words []stream.Word) (message, error) {
	read, how, err := example.Body(tenant, body)
	if err != nil || read.Message == nil {
		return message{}, cmp.Or(err, fmt.Errorf("a body of kind %d has no text", body.Kind))
	}
	c, from := newColouring(words), read.Message
	m := message{Mail: how.Mail != nil, Broken: page.Visible(how.Reason)}
	head := from.AppendH(nil, nil)
	m.fields(c, head)
	m.Unread = unread(from.Head, head)

	text := from.AppendT(nil)
	tokens := from.TextTokens(nil, text)
	begin := 0 // of the text behind the subject
	if from.Subject != nil {
		const name, between = len("subject: "), len("\n\n")
		subject := min(name+len(from.Subject), len(text))
		m.Subject = c.cut(text, tokens, min(name, subject), subject)
		begin = min(subject+between, len(text))
	}
	shown := clip(from.Body, mostText)
	end := min(len(text), begin+len(shown))
	for end > begin && end-begin < len(shown) && !utf8.RuneStart(shown[end-begin]) {
		end-- // the model's bound is within a letter
	}
	m.Text = c.cut(text, tokens, begin, end)
	rest := shown[end-begin:]
	m.Rest, m.Cut = page.Visible(string(rest)), len(from.Body)-len(shown)
	m.links(c, text, tokens)
	return m, nil
}

func (m *message) fields(c colouring, head []byte) {
	tokens := feature.HeadTokens(nil, head)
	for at := 0; at < len(head); {
		end := len(head)
		if n := bytes.IndexByte(head[at:], '\n'); n >= 0 {
			end = at + n
		}
		f, value := field{}, at
		if n := bytes.IndexByte(head[at:end], ':'); n >= 0 && !bytes.HasPrefix(head[at:end], []byte("From ")) {
			f.Name, value = c.cut(head, tokens, at, at+n), at+n+1
		}
		f.Value = c.cut(head, tokens, value, end)
		m.Fields = append(m.Fields, f)
		at = end + 1
	}
}

// unread returns the lines of all that are not in read, whose lines stand in the same order and
// whose last one may be cut.
func unread(all, read []byte) string {
	var b []byte
	for line := range bytes.Lines(all) {
		if n := min(len(line), len(read)); n > 0 && bytes.Equal(line[:n], read[:n]) {
			line, read = line[n:], read[n:]
		}
		if b = append(b, line...); len(b) > mostUnread {
			break
		}
	}
	text := page.Visible(strings.TrimRight(string(clip(b, mostUnread)), "\n"))
	if len(b) > mostUnread {
		text += "…"
	}
	return text
}

// clip cuts b to n bytes, or fewer so that no letter is cut.
func clip(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

// cut cuts part of what the model reads into pieces. The tokens are in order.
func (c colouring) cut(text []byte, tokens []feature.Token, begin, end int) (pieces []piece) {
	at := begin // of text that is in no piece yet
	plain := func(to int) {
		if to > at {
			pieces = append(pieces, piece{Text: page.Visible(string(text[at:to]))})
			at = to
		}
	}
	first, _ := slices.BinarySearchFunc(tokens, begin,
		func(t feature.Token, at int) int { return cmp.Compare(t.Begin, at) })
	for i := first; i < len(tokens) && tokens[i].Begin < end; i++ {
		t := &tokens[i]
		w, ok := c.of(t)
		class := strength(w.Contribution)
		if !ok || class == "" {
			continue
		}
		plain(t.Begin)
		at = min(t.End, end)
		pieces = append(pieces, piece{Text: page.Visible(string(text[t.Begin:at])), Class: class, Title: pointed(&w)})
	}
	plain(end)
	return pieces
}

// links lists the hosts of links, by what they add.
func (m *message) links(c colouring, text []byte, tokens []feature.Token) {
	index := map[string]int{}
	for i := range tokens {
		t := &tokens[i]
		if t.Where != feature.InLink {
			continue
		}
		host := string(t.Text)
		k, known := index[host]
		if !known {
			if len(m.Links) == mostLinks {
				continue
			}
			k = len(m.Links)
			index[host] = k
			l := link{Host: page.Visible(host), First: page.Visible(string(clip(text[t.Begin:t.End], mostLink)))}
			if t.End-t.Begin > mostLink {
				l.First += "…"
			}
			w, ok := c.of(t)
			l.Known, l.Adds = ok, w.Contribution
			m.Links = append(m.Links, l)
		}
		m.Links[k].Times++
	}
	slices.SortStableFunc(m.Links, func(a, b link) int { return cmp.Compare(math.Abs(b.Adds), math.Abs(a.Adds)) })
}

// levels are the log-odds, in nats, from which a word is coloured stronger.
var levels = [4]float64{0.02, 0.1, 0.3, 0.8}

// strength returns the style of a word that adds so much; none below the first level.
func strength(adds float64) string {
	level := 0
	for _, from := range levels {
		if math.Abs(adds) >= from {
			level++
		}
	}
	switch {
	case level == 0:
		return ""
	case adds > 0:
		return fmt.Sprintf("w s s%d", level)
	}
	return fmt.Sprintf("w h h%d", level)
}

// pointed is what is shown of a word that is pointed at.
func pointed(w *stream.Word) string {
	side := "to spam"
	if w.Contribution < 0 {
		side = "to ham"
	}
	shared := ""
	if w.Shared {
		shared = "; a part may belong to another word of this message"
	}
	return page.Signed(w.Contribution, 2) + " " + side + ", in " + w.Where + shared
}
