package mail

import (
	"bytes"
	"encoding/base64"
	"iter"
	"slices"
	"strconv"
)

// Bounds of the known fields, in bytes. Together they leave room in MaxHead for other
// fields.
const (
	maxStructural = 4 << 10 // of a field that says how to read a body
	maxSubject    = 8 << 10 // of the decoded Subject: as much as the expert T reads
	maxSender     = 4 << 10 // of the decoded From
	maxMessageID  = 998     // of a Message-ID: as much as a line has (RFC 5322, section 2.1.1)

	// bytesRoom is left free, so that adding a bytesField changes nothing else.
	bytesRoom = len(bytesName) + len(": 26214400\r\n")
)

// A reducedField is a field or a stray line as Reduce writes it, perhaps without its
// line end.
type reducedField struct {
	text           []byte
	nameEnd, colon int // in text; −1 is the colon of a stray line
	named, known   knownField
}

// name returns the name of a field that is no stray line.
func (f *reducedField) name() []byte { return f.text[:f.nameEnd] }

// reducedFields yields, in order, what Reduce keeps of a header in about limit bytes:
// every known field within its own bound, and others from the start while there is
// room. It leaves bytesFields out. Parse reads through it too, and it keeps all of a
// reduced header, so both see the same.
func (s *scanner) reducedFields(e *entity, limit int) iter.Seq[reducedField] {
	return func(yield func(reducedField) bool) {
		fields := s.fields[e.fields.start:e.fields.end]
		var shortened [knownFields][]byte
		room := limit - bytesRoom
		begun := false
		for i := range fields {
			f := &fields[i]
			if f.known == otherField || f.known == bytesField {
				continue
			}
			text := s.raw[f.start:f.end]
			if len(text) > knownLimit(f.known, limit) {
				text = s.shorten(e, f)
				shortened[f.known] = text
			}
			room -= lengthWithEnd(text)
		}
		for i := range fields {
			f := &fields[i]
			text := s.raw[f.start:f.end]
			switch {
			case f.known == bytesField:
				continue
			case f.known != otherField:
				begun = true
				r := reducedField{text, f.nameEnd - f.start, f.colon - f.start, f.named, f.known}
				if short := shortened[f.known]; short != nil {
					r.text = short
					r.nameEnd, r.colon = fieldName(short)
				}
				if !yield(r) {
					return
				}
				continue
			case room <= 0, f.named == bytesField:
				continue
			}
			need := lengthWithEnd(text)
			if f.colon < 0 {
				// Without a field before and after it, a stray line would end the header.
				if !begun || i+1 == len(fields) || fields[i+1].start != f.end || fields[i+1].known == bytesField {
					continue
				}
				if next := &fields[i+1]; next.known == otherField {
					if next.named == bytesField {
						continue
					}
					need += lengthWithEnd(s.raw[next.start:next.end])
				}
				if need > room {
					room = 0
					continue
				}
				room -= lengthWithEnd(text)
				if !yield(reducedField{text: text, colon: -1}) {
					return
				}
				continue
			}
			if need > room {
				text = cutField(text, room-len("\r\n"))
				need = room
			}
			room -= need
			if len(text) == 0 {
				continue
			}
			begun = true
			if !yield(reducedField{text, f.nameEnd - f.start, f.colon - f.start, f.named, otherField}) {
				return
			}
		}
	}
}

// lengthWithEnd returns how many bytes text takes with a line end.
func lengthWithEnd(text []byte) int {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return len(text) + len("\r\n")
	}
	return len(text)
}

// cutField returns the start of a field in at most n bytes, or nothing if that would
// not be a field but a boundary or the header's end.
func cutField(text []byte, n int) []byte {
	if n <= 0 || text[0] == '-' || text[0] == '\r' {
		return nil
	}
	if text = cutLines(text, n); fieldColon(text) < 0 {
		return nil
	}
	return text
}

// knownLimit bounds a known field, in a header of about limit bytes.
func knownLimit(k knownField, limit int) int {
	switch k {
	case subjectField:
		return maxSubject
	case fromField:
		return maxSender
	case messageIDField:
		return len("Message-ID: ") + maxMessageID
	}
	return min(maxStructural, limit/4)
}

// shorten returns, for a known field that is too long, a new one with the same meaning.
func (s *scanner) shorten(e *entity, f *field) []byte {
	value := s.raw[f.colon+1 : f.end]
	switch f.known {
	case contentTypeField:
		return e.contentType()
	case encodingField:
		return []byte("Content-Transfer-Encoding: " + e.declared.name())
	case dispositionField:
		if e.attachment {
			return []byte("Content-Disposition: attachment")
		}
		return []byte("Content-Disposition: inline")
	case subjectField:
		return encodedField("Subject:", s.tag(), value, maxSubject)
	case fromField:
		return encodedField("From:", nil, value, maxSender)
	case messageIDField:
		return append([]byte("Message-ID: "), truncate(appendUnfolded(nil, value), maxMessageID)...)
	case ownField:
		return []byte("X-Hamlet:")
	case tagField:
		return append([]byte("X-Hamlet-Tag: "), s.tag()...)
	}
	panic("mail: a known field without a short form")
}

// contentType returns a Content-Type for e with boundary and charset only.
func (e *entity) contentType() []byte {
	out := append([]byte("Content-Type: "), e.mediaType...)
	out = appendParameter(out, "boundary", e.boundary)
	if len(e.charset) <= maxCharset {
		out = appendParameter(out, "charset", e.charset)
	}
	return out
}

func appendParameter(dst []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	dst = append(append(append(dst, "; "...), name...), '=', '"')
	for _, c := range value {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// encodedField returns a field with the first limit bytes of the decoded value as
// encoded words. A tag before it stays in clear, and does not count.
func encodedField(name string, tag, value []byte, limit int) []byte {
	value, tagged := cutTag(appendUnfolded(nil, value), tag)
	value = truncate(appendDecoded(nil, value[:min(len(value), MaxHead)]), limit)
	const piece = 45 // makes words of 72 characters; RFC 2047 allows 75
	out := []byte(name)
	if tagged {
		out = append(append(out, ' '), tag...)
	}
	for part := range slices.Chunk(value, piece) {
		out = append(out, "\n =?utf-8?b?"...)
		out = base64.StdEncoding.AppendEncode(out, part)
		out = append(out, "?="...)
	}
	return out
}

// appendHeader appends what Reduce keeps of e's header, and a bytesField if
// uncutBytes is not 0.
func (s *scanner) appendHeader(dst []byte, e *entity, limit, uncutBytes int) []byte {
	newline := "\n"
	if h := s.raw[e.header.start:e.header.end]; bytes.HasSuffix(h, []byte("\r\n")) {
		newline = "\r\n"
	}
	for f := range s.reducedFields(e, limit) {
		dst = append(dst, f.text...)
		if dst[len(dst)-1] != '\n' {
			dst = append(dst, newline...)
		}
	}
	if uncutBytes > 0 {
		dst = appendBytesField(dst, uncutBytes, newline)
	}
	return dst
}

func appendBytesField(dst []byte, n int, newline string) []byte {
	dst = strconv.AppendInt(append(dst, bytesName+": "...), int64(n), 10)
	return append(dst, newline...)
}
