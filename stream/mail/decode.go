package mail

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	gomessage "github.com/emersion/go-message"
	"github.com/emersion/go-message/charset"
	"github.com/jhillyerd/enmime/v2"
	"golang.org/x/text/encoding/charmap"
)

// encoding is a Content-Transfer-Encoding (RFC 2045, section 6).
type encoding uint8

const (
	identity encoding = iota // 7bit, 8bit, binary, and all that is unknown
	base64Encoding
	quotedPrintable
)

// parseEncoding forgives quotes and whatever stands after the name.
func parseEncoding(v []byte) encoding {
	v = bytes.TrimLeft(v, "\"' \t\r\n")
	switch {
	case hasPrefixFold(v, "base64"):
		return base64Encoding
	case hasPrefixFold(v, "quoted-printable"):
		return quotedPrintable
	}
	return identity
}

// name is what the libraries call it.
func (enc encoding) name() string {
	switch enc {
	case base64Encoding:
		return "base64"
	case quotedPrintable:
		return "quoted-printable"
	}
	return "binary"
}

// maxTolerant bounds the bytes of a message that enmime may try to mend: it
// takes some 200 ns for a byte that does not belong where it stands, too much
// for 25 MiB of them.
const maxTolerant = 256 << 10

// appendText appends the text of a text part whose body, still encoded, is body.
func (s *scanner) appendText(dst []byte, e *entity, body []byte) []byte {
	if e.encoding != identity {
		body = s.undo(e.encoding, body)
	}
	if e.html {
		if !utf8.Valid(body) || !plainCharset(e.charset) {
			body = appendCharset(nil, e.charset, body)
		}
		return stripHTML(dst, body)
	}
	n := len(dst)
	return dropCR(appendCharset(dst, e.charset, body), n)
}

// undo takes a transfer encoding off: strictly by go-message, and where that
// refuses, by enmime, which passes over what does not belong there. What
// neither can read is returned as it is, and so is text after base64.
func (s *scanner) undo(enc encoding, body []byte) []byte {
	var header gomessage.Header
	header.Set("Content-Transfer-Encoding", enc.name())
	entity, err := gomessage.New(header, bytes.NewReader(body))
	if err == nil {
		if s.scratch, err = appendAll(s.scratch[:0], entity.Body); err == nil {
			return s.scratch
		}
	}
	if n := base64End(body); enc == base64Encoding && n < len(body) {
		decoded := bytes.Clone(s.undo(enc, body[:n]))
		return append(append(decoded, '\n'), body[n:]...)
	}
	if s.mended += len(body); s.mended > maxTolerant {
		return s.salvage(enc, body)
	}
	part, err := tolerant.ReadParts(io.MultiReader(
		strings.NewReader("Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: "+enc.name()+"\r\n\r\n"),
		bytes.NewReader(body)))
	if err != nil || len(part.Content) == 0 && !isBlank(body) {
		s.fail("broken %s", enc.name())
		return body
	}
	return part.Content
}

// salvage takes a transfer encoding off in linear time, passing over what does
// not belong there, where there is too much of it for enmime.
func (s *scanner) salvage(enc encoding, body []byte) []byte {
	s.fail("too much broken %s", enc.name())
	decoded := make([]byte, 0, len(body))
	if enc == base64Encoding {
		w := word{text: body, base64: true}
		decoded = w.appendBytes(decoded)
	} else {
		for line := range bytes.Lines(body) {
			text := bytes.TrimRight(line, " \t\r\n")
			soft := bytes.HasSuffix(text, []byte("=")) // RFC 2045, section 6.7, rule 5
			decoded = appendQuoted(decoded, bytes.TrimSuffix(text, []byte("=")), false)
			if !soft && bytes.HasSuffix(line, []byte("\n")) {
				decoded = append(decoded, '\n')
			}
		}
	}
	if len(decoded) == 0 {
		return body
	}
	return decoded
}

// base64End returns where the first lines of b that are base64 end. Mailing
// lists put their footers there, as they are. If b begins otherwise, or is
// base64 throughout, that is len(b).
func base64End(b []byte) int {
	begun := false
	for at := 0; at < len(b); {
		end := lineEnd(b, at)
		line := bytes.TrimRight(b[at:end], " \t\r\n")
		for _, c := range line {
			switch {
			case isLetter(c), '0' <= c && c <= '9', c == '+', c == '/', c == '=':
			case begun:
				return at
			default:
				return len(b)
			}
		}
		begun = begun || len(line) > 0
		at = end
	}
	return len(b)
}

// tolerant mends transfer encodings. It must not guess charsets: the guess is
// made by goroutines that race.
var tolerant = enmime.NewParser(enmime.DisableCharacterDetection(true),
	enmime.DisableTextConversion(true), enmime.MaxStoredPartErrors(1))

// appendAll reads r to its end.
func appendAll(dst []byte, r io.Reader) ([]byte, error) {
	for {
		if cap(dst)-len(dst) < 512 {
			dst = append(dst, make([]byte, 512)...)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// plainCharset reports whether [appendUTF8] reads a charset: ASCII, UTF-8, or
// none that is known. Old mail says us-ascii and means windows-1252.
func plainCharset(name []byte) bool {
	switch len(name) {
	case 0:
		return true
	case len("utf-8"):
		return equalFold(name, "utf-8") || equalFold(name, "ascii")
	case len("us-ascii"):
		return equalFold(name, "us-ascii")
	}
	return false
}

// maxCharset is longer than the name of any charset.
const maxCharset = 64

// asciiCharsets begin the names of charsets in which a byte below 128 is that
// character of ASCII, wherever it stands.
var asciiCharsets = []string{"iso-8859", "windows-", "iso8859", "cp12", "koi8", "gb2312", "euc-", "ks_c"}

// maxDoubt is how much of a converted text is looked at to tell whether it makes
// sense: its beginning, so that it does not matter where Reduce cuts a text.
const maxDoubt = 8 << 10

// appendCharset appends b converted to UTF-8. A charset that is unknown, or in
// which b makes no sense, is read by [appendUTF8]: no text is lost.
func appendCharset(dst, name, b []byte) []byte {
	if plainCharset(name) || isASCII(b) && hasASCII(name) {
		return appendUTF8(dst, b)
	}
	if len(name) > maxCharset {
		return appendUTF8(dst, b)
	}
	r, err := charset.Reader(string(name), bytes.NewReader(b))
	if err != nil {
		return appendUTF8(dst, b)
	}
	n := len(dst)
	dst, err = appendAll(dst, r)
	begin := dst[n:min(len(dst), n+maxDoubt)]
	if err != nil || 8*bytes.Count(begin, []byte("\uFFFD")) > utf8.RuneCount(begin) {
		return appendUTF8(dst[:n], b)
	}
	return dst
}

func hasASCII(name []byte) bool {
	for _, prefix := range asciiCharsets {
		if hasPrefixFold(name, prefix) {
			return true
		}
	}
	return false
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendUTF8 appends b as UTF-8: what is valid stays, and every other byte is
// read as windows-1252, which browsers take for what says nothing of itself
// (WHATWG Encoding). No byte is lost.
func appendUTF8(dst, b []byte) []byte {
	if utf8.Valid(b) {
		return append(dst, b...)
	}
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			dst = utf8.AppendRune(dst, charmap.Windows1252.DecodeByte(b[0]))
		} else {
			dst = append(dst, b[:size]...)
		}
		b = b[size:]
	}
	return dst
}

// dropCR turns CR LF into LF in b from position n on, in place.
func dropCR(b []byte, n int) []byte {
	i := bytes.Index(b[n:], []byte("\r\n"))
	if i < 0 {
		return b
	}
	w := n + i
	for r := w; r < len(b); r++ {
		if b[r] == '\r' && r+1 < len(b) && b[r+1] == '\n' {
			continue
		}
		b[w] = b[r]
		w++
	}
	return b[:w]
}

// clip cuts b to at most n bytes, not within a character.
func clip(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}
