package mail

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"iter"
	"unicode/utf8"
)

// What T reads of a message, its first 8,000 bytes, must not hang on where a
// text is cut, or padding would hide it: comments, styles, soft line ends. So
// of a cut text the beginning that is wanted is compared with what the whole
// says, and where it says something else, it is written anew.
const (
	frontText  = 8 << 10  // of Message.Text, wanted whatever it takes
	frontBytes = 16 << 10 // of a body, tried before it is written anew
	nearLimit  = 64 << 10 // more than records may add to a message
	lineLength = 76       // RFC 2045, section 6.8
	hexDigits  = "0123456789ABCDEF"
)

// A beginning is what a text part adds to the first bytes of Message.Text.
type beginning struct {
	text  []byte
	whole bool // the part says nothing more
}

// front returns the beginnings of the first entities, up to where Message.Text
// has frontText bytes; none if the message need not be cut.
func (s *scanner) front() []beginning {
	cut := len(s.raw) > MaxReduced-nearLimit
	for i := range s.entities {
		e := &s.entities[i]
		cut = cut || e.kind == textPart && e.body.len() > MaxText
	}
	if !cut {
		return nil
	}
	var wanted []beginning
	s.mended = 0
	for i, room := 0, frontText; i < len(s.entities) && room > 0; i++ {
		e := &s.entities[i]
		if e.kind != textPart {
			wanted = append(wanted, beginning{})
			continue
		}
		text := s.appendText(nil, e, s.raw[e.body.start:e.body.end])
		b := beginning{bytes.Clone(clip(text, room)), len(text) <= room}
		if room -= len(b.text); !b.whole {
			room = 0
			b.text = bytes.TrimRight(b.text, " ") // HTML says no blank at its end
		}
		wanted = append(wanted, b)
	}
	return wanted
}

// cutText returns the body of a text part in some limit bytes that begins as it
// is wanted: cut, or if that does not do, written anew.
func (s *scanner) cutText(e *entity, limit int, want beginning) []byte {
	body := s.raw[e.body.start:e.body.end]
	mended := s.mended
	begins := func(b []byte) bool {
		s.mended = mended
		text := s.appendText(nil, e, b)
		return bytes.Equal(text, want.text) || !want.whole && bytes.HasPrefix(text, want.text)
	}
	cut := cutLines(body, limit)
	if begins(cut) {
		return cut
	}
	if longer := cutLines(body, max(limit, frontBytes)); len(longer) > len(cut) && begins(longer) {
		return longer
	}
	s.mended = mended
	for short := range s.squeezed(e, body, want) {
		if len(short) < len(body) && len(short) <= MaxText && begins(short) {
			return short
		}
	}
	if len(body) <= MaxText && begins(body) {
		return body
	}
	begins(cut) // for its count of mended bytes
	return cut
}

// squeezed yields bodies that may begin as it is wanted, in the encoding and the
// charset that the part's header promises.
func (s *scanner) squeezed(e *entity, body []byte, want beginning) iter.Seq[[]byte] {
	mended := s.mended
	return func(yield func([]byte) bool) {
		if e.html && !(yield(e.encoding.appendEncoded(nil, escapeHTML(want.text, false))) &&
			yield(e.encoding.appendEncoded(nil, escapeHTML(want.text, true)))) {
			return
		}
		if e.encoding != identity {
			s.mended = mended
			text := s.undo(e.encoding, body)
			yield(e.encoding.appendEncoded(nil, text[:min(len(text), frontBytes)]))
		}
	}
}

// escapeHTML writes text, in which white space is folded, as HTML that says it
// and has nothing but letters, digits, references and line ends. It is ASCII
// but for U+0080 to U+009F: their references mean characters of windows-1252,
// so they are written in UTF-8 or, as ISO 8859 has them, as single bytes.
func escapeHTML(text []byte, single bool) []byte {
	var out []byte
	line := 0
	for _, r := range string(text) {
		switch {
		case r < utf8.RuneSelf && (isLetter(byte(r)) || '0' <= r && r <= '9'), r == 0:
			out = append(out, byte(r))
		case r == ' ' && len(out)-line >= lineLength:
			out = append(out, '\n')
			line = len(out)
		case r == ' ':
			out = append(out, ' ')
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

// appendEncoded puts a transfer encoding on.
func (enc encoding) appendEncoded(dst, b []byte) []byte {
	switch enc {
	case base64Encoding:
		const piece = lineLength / 4 * 3
		for len(b) > 0 {
			n := min(piece, len(b))
			dst = base64.StdEncoding.AppendEncode(dst, b[:n])
			dst = append(dst, '\n')
			b = b[n:]
		}
		return bytes.TrimSuffix(dst, []byte("\n"))
	case quotedPrintable:
		line := len(dst)
		for _, c := range b {
			if len(dst)-line >= lineLength-len("=3D=") {
				dst = append(dst, "=\n"...)
				line = len(dst)
			}
			switch {
			case isLetter(c), '0' <= c && c <= '9', c == '&', c == '#', c == ';':
				dst = append(dst, c)
			default:
				dst = append(dst, '=', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		return dst
	}
	return append(dst, b...)
}

// summary gives up a structure that alone exceeds MaxReduced, of a thousand
// long boundaries, say. What is left is the header as it is kept, and a body
// that says what the facts and T need: as many parts and attachments as count,
// without contents, and the beginning of the text.
func (s *scanner) summary(raw []byte) []byte {
	m := Parse(raw)
	s.scan(raw)
	e := &s.entities[0]
	var out []byte
	if s.from.len() > 0 {
		out = append(append(out, s.fromLine()...), '\n')
	}
	out = append(s.header(out, e, MaxHead, 0), '\n')
	boundary := e.boundary
	if e.kind != multiPart {
		boundary = []byte("hamlet")
		inner := entity{mediaType: []byte("multipart/mixed"), boundary: boundary}
		out = append(append(out, inner.contentType()...), "\n\n"...)
	}
	part := func(header string) {
		out = append(append(append(out, "--"...), boundary...), '\n')
		out = append(out, header...)
	}
	const counted = 3 // the facts tell no more of them apart
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
	out = append(appendRecord(out, m.BodyBytes, "\n"), '\n')
	out = base64Encoding.appendEncoded(out, clip(m.Text, MaxText/2))
	out = append(append(append(out, "\n--"...), boundary...), "--\n"...)
	return out
}
