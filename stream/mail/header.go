package mail

import (
	"bytes"
	"mime"
	"strconv"
)

// A field is one header field with its folded lines, or a line within a header
// that is none; then colon is −1.
type field struct {
	start, colon, end int
	slot              slot
}

// recordField is the header field in which Reduce records how long a body was
// before it was cut or taken out.
const recordField = "X-Hamlet-Bytes"

// A slot names a field of which the first counts, wherever in its header it
// stands: those that say how a body is to be read and, in the header of the
// message itself, those that a reader is shown first.
type slot uint8

const (
	noSlot slot = iota
	typeSlot
	encodingSlot
	dispositionSlot
	recordSlot
	subjectSlot
	fromSlot
	slots // how many there are
)

// slotOf returns the slot for a field of that name.
func slotOf(name []byte) slot {
	switch len(name) {
	case len("From"):
		if equalFold(name, "from") {
			return fromSlot
		}
	case len("Subject"):
		if equalFold(name, "subject") {
			return subjectSlot
		}
	case len("Content-Type"):
		if equalFold(name, "content-type") {
			return typeSlot
		}
	case len(recordField):
		if equalFold(name, "x-hamlet-bytes") {
			return recordSlot
		}
	case len("Content-Disposition"):
		if equalFold(name, "content-disposition") {
			return dispositionSlot
		}
	case len("Content-Transfer-Encoding"):
		if equalFold(name, "content-transfer-encoding") {
			return encodingSlot
		}
	}
	return noSlot
}

// A structure is what a header says of its body: the values in their slots.
type structure struct {
	values   [slots][]byte
	missing  bool // there is no field at all
	unended  bool // no empty line ends it, but a line that is no field
	overflow bool // the message has more than MaxFields
}

// maxName bounds a name with the blanks after it, for a field to take a slot.
const maxName = 256

// claim returns the slot that f takes, if it is the first of its name.
func (s *scanner) claim(taken *[slots]bool, f field) slot {
	if f.colon < 0 || f.colon-f.start > maxName {
		return noSlot
	}
	k := slotOf(s.name(f))
	if top := len(s.entities) == 1; taken[k] || !top && k >= subjectSlot {
		return noSlot
	}
	taken[k] = k != noSlot
	return k
}

// scanHeader reads the fields at pos up to the empty line, a boundary or the
// first line that cannot belong to a header; there the body begins. A stray
// line with a field after it stays in the header. Beyond MaxFields only fields
// that take a slot are recorded.
func (s *scanner) scanHeader(e *entity, pos int) structure {
	var h structure
	var taken [slots]bool
	raw := s.raw
	first := len(s.fields)
	e.header.start, e.fields.start = pos, first
	p := pos
	bodyAt := -1
	begun, recorded := false, false // a field; the last one is in s.fields
	for p < len(raw) && bodyAt < 0 {
		switch c := raw[p]; {
		case c == '\n':
			bodyAt = p + 1
			continue
		case c == '\r' && p+1 < len(raw) && raw[p+1] == '\n':
			bodyAt = p + 2
			continue
		case s.atBoundary(p):
			bodyAt = p
			continue
		}
		end := lineEnd(raw, p)
		if folded := raw[p] == ' ' || raw[p] == '\t'; folded && begun {
			if recorded {
				s.fields[len(s.fields)-1].end = end
			}
			p = end
			continue
		}
		colon := fieldColon(raw[p:end])
		if colon < 0 && (!begun || !fieldFollows(raw, end)) {
			h.unended = begun
			bodyAt = p
			continue
		}
		f := field{start: p, colon: -1, end: end}
		if colon >= 0 {
			f.colon = p + colon
		} else {
			s.fail("header line that is not a field")
		}
		f.slot = s.claim(&taken, f)
		recorded = f.slot != noSlot || len(s.fields) < MaxFields
		if recorded {
			s.fields = append(s.fields, f)
		} else {
			h.overflow = true
		}
		begun, p = true, end
	}
	if bodyAt < 0 {
		bodyAt = len(raw)
	}
	e.header.end, e.fields.end = p, len(s.fields)
	e.body = span{bodyAt, bodyAt}
	h.missing = !begun
	for _, f := range s.fields[first:] {
		if f.slot != noSlot {
			h.values[f.slot] = bytes.TrimSpace(raw[f.colon+1 : f.end])
		}
	}
	return h
}

// fieldFollows reports whether a field begins at p. What may be a boundary is
// none here: that of a multipart is not known before its header has ended.
func fieldFollows(raw []byte, p int) bool {
	return p < len(raw) && raw[p] != '-' && fieldColon(raw[p:lineEnd(raw, p)]) >= 0
}

// atBoundary reports whether the line at p is a boundary of an open multipart.
func (s *scanner) atBoundary(p int) bool {
	if len(s.open) == 0 || !bytes.HasPrefix(s.raw[p:], []byte("--")) {
		return false
	}
	_, _, ok := s.matchBoundary(p)
	return ok
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
	e.encoding = parseEncoding(h.values[encodingSlot])
	e.promised = e.encoding
	e.attachment = hasPrefixFold(h.values[dispositionSlot], "attachment")
	if v := h.values[recordSlot]; len(v) <= len("26214400") {
		if n, err := strconv.ParseUint(string(v), 10, 32); err == nil && n <= MaxSize {
			e.recorded = int(n)
		}
	}
	contentType := h.values[typeSlot]
	var rest []byte
	e.mediaType, rest = cutMediaType(contentType)
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
			boundary = bytes.TrimRight(unfold(value), " \t\r")
		case equalFold(name, "charset") && e.charset == nil:
			e.charset = unfold(value)
		}
	}
	if e.kind == multiPart && len(boundary) == 0 && bytes.IndexByte(contentType, '*') >= 0 {
		boundary = bytes.TrimRight(continued(contentType, "boundary"), " \t\r")
	}
	if len(boundary) > maxBoundary || bytes.IndexByte(boundary, '\n') >= 0 {
		boundary = nil
	}
	e.boundary = boundary
	return boundary, equalFold(t, "multipart/digest")
}

// maxMediaType bounds a media type, twice the 127 characters that RFC 6838 allows
// to each of its halves.
const maxMediaType = 255

// unfold takes the line ends out of a quoted value; the blanks after them stay
// (RFC 5322, section 2.2.3).
func unfold(v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 {
		return v
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(v, []byte("\r\n"), nil), []byte("\n"), nil)
}

// cutMediaType returns the media type that a Content-Type begins with, or none
// if it is not of the form type/subtype (then RFC 2045, section 5.2, has text),
// and its parameters. No more than maxMediaType bytes of it count.
func cutMediaType(v []byte) (mediaType, parameters []byte) {
	n := bytes.IndexAny(v, "; \t\r\n(")
	if n < 0 {
		n = len(v)
	}
	mediaType, parameters = v[:min(n, maxMediaType)], v[n:]
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

// continued reads a parameter that is cut into pieces (RFC 2231), from the first
// MaxHead bytes of v: the library's map of pieces takes many times their size.
func continued(v []byte, name string) []byte {
	v = v[:min(len(v), MaxHead)]
	_, parameters, err := mime.ParseMediaType(string(appendUnfolded(nil, v)))
	if err != nil {
		return nil
	}
	return []byte(parameters[name])
}

// maxFrom bounds what is read of the mbox "From " line, as RFC 5322 bounds lines.
const maxFrom = 998

// fromLine returns the mbox "From " line as it is read, without its line end.
func (s *scanner) fromLine() []byte {
	return bytes.TrimRight(s.raw[:min(s.from.end, maxFrom)], "\r\n")
}

// readHead writes Message.Head and takes the Subject out of it. It sees of the
// header what Reduce keeps of it.
func (s *scanner) readHead(m *Message) {
	e := &s.entities[0]
	head := make([]byte, 0, min(s.from.len()+e.header.len(), MaxHead)+64)
	if s.from.len() > 0 {
		head = appendUTF8(head, s.fromLine())
		head = append(head, '\n')
	}
	for l := range s.kept(e, MaxHead) {
		n := len(head)
		if l.colon < 0 {
			s.scratch = appendUnfolded(s.scratch[:0], l.text)
			head = append(appendUTF8(head, s.scratch), '\n')
			continue
		}
		head = append(head, bytes.TrimRight(l.text[:l.colon], " \t")...)
		lower(head[n:])
		subject := string(head[n:]) == "subject"
		decode := subject || string(head[n:]) == "from"
		head = append(head, ": "...)
		n = len(head)
		s.scratch = appendUnfolded(s.scratch[:0], l.text[l.colon+1:])
		if decode {
			head = appendDecoded(head, s.scratch)
		} else {
			head = appendUTF8(head, s.scratch)
		}
		switch l.slot {
		case subjectSlot:
			head = head[:n+len(clip(head[n:], maxSubject))]
			m.Subject = append(m.Subject, head[n:]...)
		case fromSlot:
			head = head[:n+len(clip(head[n:], maxSender))]
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
