package mail

import (
	"bytes"
	"encoding/base64"
	"iter"
)

// Bounds of the fields that take a slot, in bytes. They are kept wherever they
// stand, so together they must leave room in MaxHead for what H reads.
const (
	maxStructural = 4 << 10 // of one that says how a body is to be read
	maxSubject    = 8 << 10 // of the decoded Subject: as much as T reads
	maxSender     = 4 << 10 // of the decoded From

	// recordRoom is set aside in every header, so that a record changes
	// nothing else in it.
	recordRoom = len(recordField) + len(": 26214400\r\n")
)

// A line is a field, or a line that is none, as it is kept; its line end may be
// missing. The colon is −1 for one that is no field.
type line struct {
	text  []byte
	colon int
	slot  slot
}

// kept yields, in order, what is kept of the header of e in limit bytes and
// some: the fields that take a slot wherever they stand, each in bounds of its
// own, and others from the beginning for as long as there is room; the first
// for which there is none is cut. Records are left out.
//
// Parse reads from the message's header what kept yields, and Reduce writes it:
// of what was kept everything is kept again, so both see the same.
func (s *scanner) kept(e *entity, limit int) iter.Seq[line] {
	return func(yield func(line) bool) {
		fields := s.fields[e.fields.start:e.fields.end]
		var forms [slots][]byte
		room := limit - recordRoom
		begun := false
		for _, f := range fields {
			if f.slot != noSlot && f.slot != recordSlot {
				forms[f.slot] = s.form(e, f, limit)
				room -= written(forms[f.slot])
			}
		}
		for i := 0; i < len(fields); i++ {
			f := fields[i]
			text := s.raw[f.start:f.end]
			switch {
			case f.slot == recordSlot:
				continue
			case f.slot != noSlot:
				l := line{text: forms[f.slot], slot: f.slot}
				l.colon = fieldColon(l.text)
				if begun = true; !yield(l) {
					return
				}
				continue
			case room <= 0, f.colon >= 0 && equalFold(s.name(f), "x-hamlet-bytes"):
				continue
			}
			need := written(text)
			if f.colon < 0 {
				// Without a field before and after it, it would end the header.
				if !begun || i+1 == len(fields) || fields[i+1].start != f.end || fields[i+1].slot == recordSlot {
					continue
				}
				if next := fields[i+1]; next.slot == noSlot {
					if equalFold(s.name(next), "x-hamlet-bytes") {
						continue
					}
					need += written(s.raw[next.start:next.end])
				}
				if need > room {
					room = 0
					continue
				}
				room -= written(text)
				if !yield(line{text: text, colon: -1}) {
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
			if begun = true; !yield(line{text: text, colon: f.colon - f.start}) {
				return
			}
		}
	}
}

// written is how many bytes text takes with a line end.
func written(text []byte) int {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return len(text) + len("\r\n")
	}
	return len(text)
}

// cutField returns the beginning of a field in at most n bytes, or nothing if
// that were no field: the cut may fall within the name, or leave what reads as
// a boundary or as the header's end.
func cutField(text []byte, n int) []byte {
	if n <= 0 || text[0] == '-' || text[0] == '\r' {
		return nil
	}
	if text = cutLines(text, n); fieldColon(text) < 0 {
		return nil
	}
	return text
}

// form returns the field f, which takes a slot, in bounds: as it is where that
// is short enough, and else a short one that says the same.
func (s *scanner) form(e *entity, f field, limit int) []byte {
	text := s.raw[f.start:f.end]
	most := min(maxStructural, limit/4)
	switch f.slot {
	case subjectSlot:
		most = maxSubject
	case fromSlot:
		most = maxSender
	}
	if len(text) <= most {
		return text
	}
	switch f.slot {
	case typeSlot:
		return e.contentType()
	case encodingSlot:
		return []byte("Content-Transfer-Encoding: " + e.promised.name())
	case dispositionSlot:
		if e.attachment {
			return []byte("Content-Disposition: attachment")
		}
		return []byte("Content-Disposition: inline")
	case subjectSlot:
		return s.encoded("Subject:", text[f.colon+1-f.start:], maxSubject)
	case fromSlot:
		return s.encoded("From:", text[f.colon+1-f.start:], maxSender)
	}
	return text
}

// contentType writes the Content-Type of e anew, with the parameters that say
// how its body is to be read.
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

// encoded writes a field anew: the first most bytes of its decoded value as
// encoded words, which decode to the same.
func (s *scanner) encoded(name string, value []byte, most int) []byte {
	value = appendUnfolded(nil, value)
	value = clip(appendDecoded(nil, value[:min(len(value), MaxHead)]), most)
	const piece = 45 // makes words of 72 characters; RFC 2047 allows 75
	out := []byte(name)
	for len(value) > 0 {
		n := min(piece, len(value))
		out = append(out, "\n =?utf-8?b?"...)
		out = base64.StdEncoding.AppendEncode(out, value[:n])
		out = append(out, "?="...)
		value = value[n:]
	}
	return out
}

// header writes what is kept of the header of e. A record above 0 becomes the
// last field.
func (s *scanner) header(dst []byte, e *entity, limit, record int) []byte {
	newline := "\n"
	if h := s.raw[e.header.start:e.header.end]; bytes.HasSuffix(h, []byte("\r\n")) {
		newline = "\r\n"
	}
	for l := range s.kept(e, limit) {
		dst = append(dst, l.text...)
		if dst[len(dst)-1] != '\n' {
			dst = append(dst, newline...)
		}
	}
	if record > 0 {
		dst = appendRecord(dst, record, newline)
	}
	return dst
}
