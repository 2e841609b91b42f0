package mail

import (
	"bytes"
	"mime"
	"strconv"
)

// A field is one header field with its folded lines, or a line within a header
// that is none; then colon is −1.
type field struct{ start, colon, end int }

// recordField is the header field in which Reduce records how long a body was
// before it was cut or taken out.
const recordField = "X-Hamlet-Bytes"

// maxStructural bounds the fields that say how a body is to be read; a longer
// one is evidence, but says nothing.
const maxStructural = 4 << 10

// The fields that say how a body is to be read, without their names.
type structure struct {
	contentType, encoding, disposition, record []byte

	missing  bool // there is no field at all
	unended  bool // no empty line ends it, but a line that is no field
	overflow bool // the message has more than MaxFields
}

// slot returns where the value of a structural field is kept, or nil.
func (h *structure) slot(name []byte) *[]byte {
	switch len(name) {
	case len("Content-Type"):
		if equalFold(name, "content-type") {
			return &h.contentType
		}
	case len("Content-Transfer-Encoding"):
		if equalFold(name, "content-transfer-encoding") {
			return &h.encoding
		}
	case len("Content-Disposition"):
		if equalFold(name, "content-disposition") {
			return &h.disposition
		}
	case len(recordField):
		if equalFold(name, "x-hamlet-bytes") {
			return &h.record
		}
	}
	return nil
}

// scanHeader reads the fields at pos up to the empty line, a boundary or the
// first line that cannot belong to a header; there the body begins. A stray
// line with a field after it stays in the header.
func (s *scanner) scanHeader(e *entity, pos int) structure {
	var h structure
	raw := s.raw
	first := len(s.fields)
	e.header.start, e.fields.start = pos, first
	p := pos
	bodyAt := -1
	for p < len(raw) && bodyAt < 0 {
		switch c := raw[p]; {
		case c == '\n':
			bodyAt = p + 1
			continue
		case c == '\r' && p+1 < len(raw) && raw[p+1] == '\n':
			bodyAt = p + 2
			continue
		case c == '-' && len(s.open) > 0 && bytes.HasPrefix(raw[p:], []byte("--")):
			if _, _, ok := s.matchBoundary(p); ok {
				bodyAt = p
				continue
			}
		}
		end := lineEnd(raw, p)
		if folded := raw[p] == ' ' || raw[p] == '\t'; folded && len(s.fields) > first {
			s.fields[len(s.fields)-1].end = end
			p = end
			continue
		}
		colon := fieldColon(raw[p:end])
		if colon < 0 && (len(s.fields) == first || end == len(raw) || fieldColon(raw[end:lineEnd(raw, end)]) < 0) {
			h.unended = len(s.fields) > first
			bodyAt = p
			continue
		}
		if colon < 0 {
			s.fail("header line that is not a field")
		}
		if len(s.fields) >= MaxFields {
			h.overflow = true
			bodyAt = p
			continue
		}
		f := field{start: p, colon: -1, end: end}
		if colon >= 0 {
			f.colon = p + colon
		}
		s.fields = append(s.fields, f)
		p = end
	}
	if bodyAt < 0 {
		bodyAt = len(raw)
	}
	e.header.end, e.fields.end = p, len(s.fields)
	e.body = span{bodyAt, bodyAt}
	h.missing = len(s.fields) == first
	for _, f := range s.fields[first:] {
		if f.colon < 0 || f.end-f.start > maxStructural {
			continue
		}
		if slot := h.slot(s.name(f)); slot != nil && *slot == nil {
			*slot = bytes.TrimSpace(raw[f.colon+1 : f.end])
		}
	}
	return h
}

// fieldColon returns where the name of a field ends in its first line, or −1
// if the line is no field (RFC 5322, section 2.2). Blanks before the colon are
// obsolete, but seen.
func fieldColon(line []byte) int {
	for i, c := range line {
		switch {
		case c == ':':
			if i == 0 {
				return -1
			}
			return i
		case c == ' ' || c == '\t':
			rest := bytes.TrimLeft(line[i:], " \t")
			if i == 0 || len(rest) == 0 || rest[0] != ':' {
				return -1
			}
			return len(line) - len(rest)
		case c < '!' || c > '~':
			return -1
		}
	}
	return -1
}

func (s *scanner) name(f field) []byte {
	return bytes.TrimRight(s.raw[f.start:f.colon], " \t")
}

// classify reads from its header what e is. Without a usable Content-Type it
// is text, and in a digest a message (RFC 2046, section 5.1.5).
func (h *structure) classify(e *entity, inDigest bool) (boundary []byte, digest bool) {
	e.encoding = parseEncoding(h.encoding)
	e.attachment = hasPrefixFold(h.disposition, "attachment")
	if n, err := strconv.ParseUint(string(h.record), 10, 32); err == nil && n <= MaxSize {
		e.recorded = int(n)
	}
	var rest []byte
	e.mediaType, rest = cutMediaType(h.contentType)
	t := e.mediaType
	switch {
	case len(t) == 0 && inDigest, hasPrefixFold(t, "message/rfc822"), hasPrefixFold(t, "message/global"):
		e.kind = messagePart
		if e.encoding != identity { // RFC 2046 forbids it; the text cannot be reached without decoding
			e.kind = otherPart
		}
		return nil, false
	case hasPrefixFold(t, "multipart/"):
		e.kind = multiPart
	case len(t) == 0, hasPrefixFold(t, "text/"):
		e.kind = textPart
		e.html = equalFold(t, "text/html")
	default:
		e.kind = otherPart
		return nil, false
	}
	for len(rest) > 0 {
		var name, value []byte
		name, value, rest = nextParameter(rest)
		switch {
		case equalFold(name, "boundary") && boundary == nil:
			boundary = bytes.TrimRight(value, " \t\r\n")
		case equalFold(name, "charset") && e.charset == nil:
			e.charset = value
		}
	}
	if e.kind == multiPart && len(boundary) == 0 && bytes.IndexByte(h.contentType, '*') >= 0 {
		boundary = continued(h.contentType, "boundary")
	}
	return boundary, equalFold(t, "multipart/digest")
}

// cutMediaType returns the media type that a Content-Type begins with, or none
// if it is not of the form type/subtype (then RFC 2045, section 5.2, has text),
// and its parameters.
func cutMediaType(v []byte) (mediaType, parameters []byte) {
	n := bytes.IndexAny(v, "; \t\r\n(")
	if n < 0 {
		n = len(v)
	}
	mediaType, parameters = v[:n], v[n:]
	if i := bytes.IndexByte(mediaType, '/'); i <= 0 || i == len(mediaType)-1 {
		mediaType = nil
	}
	return mediaType, parameters
}

// nextParameter cuts one "name=value" off v: quoted or not, with or without a
// semicolon before it, and skipping what is none. It always shortens v.
func nextParameter(v []byte) (name, value, rest []byte) {
	v = bytes.TrimLeft(v, "; \t\r\n")
	n := bytes.IndexAny(v, "=; \t\r\n")
	if n < 0 {
		return nil, nil, nil
	}
	name, rest = v[:n], bytes.TrimLeft(v[n:], " \t\r\n")
	if len(rest) == 0 || rest[0] != '=' {
		return nil, nil, rest
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	if len(rest) > 0 && rest[0] == '"' {
		value, rest = cutQuoted(rest[1:])
		return name, value, rest
	}
	n = bytes.IndexAny(rest, "; \t\r\n")
	if n < 0 {
		n = len(rest)
	}
	return name, rest[:n], rest[n:]
}

// cutQuoted reads a quoted string after its opening quote, and copies it only
// if it has a backslash.
func cutQuoted(v []byte) (value, rest []byte) {
	n := bytes.IndexAny(v, `"\`)
	if n < 0 {
		return v, nil
	}
	if v[n] == '"' {
		return v[:n], v[n+1:]
	}
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			return value, v[i+1:]
		case '\\':
			if i+1 < len(v) {
				i++
			}
		}
		value = append(value, v[i])
	}
	return value, nil
}

// continued reads a parameter that is cut into pieces (RFC 2231).
func continued(v []byte, name string) []byte {
	_, parameters, err := mime.ParseMediaType(string(appendUnfolded(nil, v)))
	if err != nil {
		return nil
	}
	return []byte(parameters[name])
}

// readHead writes Message.Head and takes the Subject out of it.
func (s *scanner) readHead(m *Message) {
	e := &s.entities[0]
	head := make([]byte, 0, min(s.from.len()+e.header.len(), MaxHead)+64)
	if s.from.len() > 0 {
		head = appendUTF8(head, bytes.TrimRight(s.raw[:min(s.from.end, MaxHead)], "\r\n"))
		head = append(head, '\n')
	}
	seen := false
	for _, f := range s.fields[e.fields.start:e.fields.end] {
		if len(head) > MaxHead {
			break
		}
		value := s.raw[f.colon+1 : min(f.end, f.colon+1+MaxHead)]
		if f.colon < 0 {
			value = s.raw[f.start:min(f.end, f.start+MaxHead)]
			s.scratch = appendUnfolded(s.scratch[:0], value)
			head = append(appendUTF8(head, s.scratch), '\n')
			continue
		}
		name := s.name(f)
		if equalFold(name, "x-hamlet-bytes") {
			continue
		}
		n := len(head)
		head = append(head, name...)
		lower(head[n:])
		subject := string(head[n:]) == "subject"
		decode := subject || string(head[n:]) == "from"
		head = append(head, ": "...)
		n = len(head)
		s.scratch = appendUnfolded(s.scratch[:0], value)
		if decode {
			head = appendDecoded(head, s.scratch)
		} else {
			head = appendUTF8(head, s.scratch)
		}
		if subject && !seen {
			seen = true
			m.Subject = append(m.Subject, clip(head[n:], MaxHead)...)
		}
		head = append(head, '\n')
	}
	m.Head = clip(head, MaxHead)
}

// appendUnfolded appends the lines of v, trimmed, with one space between them.
func appendUnfolded(dst, v []byte) []byte {
	n := len(dst)
	for len(v) > 0 {
		var line []byte
		line, v, _ = bytes.Cut(v, []byte("\n"))
		if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
			continue
		}
		if len(dst) > n {
			dst = append(dst, ' ')
		}
		dst = append(dst, line...)
	}
	return dst
}

// equalFold compares b with ASCII in lower case.
func equalFold(b []byte, lowerCase string) bool {
	return len(b) == len(lowerCase) && hasPrefixFold(b, lowerCase)
}

func hasPrefixFold(b []byte, lowerCase string) bool {
	if len(b) < len(lowerCase) {
		return false
	}
	for i := range len(lowerCase) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lowerCase[i] {
			return false
		}
	}
	return true
}
