package mail

import (
	"io"
	"mime/quotedprintable"
)

// lenientQuoted decodes quoted-printable that keeps too little of RFC 2045, section 6.7. A "=" that begins neither an
// escape nor a soft line break stands for itself, and so does a byte that should have been escaped. Such bytes are
// escaped, and [quotedprintable.Reader] decodes the rest by the rules.
//
// It is what enmime 2.3 makes of a body, to the byte, because models have learnt that, without the packages that enmime
// brings into every start of a program.
func lenientQuoted(body []byte) (decoded []byte, ok bool) {
	decoded, err := io.ReadAll(quotedprintable.NewReader(&strictQuoted{body: body}))
	return decoded, err == nil
}

// A strictQuoted reads a body as strict quoted-printable.
type strictQuoted struct {
	body   []byte // what is left
	ready  []byte // what did not fit into the last Read
	length int    // of the last line
}

// maxQuotedLine is where a line without an end is broken. [quotedprintable.Reader] takes lines of up to 4,096 bytes.
const maxQuotedLine = 1024

// Read implements [io.Reader].
func (s *strictQuoted) Read(dst []byte) (n int, err error) {
	const digits = "0123456789ABCDEF"
	put := func(b ...byte) {
		fits := copy(dst[n:], b)
		n += fits
		s.ready = append(s.ready, b[fits:]...)
		s.length += len(b)
	}
	breakLine := func() {
		put('=', '\r', '\n')
		s.length = 0
	}
	n = copy(dst, s.ready)
	s.ready = s.ready[n:]
	for n < len(dst) {
		if len(s.body) == 0 {
			return n, io.EOF
		}
		c := s.body[0]
		s.body, err = s.body[1:], nil
		if s.length >= maxQuotedLine {
			if breakLine(); n == len(dst) {
				break // enmime forgets c here
			}
		}
		stands := c == '\t' || c == '\r' || c == '\n' || ' ' <= c && c <= '~'
		if c == '=' {
			if stands = endsEscape(s.body); len(s.body) < 2 {
				err = io.EOF // if dst is full now, enmime reads no further
			}
		}
		if (c == '=' || !stands) && s.length+len("3D") >= maxQuotedLine {
			breakLine() // an escape stays on one line
		}
		switch {
		case !stands:
			put('=', digits[c>>4], digits[c&15])
		default:
			if put(c); c == '\r' || c == '\n' {
				s.length = 0
			}
		}
	}
	return n, err
}

// endsEscape reports whether b begins with what follows the "=" of an escape or of a soft line break.
func endsEscape(b []byte) bool {
	if len(b) > 0 && b[0] == '\n' {
		return true
	}
	return len(b) > 1 && (b[0] == '\r' && b[1] == '\n' || isHex(b[0]) && isHex(b[1]))
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || 'a' <= c && c <= 'f'
}
