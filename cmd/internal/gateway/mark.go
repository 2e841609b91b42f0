package gateway

import (
	"bytes"
	"fmt"
	"iter"
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

// Added returns the fields that a message of that verdict gets, in order. Tagged says
// whether a tag was put before its subject: only then does a field name the tag, so that
// nobody takes the sender's own words off.
func (m Marks) Added(v *stream.Verdict, tagged bool) []AddedField {
	added := []AddedField{{Field, FieldValue(v)}}
	if words := m.words(v); words != "" {
		added = append(added, AddedField{FieldWords, words})
	}
	if tagged {
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
	layout := layoutOf(message)
	var subject []byte // the value of the first Subject
	var tag string     // its value with the tag, if it gets one
	if v != nil {
		for f := range layout.fields(message) {
			if subject == nil && isSubject(f.name) {
				subject = f.bytes[len(f.name)+1:]
				if value, changed := m.Subject(v, string(subject)); changed {
					tag = value
				}
			}
		}
	}
	header := append(make([]byte, 0, 2<<10), message[:layout.first]...)
	if v != nil && layout.first > 0 && header[layout.first-1] != '\n' {
		header = append(header, end...)
	}
	if v != nil {
		for _, f := range m.Added(v, tag != "") {
			header = fmt.Appendf(header, "%s: %s%s", f.Name, f.Value, end)
		}
	}
	for f := range layout.fields(message) {
		switch {
		case m.Ours(string(f.name)):
		case tag != "" && isSubject(f.name):
			header = append(append(append(header, f.name...), ':'), tag...)
			tag = "" // only the first
		default:
			header = append(header, f.bytes...)
		}
	}
	rest := message[layout.end:]
	switch n := lineLength(rest); {
	case n > 0 && isEmpty(rest[:n]):
		header, rest = append(header, rest[:n]...), rest[n:]
	case layout.first == layout.end && v != nil:
		header = append(header, end...) // what follows must not become part of the header
	}
	return Rewritten{header, rest}
}

// forged reports whether the message has fields that could be taken for ours.
func (m Marks) forged(message []byte) bool {
	for f := range layoutOf(message).fields(message) {
		if m.Ours(string(f.name)) {
			return true
		}
	}
	return false
}

// A layout says where the fields of a message stand: behind an mbox "From " line, up to
// the first empty line. Lines between fields that are no fields belong to the header. A
// message without an empty line has no body, or a header that the first such line ends.
type layout struct{ first, end int }

// A headerField is a field with its folded lines, or a line that is no field. Its name has
// the blanks before the colon; it is empty of a line that is no field, or beyond maxFieldName.
type headerField struct{ name, bytes []byte }

// maxFieldName bounds the names that are looked at: ours are shorter.
const maxFieldName = 256

func layoutOf(message []byte) layout {
	var l layout
	if bytes.HasPrefix(message, []byte("From ")) || bytes.HasPrefix(message, []byte(">From ")) {
		l.first = lineLength(message)
	}
	l.end = l.first
	stray := -1 // the first line that is no field
	for l.end < len(message) {
		line := message[l.end:][:lineLength(message[l.end:])]
		if isEmpty(line) {
			return l
		}
		folded := l.end > l.first && (line[0] == ' ' || line[0] == '\t')
		if !folded && !isField(line) {
			if l.end == l.first {
				return l // no header at all
			}
			if stray < 0 {
				stray = l.end
			}
		}
		l.end += len(line)
	}
	if stray >= 0 {
		l.end = stray
	}
	return l
}

// fields yields the header in pieces.
func (l layout) fields(message []byte) iter.Seq[headerField] {
	return func(yield func(headerField) bool) {
		header := message[l.first:l.end]
		for len(header) > 0 {
			n := lineLength(header)
			f := headerField{}
			if isField(header[:n]) {
				if name, _, _ := bytes.Cut(header[:n], []byte{':'}); len(name) <= maxFieldName {
					f.name = name
				}
				for n < len(header) && (header[n] == ' ' || header[n] == '\t') { // folded
					n += lineLength(header[n:])
				}
			}
			f.bytes, header = header[:n], header[n:]
			if !yield(f) {
				return
			}
		}
	}
}

func isSubject(name []byte) bool {
	return bytes.EqualFold(bytes.TrimRight(name, " \t"), []byte("subject"))
}

// lineLength returns the length of the first line with its line end.
func lineLength(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b)
}

func isEmpty(line []byte) bool { return len(bytes.TrimRight(line, "\r\n")) == 0 }

// isField reports whether a line begins a field: a name without blanks, blanks perhaps,
// and a colon.
func isField(line []byte) bool {
	before, _, ok := bytes.Cut(line, []byte{':'})
	name := bytes.TrimRight(before, " \t")
	return ok && len(name) > 0 && !bytes.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
