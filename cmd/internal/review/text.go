package review

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"hamlet/stream/mail"
)

// Bounds of a Message, in runes.
const (
	MostText   = 20_000
	mostHeader = 20_000 // of all fields
	mostLine   = 500    // of subject, sender and date
)

// A Message is a mail as a person reads it: plain text. HTML's mark-up is gone. Control
// characters, and those that change the direction of a text, are shown by their numbers.
type Message struct {
	Subject, From, To, Date string
	Header                  string // a line for each field
	Text                    string
	Cut                     bool // the mail is longer
}

// Read returns a mail as a person reads it.
func Read(raw []byte) Message {
	parsed := mail.Parse(raw)
	m := Message{Subject: line(parsed.Subject)}
	for field := range bytes.Lines(parsed.Head) {
		name, value, _ := bytes.Cut(field, []byte(": "))
		for what, dst := range map[string]*string{"from": &m.From, "to": &m.To, "date": &m.Date} {
			if string(name) == what && *dst == "" {
				*dst = line(value)
			}
		}
	}
	var cut bool
	m.Header, cut = Visible(string(parsed.Head), mostHeader)
	m.Text, m.Cut = Visible(strings.TrimSpace(string(parsed.Text)), MostText)
	m.Cut = m.Cut || cut
	return m
}

func line(b []byte) string {
	s, cut := Visible(strings.Join(strings.Fields(string(b)), " "), mostLine)
	if cut {
		s += "…"
	}
	return s
}

// Visible returns at most n runes of a text in which nothing hides: control characters and those
// of bidirectional text become ⟨U+202E⟩. Line ends and tabs stay. cut: there was more.
func Visible(s string, n int) (text string, cut bool) {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		if n--; n < 0 {
			return b.String(), true
		}
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == '\ufeff':
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), false
}
