package mail

import (
	"bytes"
	"encoding/base64"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	gomessage "github.com/emersion/go-message"
	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding/charmap"
)

// encoding is a Content-Transfer-Encoding (RFC 2045, section 6).
type encoding uint8

const (
	identity encoding = iota // 7bit, 8bit, binary and unknown ones
	base64Encoding
	quotedPrintable
)

// parseEncoding accepts quotes, and anything after the name.
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

func (enc encoding) name() string {
	return [...]string{identity: "binary", base64Encoding: "base64", quotedPrintable: "quoted-printable"}[enc]
}

// maxLenient bounds the bytes of a message that are decoded as enmime does; see
// MEASURED.md. Models depend on it.
const maxLenient = 256 << 10

// appendText appends the text of a text part with this encoded body.
func (s *scanner) appendText(dst []byte, e *entity, body []byte) []byte {
	if e.encoding != identity {
		body = s.decodeTransfer(e.encoding, body)
	}
	if e.html {
		if !(isASCII(body) && readsASCII(e.charset)) && !(isUTF8Charset(e.charset) && utf8.Valid(body)) {
			s.converted = appendCharset(s.converted[:0], e.charset, body)
			body = s.converted
		}
		return stripHTML(dst, body)
	}
	n := len(dst)
	dst = appendCharset(dst, e.charset, body)
	return dst[:n+len(withoutCarriageReturns(dst[n:]))]
}

// withoutCarriageReturns changes each "\r\n" to "\n", in place.
func withoutCarriageReturns(b []byte) []byte {
	at := bytes.IndexByte(b, '\r')
	if at < 0 {
		return b
	}
	kept := at
	for at < len(b) {
		for ; at < len(b) && b[at] == '\r'; at++ {
			if at+1 == len(b) || b[at+1] != '\n' {
				b[kept] = '\r'
				kept++
			}
		}
		n := bytes.IndexByte(b[at:], '\r')
		if n < 0 {
			n = len(b) - at
		}
		copy(b[kept:], b[at:at+n])
		kept, at = kept+n, at+n
	}
	return b[:kept]
}

// decodeTransfer undoes a transfer encoding. It tries the strict rules, then base64 up to
// the first line that is not base64, then it skips errors as enmime does. If all fail, it
// returns body. The result may be s.scratch.
func (s *scanner) decodeTransfer(enc encoding, body []byte) []byte {
	var ok bool
	if enc == quotedPrintable {
		s.scratch, ok = appendStrictQuoted(s.scratch[:0], body)
	} else if s.scratch, ok = appendStrictBase64(s.scratch[:0], body); !ok {
		s.scratch, ok = appendStreamedBase64(s.scratch[:0], body)
	}
	if ok {
		return s.scratch
	}
	if n := base64End(body); enc == base64Encoding && n < len(body) {
		decoded := bytes.Clone(s.decodeTransfer(enc, body[:n]))
		return append(append(decoded, '\n'), body[n:]...)
	}
	return s.decodeLenient(enc, body)
}

// base64Piece is what the largest buffer of encoding/base64, 1024 digits, decodes to.
const base64Piece = 768

// appendStreamedBase64 appends what go-message makes of base64. ok is false where that
// returns an error. It reads all that appendStrictBase64 does, and accepts padding within
// base64 where a buffer of encoding/base64 ends. That buffer is as large as what it is asked for,
// so it is always asked for the same: the text depends on the body alone.
func appendStreamedBase64(dst, body []byte) (_ []byte, ok bool) {
	var header gomessage.Header
	header.Set("Content-Transfer-Encoding", base64Encoding.name())
	entity, err := gomessage.New(header, bytes.NewReader(body))
	if err == nil {
		var piece [base64Piece]byte
		for err == nil {
			var n int
			n, err = entity.Body.Read(piece[:])
			dst = append(dst, piece[:n]...)
		}
		if err == io.EOF {
			err = nil
		}
	}
	return dst, err == nil
}

// appendStrictBase64 appends base64 decoded. ok is false if a line does not have groups of
// four digits, and after a line with padding.
func appendStrictBase64(dst, body []byte) (_ []byte, ok bool) {
	padded := false
	for len(body) > 0 {
		var line []byte
		if line, body = cutFolded(body); len(line) == 0 {
			continue
		}
		if padded || len(line)%4 != 0 {
			return dst, false
		}
		var err error
		if dst, err = base64.StdEncoding.AppendDecode(dst, line); err != nil {
			return dst, false
		}
		padded = line[len(line)-1] == '='
	}
	return dst, true
}

// decodeLenient undoes a broken transfer encoding.
func (s *scanner) decodeLenient(enc encoding, body []byte) []byte {
	if s.lenientBytes += len(body); s.lenientBytes > maxLenient {
		return s.decodeFast(enc, body)
	}
	decode := lenientQuoted
	if enc == base64Encoding {
		decode = lenientBase64
	}
	decoded, ok := decode(body)
	if !ok || len(decoded) == 0 && !isBlank(body) {
		s.fail("broken %s", enc.name())
		return body
	}
	return decoded
}

// lenientBase64 returns what enmime makes of broken base64, in linear time: two
// allocations, and a nanosecond or two a byte. enmime makes an error of each byte that it
// skips, which takes 200 ns or more. It skips a byte if the lower seven bits are not a
// digit. So a byte above ASCII may stay, which encoding/base64 then refuses. Models
// have learnt what enmime returns, and so the rule stays.
func lenientBase64(body []byte) (decoded []byte, ok bool) {
	digits := make([]byte, 0, len(body))
	for _, c := range body {
		if !isBase64Digit[c&0x7f] {
			continue
		}
		if c >= utf8.RuneSelf {
			return nil, false
		}
		digits = append(digits, c)
	}
	if len(digits)%4 == 1 {
		return nil, false // six bits are less than a byte
	}
	decoded, err := base64.RawStdEncoding.AppendDecode(nil, digits)
	return decoded, err == nil
}

// isBase64Digit says which characters of ASCII are digits of base64.
var isBase64Digit = func() (digit [utf8.RuneSelf]bool) {
	for c := range digit {
		digit[c] = isAlphanumeric(byte(c)) || c == '+' || c == '/'
	}
	return digit
}()

// decodeFast undoes a transfer encoding, in linear time and skipping errors.
func (s *scanner) decodeFast(enc encoding, body []byte) []byte {
	s.fail("too much broken %s", enc.name())
	decoded := make([]byte, 0, len(body))
	if enc == base64Encoding {
		decoded = appendBase64(decoded, body)
	} else {
		for line := range bytes.Lines(body) {
			text, soft := bytes.CutSuffix(bytes.TrimRight(line, " \t\r\n"), []byte("=")) // RFC 2045, section 6.7, rule 5
			decoded = appendQuoted(decoded, text, false)
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

// base64End returns the end of the base64 lines at the start of b. Mailing lists append
// plain footers there. It is len(b) if b does not start with base64.
func base64End(b []byte) int {
	begun := false
	for at := 0; at < len(b); {
		end := lineEnd(b, at)
		line := bytes.TrimRight(b[at:end], " \t\r\n")
		for _, c := range line {
			if isAlphanumeric(c) || c == '+' || c == '/' || c == '=' {
				continue
			}
			if begun {
				return at
			}
			return len(b)
		}
		begun = begun || len(line) > 0
		at = end
	}
	return len(b)
}

// appendAll appends what r yields before its end or an error.
func appendAll(dst []byte, r io.Reader) ([]byte, error) {
	buffer := bytes.NewBuffer(dst)
	_, err := buffer.ReadFrom(r)
	return buffer.Bytes(), err
}

// isUTF8Charset reports whether [appendUTF8] reads a charset. Old mail declares
// us-ascii and contains windows-1252.
func isUTF8Charset(name []byte) bool {
	return len(name) == 0 || equalFold(name, "utf-8") || equalFold(name, "ascii") || equalFold(name, "us-ascii")
}

// maxCharset is longer than any charset's name.
const maxCharset = 64

// asciiPrefixes begin the names of charsets that extend ASCII.
var asciiPrefixes = []string{"iso-8859", "windows-", "iso8859", "cp12", "koi8", "gb2312", "euc-", "ks_c"}

// maxChecked is how much of a converted text is checked for replacement characters:
// the start, so that it does not matter where Reduce cuts.
const maxChecked = 8 << 10

// appendCharset appends b converted to UTF-8. If the charset is unknown, or more
// than an eighth of the converted characters are replacements, [appendUTF8] reads b.
func appendCharset(dst, name, b []byte) []byte {
	if isUTF8Charset(name) || len(name) > maxCharset {
		return appendUTF8(dst, b)
	}
	if isASCII(b) && extendsASCII(name) {
		return append(dst, b...)
	}
	n := len(dst)
	if t := singleByteOf(name); t != nil {
		dst = t.append(dst, b)
	} else {
		r, err := charset.Reader(string(name), bytes.NewReader(b))
		if err != nil {
			return appendUTF8(dst, b)
		}
		if dst, err = appendAll(dst, r); err != nil {
			return appendUTF8(dst[:n], b)
		}
	}
	start := dst[n:min(len(dst), n+maxChecked)]
	if 8*bytes.Count(start, []byte("\uFFFD")) > utf8.RuneCount(start) {
		return appendUTF8(dst[:n], b)
	}
	return dst
}

// readsASCII reports whether [appendCharset] takes ASCII as it is.
func readsASCII(charset []byte) bool {
	return isUTF8Charset(charset) || len(charset) > maxCharset || extendsASCII(charset)
}

func extendsASCII(charset []byte) bool {
	return slices.ContainsFunc(asciiPrefixes, func(prefix string) bool { return hasPrefixFold(charset, prefix) })
}

// A singleByte is a charset of one byte a character that extends ASCII: what the bytes
// from 0x80 on are.
type singleByte [utf8.RuneSelf]rune

// singleBytes are the charsets of old mail. go-message would read them to the same text,
// through several buffers.
var singleBytes = func() map[string]func() *singleByte {
	m := map[string]func() *singleByte{}
	for _, name := range []string{"iso-8859-1", "iso-8859-2", "iso-8859-9", "iso-8859-15", "windows-1250",
		"windows-1251", "windows-1252", "windows-1254", "koi8-r"} {
		m[name] = sync.OnceValue(func() *singleByte { return newSingleByte(name) })
	}
	return m
}()

func singleByteOf(name []byte) *singleByte {
	var lower [maxCharset]byte
	for i, c := range name {
		lower[i] = lowerCase[c]
	}
	if table := singleBytes[string(lower[:len(name)])]; table != nil {
		return table()
	}
	return nil
}

func newSingleByte(name string) *singleByte {
	var all [256]byte
	for c := range all {
		all[c] = byte(c)
	}
	r, err := charset.Reader(name, bytes.NewReader(all[:]))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if runes := []rune(string(text)); err == nil && len(runes) == len(all) && isASCII(text[:utf8.RuneSelf]) {
		return (*singleByte)(runes[utf8.RuneSelf:])
	}
	panic("mail: " + name + " is no single-byte charset")
}

func (t *singleByte) append(dst, b []byte) []byte {
	for len(b) > 0 {
		n := asciiLen(b)
		dst = append(dst, b[:n]...)
		for b = b[n:]; len(b) > 0 && b[0] >= utf8.RuneSelf; b = b[1:] {
			dst = utf8.AppendRune(dst, t[b[0]-utf8.RuneSelf])
		}
	}
	return dst
}

// asciiLen returns how much ASCII b begins with.
func asciiLen(b []byte) int {
	n := 0
	for ; n+4*wordBytes <= len(b); n += 4 * wordBytes {
		w := b[n : n+4*wordBytes]
		if (loadWord(w)|loadWord(w[8:])|loadWord(w[16:])|loadWord(w[24:]))&eachHigh != 0 {
			break
		}
	}
	for ; n+wordBytes <= len(b); n += wordBytes {
		if high := loadWord(b[n:]) & eachHigh; high != 0 {
			return n + firstOf(high)
		}
	}
	for n < len(b) && b[n] < utf8.RuneSelf {
		n++
	}
	return n
}

func isASCII(b []byte) bool { return asciiLen(b) == len(b) }

// appendUTF8 appends b as UTF-8. Invalid bytes are read as windows-1252, as browsers
// do without a charset (WHATWG Encoding).
func appendUTF8(dst, b []byte) []byte {
	n := asciiLen(b)
	if n == len(b) || utf8.Valid(b[n:]) {
		return append(dst, b...)
	}
	for len(b) > 0 {
		dst = append(dst, b[:n]...)
		for b = b[n:]; len(b) > 0 && b[0] >= utf8.RuneSelf; {
			r, size := utf8.DecodeRune(b)
			if r == utf8.RuneError && size == 1 {
				r = charmap.Windows1252.DecodeByte(b[0])
			}
			dst = utf8.AppendRune(dst, r)
			b = b[size:]
		}
		n = asciiLen(b)
	}
	return dst
}

// truncate cuts b to at most n bytes, not within a character.
func truncate(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}
