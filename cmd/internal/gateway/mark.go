package gateway

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"hamlet/cmd/internal/cli"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// Marks are what doors add to a message. The zero value is X-Hamlet alone.
type Marks struct {
	SpamFields bool    // X-Spam-Flag and X-Spam-Status too
	Tag        string  // before the subject of spam, such as "[SPAM] "; empty: none
	Words      int     // of the verdict, in X-Hamlet-Words; 0: none
	Required   float64 // the score that means spam in X-Spam-Status; default 5
}

// DefaultRequired is SpamAssassin's required score.
const DefaultRequired = 5

// Check reports a mark that cannot be.
func (m Marks) Check() error {
	if m.Words < 0 || m.Words > maxWords {
		return cli.Usagef("words in the header: %d is not in 0…%d", m.Words, maxWords)
	}
	if m.Tag == "" {
		return nil
	}
	if err := mail.ValidTag(m.Tag); err != nil {
		return cli.Usagef("tag of the subject: %v", err)
	}
	return nil
}

const maxWords = 20

// RequiredScore returns the score that means spam.
func (m Marks) RequiredScore() float64 {
	if m.Required == 0 {
		return DefaultRequired
	}
	return m.Required
}

// An AddedField is a header field to put at the top of a message. Its value has no line
// end.
type AddedField struct{ Name, Value string }

// Added returns the fields that a message of that verdict gets, in order.
func (m Marks) Added(v *stream.Verdict) []AddedField {
	added := []AddedField{{Field, FieldValue(v)}}
	if words := m.words(v); words != "" {
		added = append(added, AddedField{FieldWords, words})
	}
	if m.tags(v) {
		added = append(added, AddedField{FieldTag, strings.TrimRight(m.Tag, " ")})
	}
	if m.SpamFields {
		if v.Decision == stream.DecideSpam {
			added = append(added, AddedField{FieldFlag, "YES"})
		}
		added = append(added, AddedField{FieldStatus, StatusValue(v, m.RequiredScore())})
	}
	return added
}

// tags reports whether the subject is tagged.
func (m Marks) tags(v *stream.Verdict) bool { return m.Tag != "" && v.Decision == stream.DecideSpam }

// Subject returns the value of the subject field, which begins behind the colon, as a
// message of that verdict gets it, and whether it changes. The tag goes before the text;
// a tag that is there already is not repeated.
func (m Marks) Subject(v *stream.Verdict, value string) (string, bool) {
	text := strings.TrimLeft(value, " \t")
	if !m.tags(v) || strings.HasPrefix(text, strings.TrimRight(m.Tag, " ")) {
		return value, false
	}
	return " " + m.Tag + text, true
}

// maxWordsValue bounds the value of X-Hamlet-Words: a line of mail has at most 998 bytes.
const maxWordsValue = 900

// words returns the value of X-Hamlet-Words, in ASCII, or nothing:
//
//	"prize" +2.31 subject; "dynamic.example" +1.10 received
func (m Marks) words(v *stream.Verdict) string {
	value := ""
	for _, w := range v.Words[:min(m.Words, len(v.Words))] {
		next := FormatWord(w)
		if value != "" {
			next = "; " + next
		}
		if len(value)+len(next) > maxWordsValue {
			break
		}
		value += next
	}
	return value
}

// FormatWord writes a word of a verdict in ASCII, such as "prize" +2.31 subject.
func FormatWord(w stream.Word) string {
	return fmt.Sprintf("%s %+.2f %s", strconv.QuoteToASCII(w.Text), w.Contribution, strings.Trim(strconv.QuoteToASCII(w.Where), `"`))
}

// A Rewritten is a message with its marks, in pieces that share the original's memory.
type Rewritten struct {
	Header []byte // the whole new header, up to and with the empty line where there was one
	Body   []byte // the message's own bytes behind it
}

// Rewrite returns the message with the marks of v. Fields that could be taken for ours
// are removed; all other bytes stay, and line ends are as the message's first. An mbox
// "From " line stays first. A message without a header gets one. A message that passes
// unmarked has no v: nothing is added to it.
func (m Marks) Rewrite(message []byte, v *stream.Verdict) Rewritten {
	end := "\n"
	if i := bytes.IndexByte(message, '\n'); i > 0 && message[i-1] == '\r' {
		end = "\r\n"
	}
	header := make([]byte, 0, 2<<10)
	rest := message
	if bytes.HasPrefix(rest, []byte("From ")) || bytes.HasPrefix(rest, []byte(">From ")) {
		n := lineLength(rest)
		header, rest = append(header, rest[:n]...), rest[n:]
		if v != nil && header[n-1] != '\n' {
			header = append(header, end...)
		}
	}
	var added []AddedField
	if v != nil {
		added = m.Added(v)
	}
	for _, f := range added {
		header = fmt.Appendf(header, "%s: %s%s", f.Name, f.Value, end)
	}
	var (
		fields = 0                      // that the message has
		tagged = v == nil || !m.tags(v) // or the first subject is tagged; a message without one stays so
	)
	for len(rest) > 0 {
		n := lineLength(rest)
		if isEmpty(rest[:n]) {
			break
		}
		name, isField := fieldName(rest[:n])
		if !isField {
			if _, more := fieldName(rest[n:][:lineLength(rest[n:])]); fields == 0 || !more {
				break // the body begins, without an empty line before it
			}
		}
		for isField && n < len(rest) && (rest[n] == ' ' || rest[n] == '\t') { // folded
			n += lineLength(rest[n:])
		}
		field := rest[:n]
		rest = rest[n:]
		fields++
		switch {
		case m.Ours(name):
		case !tagged && strings.EqualFold(strings.TrimRight(name, " \t"), "subject"):
			tagged = true
			value, _ := m.Subject(v, string(field[len(name)+1:]))
			header = append(append(append(header, name...), ':'), value...)
		default:
			header = append(header, field...)
		}
	}
	switch n := lineLength(rest); {
	case n > 0 && isEmpty(rest[:n]):
		header, rest = append(header, rest[:n]...), rest[n:]
	case fields == 0 && v != nil:
		header = append(header, end...) // what follows must not become part of the header
	}
	return Rewritten{header, rest}
}

// lineLength returns the length of the first line with its line end.
func lineLength(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b)
}

func isEmpty(line []byte) bool { return len(bytes.TrimRight(line, "\r\n")) == 0 }

// fieldName returns the name of the field that begins a line, with the blanks before the
// colon.
func fieldName(line []byte) (name string, ok bool) {
	before, _, ok := bytes.Cut(line, []byte{':'})
	trimmed := bytes.TrimRight(before, " \t")
	if !ok || len(trimmed) == 0 || bytes.ContainsFunc(trimmed, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", false
	}
	return string(before), true
}
