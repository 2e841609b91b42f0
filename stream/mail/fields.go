package mail

import (
	"bytes"
	"iter"
)

// One splitter cuts headers for all who read or write one: Parse and Reduce, the gateway's doors, and
// the source of files. Two that disagree are a way past both: a field that one of them reads and the
// other does not see.
//
// They agree on what a field is, and not on where a header ends. Parse ends it before a line that is no
// field and is not followed by one: what comes then, a mail program shows. Other programs read on up to
// the empty line. So who removes fields uses [SplitHeader], which does that too.

// maxName bounds the names that are looked at, with the blanks behind them.
const maxName = 256

// A Field is a header field with its folded lines, or a stray line: one line that is no field.
type Field struct {
	Bytes []byte // with its line ends; a part of the header
	Colon int    // the place of the colon behind the name; −1: a stray line
}

// Name returns the name without the blanks before the colon. It is empty for a stray line and for more
// than 256 bytes.
func (f Field) Name() []byte {
	if f.Colon < 0 || f.Colon > maxName {
		return nil
	}
	return bytes.TrimRight(f.Bytes[:f.Colon], " \t")
}

// Value returns all behind the colon, and all of a stray line.
func (f Field) Value() []byte { return f.Bytes[f.Colon+1:] }

// Unfolded returns the value's lines, trimmed, with one blank between them.
func (f Field) Unfolded() []byte { return appendUnfolded(nil, f.Value()) }

// firstField returns the first field or stray line of header, which is not empty.
func firstField(header []byte) Field {
	_, colon := fieldName(header)
	return Field{Bytes: header[:fieldEnd(header, 0, colon)], Colon: colon}
}

// fieldEnd returns the end of the field or stray line at pos, which has its colon there or is −1.
func fieldEnd(b []byte, pos, colon int) int {
	end := lineEnd(b, max(pos, colon))
	for colon >= 0 && end < len(b) && (b[end] == ' ' || b[end] == '\t') {
		end = lineEnd(b, end)
	}
	return end
}

// Fields yields the fields and stray lines of header up to its first empty line, or its end.
func Fields(header []byte) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for len(header) > 0 {
			f := firstField(header)
			if isEmptyLine(f.Bytes) || !yield(f) {
				return
			}
			header = header[len(f.Bytes):]
		}
	}
}

// A Split is a message in pieces, which share its memory. One after the other they are the message.
type Split struct {
	From   []byte // the mbox "From " line, or its quoted form; may be empty
	Header []byte // its fields and stray lines; empty if the first line is no field
	Empty  []byte // the empty line; without one nil
	Body   []byte
}

// SplitHeader splits a message behind the first empty line. Without one, a stray line ends the header
// that is not followed by a field. So no field that Parse reads is left in the body.
func SplitHeader(raw []byte) (s Split) {
	s.From = FromLine(raw)
	raw = raw[len(s.From):]
	end, stray := 0, -1
	for f := range Fields(raw) {
		if f.Colon < 0 {
			if end == 0 {
				break
			}
			if stray < 0 && !fieldFollows(raw, end+len(f.Bytes)) {
				stray = end
			}
		}
		end += len(f.Bytes)
	}
	if end < len(raw) {
		if line := raw[end:lineEnd(raw, end)]; isEmptyLine(line) {
			s.Header, s.Empty, s.Body = raw[:end], line, raw[end+len(line):]
			return s
		}
	}
	if stray >= 0 {
		end = stray
	}
	s.Header, s.Body = raw[:end], raw[end:]
	return s
}

// FromLine returns the mbox "From " line at the start of raw, or its quoted form, with its line end.
func FromLine(raw []byte) []byte {
	if bytes.HasPrefix(bytes.TrimPrefix(raw, []byte(">")), fromPrefix) {
		return raw[:lineEnd(raw, 0)]
	}
	return nil
}

// fieldName returns the end of the name at the start of a field (RFC 5322, section 2.2) and
// the position of the colon after it. It accepts the obsolete blanks between them. If the
// first line is no field, colon is −1.
func fieldName(b []byte) (end, colon int) {
	for end < len(b) && nameByte[b[end]] {
		end++
	}
	colon = end
	for colon < len(b) && (b[colon] == ' ' || b[colon] == '\t') {
		colon++
	}
	if end == 0 || colon == len(b) || b[colon] != ':' {
		return 0, -1
	}
	return end, colon
}

// fieldColon returns the position of the colon after the name of a field, or −1.
func fieldColon(b []byte) int {
	_, colon := fieldName(b)
	return colon
}

// nameByte says what a name consists of: printable ASCII without the colon.
var nameByte = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = c != ':'
	}
	return t
}()

// appendUnfolded appends the lines of v, trimmed, with one space between them.
func appendUnfolded(dst, v []byte) []byte {
	n := len(dst)
	for len(v) > 0 {
		var line []byte
		if line, v = cutFolded(v); len(line) == 0 {
			continue
		}
		if len(dst) > n {
			dst = append(dst, ' ')
		}
		dst = append(dst, line...)
	}
	return dst
}

// appendUnfoldedUTF8 appends the unfolded v as [appendUTF8] does.
func appendUnfoldedUTF8(dst, v []byte) []byte {
	n := len(dst)
	for len(v) > 0 {
		var line []byte
		if line, v = cutFolded(v); len(line) == 0 {
			continue
		}
		if len(dst) > n {
			dst = append(dst, ' ')
		}
		dst = appendUTF8(dst, line)
	}
	return dst
}

// cutFolded cuts the first line off v, and trims it.
func cutFolded(v []byte) (line, rest []byte) {
	end := lineEnd(v, 0)
	line, rest = v[:end], v[end:]
	for len(line) > 0 && isFolding(line[0]) {
		line = line[1:]
	}
	for len(line) > 0 && isFolding(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	return line, rest
}

// isFolding reports whether c is white space between and around the lines of a field.
func isFolding(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
