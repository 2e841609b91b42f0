package gateway

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// Marks are what doors add to a message. The zero value is X-Hamlet alone.
type Marks struct {
	SpamFields bool   // X-Spam-Flag and X-Spam-Status too
	Tag        string // before the subject of spam, such as "[SPAM] "; empty: none
	Words      int    // of the verdict, in X-Hamlet-Words; 0: none
}

// Required is the score that means spam in X-Spam-Status, as in SpamAssassin.
const Required = 5

// Check reports a mark that cannot be.
func (m Marks) Check() error {
	if m.Words < 0 || m.Words > maxWords {
		return fmt.Errorf("words in the header: %d is not in 0…%d", m.Words, maxWords)
	}
	if m.Tag == "" {
		return nil
	}
	if err := mail.ValidTag(m.Tag); err != nil {
		return fmt.Errorf("tag of the subject: %w", err)
	}
	return nil
}

const maxWords = 20

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
		added = append(added, AddedField{FieldStatus, statusValue(v)})
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
	where := strings.Trim(strconv.QuoteToASCII(w.Where), `"`)
	return fmt.Sprintf("%s %+.2f %s", strconv.QuoteToASCII(w.Text), w.Contribution, where)
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
	split := mail.SplitHeader(message)
	var subject []byte // the value of the first Subject
	var tag string     // its value with the tag, if it gets one
	if v != nil {
		for f := range mail.Fields(split.Header) {
			if subject == nil && isSubject(f) {
				subject = f.Value()
				if value, changed := m.Subject(v, string(subject)); changed {
					tag = value
				}
			}
		}
	}
	header := append(make([]byte, 0, 2<<10), split.From...)
	if n := len(split.From); v != nil && n > 0 && header[n-1] != '\n' {
		header = append(header, end...)
	}
	if v != nil {
		for _, f := range m.Added(v, tag != "") {
			header = fmt.Appendf(header, "%s: %s%s", f.Name, f.Value, end)
		}
	}
	for f := range mail.Fields(split.Header) {
		switch {
		case m.Ours(string(f.Name())):
		case tag != "" && isSubject(f):
			header = append(append(header, f.Bytes[:f.Colon+1]...), tag...)
			tag = "" // only the first
		default:
			header = append(header, f.Bytes...)
		}
	}
	header = append(header, split.Empty...)
	if len(split.Header)+len(split.Empty) == 0 && v != nil {
		header = append(header, end...) // what follows must not become part of the header
	}
	return Rewritten{header, split.Body}
}

// forged reports whether the message has fields that could be taken for ours.
func (m Marks) forged(message []byte) bool {
	for f := range mail.Fields(mail.SplitHeader(message).Header) {
		if m.Ours(string(f.Name())) {
			return true
		}
	}
	return false
}

func isSubject(f mail.Field) bool { return bytes.EqualFold(f.Name(), []byte("subject")) }
