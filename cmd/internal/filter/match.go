package filter

import (
	"bytes"
	"errors"
	"strings"
)

// Reasons to refuse a header. Nothing of the message is in them.
var (
	errChanged = errors.New("the answer's header changes or lacks a field of the message")
	errMark    = errors.New("the answer's header has a mark that is not well formed")
	errEnd     = errors.New("the answer's header ends in the wrong place")
)

// maxTag bounds the tag before a subject, in bytes.
const maxTag = 256

// match checks the new header of a message and returns the message's body, which
// follows it. It walks through both, field by field:
//
//	message   From    Received   X-Hamlet  Subject: x          ↵  body
//	header    From X  Received             Subject: [SPAM] x   ↵
//
// A mark (X) has no partner: one in the message is gone, one in the header is new. All
// else is equal, byte for byte. The header ends with the message's empty line, or
//
//   - where the message's text begins without an empty line before it;
//   - with an empty line of its own, where the message has no fields or no body.
//
// So header and body together are the message and nothing else, but for the marks.
func match(message, header []byte) (body []byte, err error) {
	if len(header) == 0 {
		return nil, errEnd
	}
	rest := message
	if from := fromLine(rest); len(from) > 0 {
		if !bytes.HasPrefix(header, from) {
			return nil, errChanged
		}
		rest, header = rest[len(from):], header[len(from):]
	}
	start := rest
	fields := 0 // of the message
	tagged := false
	for {
		for isMark(field(rest)) {
			rest = rest[len(field(rest)):]
			fields++
		}
		if len(header) == 0 {
			break
		}
		f := field(header)
		header = header[len(f):]
		old := field(rest)
		switch {
		case isMark(f):
			if !wellFormed(f) {
				return nil, errMark
			}
		case isEmpty(f):
			return afterEmpty(rest, f, header, fields)
		case bytes.Equal(f, old), len(old) == len(rest) && bytes.Equal(f, ended(old, f)):
			rest = rest[len(old):]
			fields++
		case !tagged && isTagged(old, f):
			rest = rest[len(old):]
			fields++
			tagged = true
		case !tagged && isSubject(f) && !hasSubject(start) && wellFormed(f) && len(f) <= maxTag:
			tagged = true // the message has no subject, and gets one
		default:
			return nil, errChanged
		}
	}
	// The header has no empty line: the message's text begins without one, or never.
	if first := field(rest); len(first) > 0 &&
		(fields == 0 || isEmpty(first) || isField(first) || first[0] == ' ' || first[0] == '\t') {
		return nil, errEnd
	}
	return rest, nil
}

// afterEmpty returns the body behind the empty line of a header. A door may send more: the
// beginning of the body, where it finds the header's end later than it is.
func afterEmpty(rest, empty, more []byte, fields int) ([]byte, error) {
	line := field(rest)
	switch {
	case isEmpty(line):
		if !bytes.Equal(line, empty) {
			return nil, errChanged
		}
		rest = rest[len(line):]
	case !bytes.HasSuffix(empty, []byte("\n")):
		return nil, errEnd
	case len(rest) == 0: // the message has no body
	case fields == 0 && !isField(line): // it has no header
	default:
		return nil, errEnd
	}
	rest, ok := bytes.CutPrefix(rest, more)
	if !ok {
		return nil, errEnd
	}
	return rest, nil
}

// fromLine returns the mbox "From " line at the start of a message, or nothing.
func fromLine(message []byte) []byte {
	if bytes.HasPrefix(bytes.TrimPrefix(message, []byte(">")), []byte("From ")) {
		return line(message)
	}
	return nil
}

// field returns the first line of b with the lines that continue it, if it begins a
// field. It returns another line alone.
func field(b []byte) []byte {
	n := len(line(b))
	if !isField(b[:n]) {
		return b[:n]
	}
	for n < len(b) && (b[n] == ' ' || b[n] == '\t') {
		n += len(line(b[n:]))
	}
	return b[:n]
}

// line returns the first line of b with its line end.
func line(b []byte) []byte {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i+1]
	}
	return b
}

func isEmpty(line []byte) bool {
	return len(line) > 0 && len(bytes.TrimRight(line, "\r\n")) == 0
}

// name returns the name of a field, without blanks before its colon; nil if the line
// begins no field.
func name(line []byte) []byte {
	before, _, ok := bytes.Cut(line, []byte(":"))
	before = bytes.TrimRight(before, " \t")
	if !ok || len(before) == 0 {
		return nil
	}
	for _, c := range before {
		if c <= ' ' || c >= 0x7f {
			return nil
		}
	}
	return before
}

func isField(line []byte) bool { return name(line) != nil }

// isMark reports whether a field is a filter's mark: X-Hamlet… or X-Spam-….
func isMark(field []byte) bool {
	n := strings.ToLower(string(name(field)))
	return n == "x-hamlet" || strings.HasPrefix(n, "x-hamlet-") || strings.HasPrefix(n, "x-spam-")
}

func isSubject(field []byte) bool { return strings.EqualFold(string(name(field)), "subject") }

// hasSubject reports whether a field of the header at the start of b is a subject.
func hasSubject(b []byte) bool {
	for {
		f := field(b)
		if len(f) == 0 || isEmpty(f) {
			return false
		}
		if isSubject(f) {
			return true
		}
		b = b[len(f):]
	}
}

// isTagged reports whether the field is the old subject with a tag before its text.
func isTagged(old, field []byte) bool {
	if !isSubject(old) || !isSubject(field) {
		return false
	}
	before, value, _ := bytes.Cut(old, []byte(":"))
	rest, ok := bytes.CutPrefix(field, append(bytes.Clone(before), ':'))
	if !ok {
		return false
	}
	tag, ok := bytes.CutSuffix(rest, bytes.TrimLeft(value, " \t"))
	return ok && len(tag) <= maxTag && !bytes.ContainsFunc(tag, isControl)
}

// ended returns the last line of a message with the line end that it lacks, if the field
// has one.
func ended(old, field []byte) []byte {
	if len(old) == 0 || old[len(old)-1] == '\n' {
		return old
	}
	for _, end := range []string{"\n", "\r\n"} {
		if len(field) == len(old)+len(end) && bytes.HasSuffix(field, []byte(end)) {
			return append(bytes.Clone(old), end...)
		}
	}
	return old
}

// wellFormed reports whether a field that was added ends its lines and has no control
// characters.
func wellFormed(field []byte) bool {
	text, ok := bytes.CutSuffix(field, []byte("\n"))
	for l := range bytes.SplitSeq(text, []byte("\n")) {
		ok = ok && !bytes.ContainsFunc(bytes.TrimSuffix(l, []byte("\r")), isControl)
	}
	return ok
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
