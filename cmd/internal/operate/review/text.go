package review

import (
	"bytes"
	"strings"

	"hamlet/cmd/internal/web/page"
	"hamlet/stream/mail"
)

// Bounds of a Message, in runes.
const (
	MostText   = 20_000
	mostHeader = 20_000 // of all fields
	mostLine   = 500    // of subject, sender and date
)

// A Message is a mail as a person reads it: plain text, in which nothing hides (page.Visible).
// HTML's mark-up is gone.
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
	m.Header, cut = visible(string(parsed.Head), mostHeader)
	m.Text, m.Cut = visible(strings.TrimSpace(string(parsed.Text)), MostText)
	m.Cut = m.Cut || cut
	return m
}

func line(b []byte) string {
	s, cut := visible(strings.Join(strings.Fields(string(b)), " "), mostLine)
	if cut {
		s += "…"
	}
	return s
}

// visible returns at most n runes of a text in which nothing hides. cut: there was more.
func visible(s string, n int) (text string, cut bool) {
	runes := []rune(strings.ReplaceAll(s, "\r\n", "\n"))
	return page.Visible(string(runes[:min(n, len(runes))])), len(runes) > n
}
