package mail

import (
	"bytes"
	"encoding/base64"
)

// maxWord bounds an encoded word. RFC 2047 allows 75 characters; some senders
// put a whole subject into one.
const maxWord = 2 << 10

// A word is an encoded word of RFC 2047: =?charset?encoding?text?=
type word struct {
	charset, text []byte
	base64        bool
}

// cutWord reads an encoded word at the start of v. It forgives blanks in the
// text, which RFC 2047 forbids and many senders write.
func cutWord(v []byte) (w word, rest []byte, ok bool) {
	body := v[len("=?"):min(len(v), maxWord)]
	name, body, ok := bytes.Cut(body, []byte("?"))
	if !ok || len(name) == 0 || len(body) < 2 || body[1] != '?' || bytes.ContainsAny(name, " \t=") {
		return w, nil, false
	}
	switch body[0] {
	case 'b', 'B':
		w.base64 = true
	case 'q', 'Q':
	default:
		return w, nil, false
	}
	n := bytes.Index(body[2:], []byte("?="))
	if n < 0 {
		return w, nil, false
	}
	w.text = body[2 : 2+n]
	w.charset, _, _ = bytes.Cut(name, []byte("*")) // RFC 2231: *language
	return w, v[len("=?")+len(name)+len("?q?")+n+len("?="):], true
}

// appendDecoded appends the unfolded value v with its encoded words decoded.
// Blanks between two of them go, and neighbours of one charset are joined
// before it is converted: a character may be cut between them. The result has
// no line ends.
func appendDecoded(dst, v []byte) []byte {
	n := len(dst)
	var (
		pending []byte // decoded bytes, in charset
		name    []byte
		last    bool // v follows an encoded word
	)
	flush := func() {
		dst = appendCharset(dst, name, pending)
		pending = pending[:0]
	}
	for {
		i := bytes.Index(v, []byte("=?"))
		if i < 0 {
			break
		}
		w, rest, ok := cutWord(v[i:])
		if !ok {
			flush()
			dst = appendUTF8(dst, v[:i+2])
			v, last = v[i+2:], false
			continue
		}
		if blank := isBlank(v[:i]); !last || !blank || !bytes.EqualFold(name, w.charset) {
			flush()
			if !last || !blank {
				dst = appendUTF8(dst, v[:i])
			}
		}
		name, pending = w.charset, w.appendBytes(pending)
		v, last = rest, true
	}
	flush()
	dst = appendUTF8(dst, v)
	for i, c := range dst[n:] {
		if c == '\n' || c == '\r' {
			dst[n+i] = ' '
		}
	}
	return dst
}

// appendBytes decodes the text of w, passing over what does not belong there.
func (w *word) appendBytes(dst []byte) []byte {
	if w.base64 {
		clean := make([]byte, 0, len(w.text))
		for _, c := range w.text {
			switch {
			case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '+', c == '/':
				clean = append(clean, c)
			}
		}
		if len(clean)%4 == 1 {
			clean = clean[:len(clean)-1] // six bits are no byte
		}
		dst, _ = base64.RawStdEncoding.AppendDecode(dst, clean) // only digits are left
		return dst
	}
	return appendQuoted(dst, w.text, true)
}

// appendQuoted appends quoted-printable text decoded: that of a body, or that of
// a word, in which "_" is a blank. What does not belong there stays.
func appendQuoted(dst, text []byte, inWord bool) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '_' && inWord:
			c = ' '
		case c == '=' && i+2 < len(text):
			hi, ok1 := unhex(text[i+1])
			lo, ok2 := unhex(text[i+2])
			if ok1 && ok2 {
				c = hi<<4 | lo
				i += 2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
