package mail

import (
	"bytes"
	"io"
	"mime/quotedprintable"
)

// maxQuotedLine is where a line of quoted-printable without an end is broken. [quotedprintable.Reader] takes lines of
// up to 4,096 bytes.
const maxQuotedLine = 1024

// lenientQuoted decodes quoted-printable that keeps too little of RFC 2045, section 6.7. A "=" that begins neither an
// escape nor a soft line break stands for itself, and so does a byte that should have been escaped. Such bytes are
// escaped, and [quotedprintable.Reader] decodes the rest by the rules. It is what enmime makes of a body, which
// models have learnt, without the packages that enmime brings into every start of a program.
func lenientQuoted(body []byte) (decoded []byte, ok bool) {
	const digits = "0123456789ABCDEF"
	strict := make([]byte, 0, len(body)+len(body)/16)
	begin := 0 // of the last line
	for i, c := range body {
		stands := c == '\t' || c == '\r' || c == '\n' || ' ' <= c && c <= '~'
		length := len(strict) - begin
		if c == '=' || !stands {
			length += len("3D") // an escape stays on one line
		}
		if length >= maxQuotedLine {
			strict = append(strict, "=\r\n"...)
			begin = len(strict)
		}
		if c == '=' {
			stands = endsEscape(body[i+1:])
		}
		if !stands {
			strict = append(strict, '=', digits[c>>4], digits[c&15])
			continue
		}
		if strict = append(strict, c); c == '\r' || c == '\n' {
			begin = len(strict)
		}
	}
	decoded, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(strict)))
	return decoded, err == nil
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
