package mail

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"
)

// The expert T reads the first 8,000 bytes of Message.Text. They must not depend on
// where Reduce cuts, or padding could hide words from it.
const (
	openingBytes = 8 << 10  // of Message.Text, kept in any case
	longerBytes  = 16 << 10 // of a body, tried before a new one is written
	nearLimit    = 64 << 10 // more than bytesFields can add to a message
	lineLength   = 76       // RFC 2045, section 6.8
	hexDigits    = "0123456789ABCDEF"
)

// An opening is what a text part adds to the first openingBytes of Message.Text.
type opening struct {
	text  []byte
	whole bool // the part has no other text
}

// openings returns the openings of the first entities, or none if nothing is cut.
func (s *scanner) openings() []opening {
	cut := len(s.raw) > MaxReduced-nearLimit
	for i := range s.entities {
		e := &s.entities[i]
		cut = cut || e.kind == textPart && e.body.len() > MaxText
	}
	if !cut {
		return nil
	}
	var openings []opening
	s.lenientBytes = 0
	for i, room := 0, openingBytes; i < len(s.entities) && room > 0; i++ {
		e := &s.entities[i]
		if e.kind != textPart {
			openings = append(openings, opening{})
			continue
		}
		text := s.appendText(nil, e, s.bytes(e.body))
		o := opening{bytes.Clone(truncate(text, room)), len(text) <= room}
		if room -= len(o.text); !o.whole {
			room = 0
			o.text = bytes.TrimRight(o.text, " ") // stripHTML appends no blank at the end
		}
		openings = append(openings, o)
	}
	return openings
}

// reduceText returns a body of about limit bytes whose text starts with the opening:
// the cut old body or a new one. If neither starts so, it returns the cut body.
func (s *scanner) reduceText(e *entity, limit int, want opening) []byte {
	body := s.bytes(e.body)
	lenientBytes := s.lenientBytes
	opens := func(b []byte) bool {
		s.lenientBytes = lenientBytes
		text := s.appendText(nil, e, b)
		return bytes.Equal(text, want.text) || !want.whole && bytes.HasPrefix(text, want.text)
	}
	cut := cutLines(body, limit)
	if opens(cut) {
		return cut
	}
	if longer := cutLines(body, max(limit, longerBytes)); len(longer) > len(cut) && opens(longer) {
		return longer
	}
	s.lenientBytes = lenientBytes
	for short := range s.newBodies(e, body, want) {
		if len(short) < len(body) && len(short) <= MaxText && opens(short) {
			return short
		}
	}
	if len(body) <= MaxText && opens(body) {
		return body
	}
	opens(cut) // sets lenientBytes for the cut body
	return cut
}

// newBodies yields bodies that may start with the opening, in the part's declared
// encoding and charset.
func (s *scanner) newBodies(e *entity, body []byte, want opening) iter.Seq[[]byte] {
	lenientBytes := s.lenientBytes
	return func(yield func([]byte) bool) {
		if e.html && !(yield(e.encoding.append(nil, escapeHTML(want.text, false))) &&
			yield(e.encoding.append(nil, escapeHTML(want.text, true)))) {
			return
		}
		if e.encoding != identity {
			s.lenientBytes = lenientBytes
			text := s.decodeTransfer(e.encoding, body)
			yield(e.encoding.append(nil, text[:min(len(text), longerBytes)]))
		}
	}
}

// escapeHTML returns HTML for folded text, of letters, digits, references and line
// ends. References to U+0080 to U+009F mean characters of windows-1252, so these are
// written in UTF-8 or, if single is set, as single bytes of ISO 8859.
func escapeHTML(text []byte, single bool) []byte {
	var out []byte
	line := 0
	for _, r := range string(text) {
		switch {
		case r == ' ' && len(out)-line >= lineLength:
			out = append(out, '\n')
			line = len(out)
		case r < utf8.RuneSelf && isAlphanumeric(byte(r)), r == 0, r == ' ':
			out = append(out, byte(r))
		case 0x80 <= r && r < 0xA0 && single:
			out = append(out, byte(r))
		case 0x80 <= r && r < 0xA0:
			out = utf8.AppendRune(out, r)
		default:
			out = fmt.Appendf(out, "&#%d;", r)
		}
	}
	return out
}

// append appends b in the transfer encoding.
func (enc encoding) append(dst, b []byte) []byte {
	switch enc {
	case base64Encoding:
		const piece = lineLength / 4 * 3
		for line := range slices.Chunk(b, piece) {
			dst = append(base64.StdEncoding.AppendEncode(dst, line), '\n')
		}
		return bytes.TrimSuffix(dst, []byte("\n"))
	case quotedPrintable:
		line := len(dst)
		for _, c := range b {
			if len(dst)-line >= lineLength-len("=3D=") {
				dst = append(dst, "=\n"...)
				line = len(dst)
			}
			if isAlphanumeric(c) || c == '&' || c == '#' || c == ';' {
				dst = append(dst, c)
			} else {
				dst = append(dst, '=', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		return dst
	}
	return append(dst, b...)
}

// summary replaces a message whose structure alone exceeds MaxReduced. It has the
// reduced header, empty parts up to the counts that the model reads, and the start of
// the text.
func (s *scanner) summary(raw []byte) []byte {
	m := Parse(raw)
	s.scan(raw)
	e := &s.entities[0]
	var out []byte
	if s.from.len() > 0 {
		out = append(append(out, s.fromLine()...), '\n')
	}
	out = append(s.appendHeader(out, e, MaxHead, 0), '\n')
	boundary := e.boundary
	if e.kind != multiPart {
		boundary = []byte("hamlet")
		inner := entity{mediaType: []byte("multipart/mixed"), boundary: boundary}
		out = append(append(out, inner.contentType()...), "\n\n"...)
	}
	part := func(header string) {
		out = fmt.Appendf(out, "--%s\n%s", boundary, header)
	}
	const counted = 3 // the model's inputs count no further
	attachments := min(m.Attachments, counted)
	for range attachments {
		part("Content-Type: text/plain\nContent-Disposition: attachment\n\n\n")
	}
	for range min(m.Parts, counted) - attachments - 2 {
		part("Content-Type: text/plain\n\n\n")
	}
	if m.HTML {
		part("Content-Type: text/html\n\n\n")
	}
	part("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n")
	out = append(appendBytesField(out, m.BodyBytes, "\n"), '\n')
	out = base64Encoding.append(out, truncate(m.Text, MaxText/2))
	return fmt.Appendf(out, "\n--%s--\n", boundary)
}
