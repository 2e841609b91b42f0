package mail

import (
	"bytes"
	"mime"
	"strconv"
)

// A field is a header field with its folded lines, or a stray line: a line within a
// header that is not a field.
type field struct {
	start, nameEnd, colon, end int        // in scanner.raw; the colon of a stray line is −1
	named                      knownField // by its name
	known                      knownField // named, of the first field of that name
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

// knownLengths are the known fields by the lengths of their names.
var knownLengths = func() (t [len("content-transfer-encoding") + 1][]knownField) {
	for k := contentTypeField; k < knownFields; k++ {
		t[len(knownNames[k])] = append(t[len(knownNames[k])], k)
	}
	return t
}()

func knownFieldOf(name []byte) knownField {
	if len(name) < len(knownLengths) {
		for _, k := range knownLengths[len(name)] {
			if equalFold(name, knownNames[k]) {
				return k
			}
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
	k := f.named
	if top := len(s.entities) == 1; seen[k] || f.colon-f.start > maxName || !top && k >= subjectField {
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
		if n := emptyLine(s.raw[p:]); n > 0 {
			body = p + n
			break
		}
		if s.atBoundary(p) {
			body = p
			break
		}
		f := field{start: p, colon: -1}
		if nameEnd, colon := fieldName(s.raw[p:]); colon >= 0 {
			f.nameEnd, f.colon = p+nameEnd, p+colon
			f.named = knownFieldOf(s.name(f))
			f.known = s.knownField(&seen, f)
		}
		f.end = fieldEnd(s.raw, p, f.colon)
		if f.colon < 0 {
			if !begun || !fieldFollows(s.raw, f.end) {
				h.unended = begun
				body = p
				break
			}
			s.fail("header line that is not a field")
		}
		if f.known != otherField || len(s.fields) < MaxFields {
			s.fields = append(s.fields, f)
		} else {
			h.overflow = true
		}
		begun, p = true, f.end
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
	return p < len(raw) && raw[p] != '-' && fieldColon(raw[p:]) >= 0
}

// atBoundary reports whether the line at p is a boundary of an open multipart.
func (s *scanner) atBoundary(p int) bool {
	if len(s.open) == 0 || !bytes.HasPrefix(s.raw[p:], []byte("--")) {
		return false
	}
	_, _, ok := s.matchBoundary(p)
	return ok
}

// name returns the name of a field that is no stray line.
func (s *scanner) name(f field) []byte { return s.raw[f.start:f.nameEnd] }

// classify sets e's kind from its header. An entity without a usable Content-Type is
// text; in a digest it is a message (RFC 2046, section 5.1.5).
func (h *structure) classify(e *entity, inDigest bool) (boundary []byte, digest bool) {
	e.encoding = parseEncoding(h.values[encodingField])
	e.declared = e.encoding
	e.attachment = hasPrefixFold(h.values[dispositionField], "attachment")
	if v := h.values[bytesField]; len(v) > 0 && len(v) <= len("26214400") {
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
	n := indexClass(v, endsType)
	mediaType, parameters = v[:min(n, maxMediaType)], v[n:]
	if i := bytes.IndexByte(mediaType, '/'); i <= 0 || i == len(mediaType)-1 {
		mediaType = nil
	}
	return mediaType, parameters
}

// Classes of characters in a Content-Type.
const (
	blankOrEnd    = 1 << iota // white space
	endsType                  // of the media type
	endsParameter             // the name of a parameter
	endsToken                 // a value without quotes
	separates                 // white space and semicolons
)

var parameterClass = [256]uint8{
	' ':  blankOrEnd | endsType | endsParameter | endsToken | separates,
	'\t': blankOrEnd | endsType | endsParameter | endsToken | separates,
	'\r': blankOrEnd | endsType | endsParameter | endsToken | separates,
	'\n': blankOrEnd | endsType | endsParameter | endsToken | separates,
	';':  endsType | endsParameter | endsToken | separates,
	'(':  endsType,
	'=':  endsParameter,
}

// indexClass returns the position of the first character of v that is of the class, or len(v).
func indexClass(v []byte, class uint8) int {
	for i, c := range v {
		if parameterClass[c]&class != 0 {
			return i
		}
	}
	return len(v)
}

// trimClass returns v without the characters of the class at its start.
func trimClass(v []byte, class uint8) []byte {
	for len(v) > 0 && parameterClass[v[0]]&class != 0 {
		v = v[1:]
	}
	return v
}

// nextParameter cuts the next "name=value" off v, with or without quotes and
// semicolons. It skips what is not a parameter and returns an empty name. The rest is
// always shorter than v.
func nextParameter(v []byte) (name, value, rest []byte) {
	v = trimClass(v, separates)
	n := indexClass(v, endsParameter)
	name, rest = v[:n], trimClass(v[n:], blankOrEnd)
	if len(rest) == 0 || rest[0] != '=' {
		return nil, nil, rest
	}
	rest = trimClass(rest[1:], blankOrEnd)
	if len(rest) > 0 && rest[0] == '"' {
		value, rest = cutQuoted(rest[1:])
		return name, value, rest
	}
	n = indexClass(rest, endsToken)
	return name, rest[:n], rest[n:]
}

// cutQuoted reads a quoted string after its opening quote.
func cutQuoted(v []byte) (value, rest []byte) {
	n := bytes.IndexByte(v, '"')
	if n < 0 {
		n = len(v)
	}
	if bytes.IndexByte(v[:n], '\\') < 0 {
		return v[:n], v[min(n+1, len(v)):]
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
// it. If named, it sets no Head, and the others share the scanner's memory.
func (s *scanner) readHead(m *Message, named bool) {
	e := &s.entities[0]
	head := s.head[:0]
	var subject, messageID span // in head
	if s.from.len() > 0 {
		head = append(appendUTF8(head, s.fromLine()), '\n')
	}
	tag := s.tag()
	_, scored := s.topValue(ownField)
	for f := range s.reducedFields(e, MaxHead) {
		if named && f.known != subjectField && f.known != messageIDField {
			continue
		}
		if f.colon < 0 {
			head = append(appendUnfoldedUTF8(head, f.text), '\n')
			continue
		}
		name := f.name()
		if isOwn(name, scored) {
			continue
		}
		n := len(head)
		head = append(head, name...)
		lower(head[n:])
		head = append(head, ": "...)
		n = len(head)
		value := f.text[f.colon+1:]
		switch {
		case f.known == subjectField:
			s.scratch = appendUnfolded(s.scratch[:0], value)
			value, tagged := cutTag(s.scratch, tag)
			head = appendDecoded(head, value)
			if !tagged { // a hop may have encoded the tag with the rest
				value, _ = cutTag(head[n:], tag)
				head = append(head[:n], value...)
			}
		case f.named == subjectField || f.named == fromField:
			s.scratch = appendUnfolded(s.scratch[:0], value)
			head = appendDecoded(head, s.scratch)
		default:
			head = appendUnfoldedUTF8(head, value)
		}
		switch f.known {
		case subjectField:
			head = head[:n+len(truncate(head[n:], maxSubject))]
			subject = span{n, len(head)}
		case fromField:
			head = head[:n+len(truncate(head[n:], maxSender))]
		case messageIDField:
			messageID = span{n, n + len(truncate(head[n:], maxMessageID))}
		}
		head = append(head, '\n')
	}
	s.head = append(append(head, head[subject.start:subject.end]...), head[messageID.start:messageID.end]...)
	own := s.head
	if !named {
		own = append([]byte{}, s.head...)
		n := len(truncate(head, MaxHead))
		m.Head = own[:n:n]
	}
	n := len(head) + subject.len()
	m.Subject = own[len(head):n:n]
	if messageID.len() > 0 {
		m.MessageID = own[n:len(own):len(own)]
	}
}

// equalFold compares b with an ASCII string in lower case, whose capitals are equal as well.
func equalFold(b []byte, lower string) bool {
	return len(b) == len(lower) && hasPrefixFold(b, lower)
}

func hasPrefixFold(b []byte, lower string) bool {
	if len(b) < len(lower) {
		return false
	}
	for i := range len(lower) {
		if lowerCase[b[i]] != lower[i] {
			return false
		}
	}
	return true
}
