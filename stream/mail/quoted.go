package mail

import (
	"bytes"
	"io"
	"mime/quotedprintable"
	"slices"
)

// maxStrictLine is the longest line, with its line end, that [quotedprintable.Reader] takes.
const maxStrictLine = 4096

// appendStrictQuoted appends what [quotedprintable.Reader] makes of body. ok is false where that returns an error: a
// control character, a "=" before a carriage return or before that of a soft line break, anything but blanks between
// that one and the line end, a "=" alone on the last line, and a line of more than maxStrictLine.
//
// It is several times as fast, because it reads a word at a time up to the next "=" or control character.
func appendStrictQuoted(dst, body []byte) (_ []byte, ok bool) {
	for len(body) > 0 {
		end := lineEnd(body, 0)
		line := body[:end]
		body = body[end:]
		ended := line[end-1] == '\n'
		if end > maxStrictLine || end == maxStrictLine && !ended {
			return dst, false
		}
		text := line
		for len(text) > 0 && isFolding(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		soft := len(text) > 0 && text[len(text)-1] == '='
		if soft {
			after := line[len(text):]
			text = text[:len(text)-1]
			if !isEmptyLine(after) { // the frequent case needs no more
				after = bytes.TrimLeft(after, " \t")
				if !isEmptyLine(after) && (ended || len(after) > 0 || len(text) == 0) {
					return dst, false
				}
			}
		}
		if dst, ok = appendStrictLine(dst, text); !ok {
			return dst, false
		}
		if ended && !soft {
			if end > 1 && line[end-2] == '\r' {
				dst = append(dst, '\r')
			}
			dst = append(dst, '\n')
		}
	}
	return dst, true
}

// appendStrictLine appends a line without its end, for appendStrictQuoted.
func appendStrictLine(dst, text []byte) (_ []byte, ok bool) {
	dst = slices.Grow(dst, len(text)+wordBytes) // the last word may reach beyond the text
	out, k := dst[:cap(dst)], len(dst)
	for len(text) > 0 {
		var x uint64
		if len(text) >= wordBytes {
			x = loadWord(text)
		} else {
			x = partialWord(text, ' ')
		}
		low := x & eachLow
		special := ^(differs(low, '=')&atLeast(low, ' ')&differs(low, 0x7f) | x) & eachHigh
		storeWord(out[k:], x)
		n := min(firstOf(special), len(text))
		k, text = k+n, text[n:]
		if special == 0 {
			continue
		}
		c, size := text[0], 1
		switch {
		case c == '=' && len(text) > 2 && isHex(text[1]) && isHex(text[2]):
			c, size = hexValue[text[1]]<<4|hexValue[text[2]], 3
		case c == '=' && (len(text) == 1 || text[1] == '\r'), c != '=' && c != '\r' && c != '\t':
			return dst, false
		}
		out[k] = c
		k, text = k+1, text[size:]
	}
	return out[:k], true
}

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

func isHex(c byte) bool { return hexValue[c] < 16 }

// hexValue is the value of a hexadecimal digit. It is 0xff for all other bytes.
var hexValue = func() (values [256]byte) {
	for c := range values {
		values[c] = 0xff
	}
	for i := range byte(16) {
		values["0123456789ABCDEF"[i]], values["0123456789abcdef"[i]] = i, i
	}
	return values
}()
