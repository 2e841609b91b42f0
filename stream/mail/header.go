package mail

import (
	"bytes"
	"mime"
	"strconv"
	"strings"
)

// A field is a header field with its folded lines, or a stray line: a line within a
// header that is not a field.
type field struct {
	start, colon, end int // in scanner.raw; the colon of a stray line is −1
	known             knownField
}

// A knownField says how to read a body or the header, a mail program shows it, or it names
// the message. The first one in a header counts, wherever it stands.
type knownField uint8

const (
	otherField knownField = iota
	contentTypeField
	encodingField
	dispositionField
	bytesField   // in which Reduce records the length of a body that it cut
	subjectField // this one and those that follow count in the message's own header only
	fromField
	messageIDField
	ownField    // says that we have scored the message
	tagField    // says what we have put before the subject
	knownFields // how many there are
)

const bytesName = "X-Hamlet-Bytes"

// knownNames are the names in lower case.
var knownNames = [knownFields]string{
	contentTypeField: "content-type",
	encodingField:    "content-transfer-encoding",
	dispositionField: "content-disposition",
	bytesField:       "x-hamlet-bytes",
	subjectField:     "subject",
	fromField:        "from",
	messageIDField:   "message-id",
	ownField:         ownName,
	tagField:         "x-hamlet-tag",
}

func knownFieldOf(name []byte) knownField {
	for k := contentTypeField; k < knownFields; k++ {
		if equalFold(name, knownNames[k]) {
			return k
		}
	}
	return otherField
}

// A structure is what a header says of its body.
type structure struct {
	values   [knownFields][]byte
	missing  bool // there is no field at all
	unended  bool // a line that is no field ends it, not an empty line
	overflow bool // the message has more than MaxFields
}

// knownField returns the known field that f is, if f is the first of its name.
func (s *scanner) knownField(seen *[knownFields]bool, f field) knownField {
	if f.colon < 0 || f.colon-f.start > maxName {
		return otherField
	}
	k := knownFieldOf(s.name(f))
	if top := len(s.entities) == 1; seen[k] || !top && k >= subjectField {
		return otherField
	}
	seen[k] = k != otherField
	return k
}

// scanHeader reads the fields at pos up to the empty line, a boundary or the first line
// that cannot belong to a header. A stray line before a field belongs to the header.
// Beyond MaxFields only known fields are recorded.
func (s *scanner) scanHeader(e *entity, pos int) structure {
	var h structure
	var seen [knownFields]bool
	first := len(s.fields)
	begun := false // a field has
	p, body := pos, len(s.raw)
	for p < len(s.raw) {
		cut := firstField(s.raw[p:])
		end := p + len(cut.Bytes)
		if isEmptyLine(cut.Bytes) {
			body = end
			break
		}
		if s.atBoundary(p) {
			body = p
			break
		}
		if cut.Colon < 0 && (!begun || !fieldFollows(s.raw, end)) {
			h.unended = begun
			body = p
			break
		}
		f := field{start: p, colon: p + cut.Colon, end: end}
		if cut.Colon < 0 {
			f.colon = -1
			s.fail("header line that is not a field")
		}
		f.known = s.knownField(&seen, f)
		if f.known != otherField || len(s.fields) < MaxFields {
			s.fields = append(s.fields, f)
		} else {
			h.overflow = true
		}
		begun, p = true, end
	}
	e.header, e.fields, e.body = span{pos, p}, span{first, len(s.fields)}, span{body, body}
	h.missing = !begun
	for _, f := range s.fields[first:] {
		if f.known != otherField {
			h.values[f.known] = bytes.TrimSpace(s.raw[f.colon+1 : f.end])
		}
	}
	return h
}

// fieldFollows reports whether a field begins at p. A possible boundary does not
// count: the multipart's is unknown before its header has ended.
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

func (s *scanner) name(f field) []byte {
	return bytes.TrimRight(s.raw[f.start:f.colon], " \t")
}

// classify sets e's kind from its header. An entity without a usable Content-Type is
// text; in a digest it is a message (RFC 2046, section 5.1.5).
func (h *structure) classify(e *entity, inDigest bool) (boundary []byte, digest bool) {
	e.encoding = parseEncoding(h.values[encodingField])
	e.declared = e.encoding
	e.attachment = hasPrefixFold(h.values[dispositionField], "attachment")
	if v := h.values[bytesField]; len(v) <= len("26214400") {
		if n, err := strconv.ParseUint(string(v), 10, 32); err == nil && n <= MaxSize {
			e.uncutBytes = int(n)
		}
	}
	contentType := h.values[contentTypeField]
	var rest []byte
	e.mediaType, rest = cutMediaType(contentType)
	t := e.mediaType
	switch {
	case len(t) == 0 && inDigest, hasPrefixFold(t, "message/rfc822"), hasPrefixFold(t, "message/global"):
		e.kind = messagePart
		if e.encoding != identity { // RFC 2046 forbids it, and only decoding would reach the text
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
			boundary = bytes.TrimRight(removeLineEnds(value), " \t\r")
		case equalFold(name, "charset") && e.charset == nil:
			e.charset = removeLineEnds(value)
		}
	}
	if e.kind == multiPart && len(boundary) == 0 && bytes.IndexByte(contentType, '*') >= 0 {
		boundary = bytes.TrimRight(continuedParameter(contentType, "boundary"), " \t\r")
	}
	if len(boundary) > maxBoundary || bytes.IndexByte(boundary, '\n') >= 0 {
		boundary = nil
	}
	e.boundary = boundary
	return boundary, equalFold(t, "multipart/digest")
}

// maxMediaType bounds a media type: RFC 6838 allows 127 + 1 + 127 characters.
const maxMediaType = 255

// removeLineEnds unfolds a quoted value (RFC 5322, section 2.2.3).
func removeLineEnds(v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 {
		return v
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(v, []byte("\r\n"), nil), []byte("\n"), nil)
}

// cutMediaType splits a Content-Type into media type and parameters. Without the form
// type/subtype the media type is empty, which means text (RFC 2045, section 5.2).
func cutMediaType(v []byte) (mediaType, parameters []byte) {
	n := indexAny(v, "; \t\r\n(")
	mediaType, parameters = v[:min(n, maxMediaType)], v[n:]
	if i := bytes.IndexByte(mediaType, '/'); i <= 0 || i == len(mediaType)-1 {
		mediaType = nil
	}
	return mediaType, parameters
}

// nextParameter cuts the next "name=value" off v, with or without quotes and
// semicolons. It skips what is not a parameter and returns an empty name. The rest is
// always shorter than v.
func nextParameter(v []byte) (name, value, rest []byte) {
	v = bytes.TrimLeft(v, "; \t\r\n")
	n := indexAny(v, "=; \t\r\n")
	name, rest = v[:n], bytes.TrimLeft(v[n:], " \t\r\n")
	if len(rest) == 0 || rest[0] != '=' {
		return nil, nil, rest
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	if len(rest) > 0 && rest[0] == '"' {
		value, rest = cutQuoted(rest[1:])
		return name, value, rest
	}
	n = indexAny(rest, "; \t\r\n")
	return name, rest[:n], rest[n:]
}

// indexAny is bytes.IndexAny, but len(v) if none of the characters is in v.
func indexAny(v []byte, chars string) int {
	if n := bytes.IndexAny(v, chars); n >= 0 {
		return n
	}
	return len(v)
}

// cutQuoted reads a quoted string after its opening quote.
func cutQuoted(v []byte) (value, rest []byte) {
	n := indexAny(v, `"\`)
	if n == len(v) {
		return v, nil
	}
	if v[n] == '"' {
		return v[:n], v[n+1:]
	}
	for i := 0; i < len(v); i++ {
		if v[i] == '"' {
			return value, v[i+1:]
		}
		if v[i] == '\\' && i+1 < len(v) {
			i++
		}
		value = append(value, v[i])
	}
	return value, nil
}

// continuedParameter reads a parameter that is cut into pieces (RFC 2231), from the
// first MaxHead bytes: mime's map of pieces takes many times their size.
func continuedParameter(v []byte, name string) []byte {
	v = v[:min(len(v), MaxHead)]
	_, parameters, err := mime.ParseMediaType(string(appendUnfolded(nil, v)))
	if err != nil {
		return nil
	}
	return []byte(parameters[name])
}

// maxFrom bounds what is read of the mbox "From " line, as RFC 5322 bounds lines.
const maxFrom = 998

// fromLine returns the mbox "From " line without its line end, cut at maxFrom.
func (s *scanner) fromLine() []byte {
	return bytes.TrimRight(s.raw[:min(s.from.end, maxFrom)], "\r\n")
}

// readHead sets Head, Subject and MessageID of a Message from the header as Reduce writes
// it.
func (s *scanner) readHead(m *Message) {
	e := &s.entities[0]
	head := make([]byte, 0, min(s.from.len()+e.header.len(), MaxHead)+64)
	if s.from.len() > 0 {
		head = append(appendUTF8(head, s.fromLine()), '\n')
	}
	tag := s.tag()
	_, scored := s.topValue(ownField)
	for f := range s.reducedFields(e, MaxHead) {
		if f.colon >= 0 && isOwn(bytes.TrimRight(f.text[:f.colon], " \t"), scored) {
			continue
		}
		n := len(head)
		s.scratch = appendUnfolded(s.scratch[:0], f.text[f.colon+1:])
		if f.colon < 0 {
			head = append(appendUTF8(head, s.scratch), '\n')
			continue
		}
		head = append(head, bytes.TrimRight(f.text[:f.colon], " \t")...)
		lower(head[n:])
		decode := string(head[n:]) == "subject" || string(head[n:]) == "from"
		head = append(head, ": "...)
		n = len(head)
		switch {
		case f.known == subjectField:
			value, tagged := cutTag(s.scratch, tag)
			head = appendDecoded(head, value)
			if !tagged { // a hop may have encoded the tag with the rest
				value, _ = cutTag(head[n:], tag)
				head = append(head[:n], value...)
			}
		case decode:
			head = appendDecoded(head, s.scratch)
		default:
			head = appendUTF8(head, s.scratch)
		}
		switch f.known {
		case subjectField:
			head = head[:n+len(truncate(head[n:], maxSubject))]
			m.Subject = append(m.Subject, head[n:]...)
		case fromField:
			head = head[:n+len(truncate(head[n:], maxSender))]
		case messageIDField:
			m.MessageID = append(m.MessageID, truncate(head[n:], maxMessageID)...)
		}
		head = append(head, '\n')
	}
	m.Head = truncate(head, MaxHead)
}

// equalFold compares b with an ASCII string. As the lengths must be equal, only ASCII
// matches.
func equalFold(b []byte, ascii string) bool {
	return len(b) == len(ascii) && strings.EqualFold(string(b), ascii)
}

func hasPrefixFold(b []byte, ascii string) bool {
	return len(b) >= len(ascii) && equalFold(b[:len(ascii)], ascii)
}
