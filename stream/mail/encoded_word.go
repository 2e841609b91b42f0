package mail

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
)

// maxEncodedWord bounds an encoded word. RFC 2047 allows 75 characters; some senders
// write a whole subject.
const maxEncodedWord = 2 << 10

// An encodedWord is =?charset?encoding?text?= (RFC 2047). mime.WordDecoder refuses
// blanks in the text, which many senders write, and converts each word by itself.
type encodedWord struct {
	charset, text []byte
	base64        bool
}

// cutEncodedWord reads an encoded word at the start of v.
func cutEncodedWord(v []byte) (w encodedWord, rest []byte, ok bool) {
	body := v[len("=?"):min(len(v), maxEncodedWord)]
	name, body, ok := bytes.Cut(body, []byte("?"))
	if !ok || len(name) == 0 || len(body) < 2 || body[1] != '?' || bytes.ContainsAny(name, " \t=") {
		return w, nil, false
	}
	w.base64 = body[0]|0x20 == 'b'
	n := bytes.Index(body[2:], []byte("?="))
	if n < 0 || !w.base64 && body[0]|0x20 != 'q' {
		return w, nil, false
	}
	w.text = body[2 : 2+n]
	w.charset, _, _ = bytes.Cut(name, []byte("*")) // RFC 2231: *language
	return w, v[len("=?")+len(name)+len("?q?")+n+len("?="):], true
}

// appendDecoded appends the unfolded value v with its encoded words decoded, without
// the blanks between two of them and without line ends. It joins neighbours of one
// charset before it converts them, because a character may be cut between them.
func appendDecoded(dst, v []byte) []byte {
	n := len(dst)
	var (
		pending []byte // decoded and not yet converted
		charset []byte // of pending
		after   bool   // v follows an encoded word
	)
	flush := func() {
		dst = appendCharset(dst, charset, pending)
		pending = pending[:0]
	}
	for {
		i := bytes.Index(v, []byte("=?"))
		if i < 0 {
			break
		}
		w, rest, ok := cutEncodedWord(v[i:])
		if !ok {
			flush()
			dst = appendUTF8(dst, v[:i+2])
			v, after = v[i+2:], false
			continue
		}
		adjacent := after && isBlank(v[:i])
		if !adjacent || !bytes.EqualFold(charset, w.charset) {
			flush()
		}
		if !adjacent {
			dst = appendUTF8(dst, v[:i])
		}
		charset = w.charset
		if w.base64 {
			pending = appendBase64(pending, w.text)
		} else {
			pending = appendQuoted(pending, w.text, true)
		}
		v, after = rest, true
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

// appendBase64 appends base64 decoded. It skips characters outside the alphabet.
func appendBase64(dst, text []byte) []byte {
	digits := make([]byte, 0, len(text))
	for _, c := range text {
		if isAlphanumeric(c) || c == '+' || c == '/' {
			digits = append(digits, c)
		}
	}
	if len(digits)%4 == 1 {
		digits = digits[:len(digits)-1] // six bits are less than a byte
	}
	dst, _ = base64.RawStdEncoding.AppendDecode(dst, digits) // digits only: no error
	return dst
}

// appendQuoted appends quoted-printable text decoded. In an encoded word "_" is a
// blank.
func appendQuoted(dst, text []byte, inWord bool) []byte {
	for i := 0; i < len(text); i++ {
		c := [1]byte{text[i]}
		if c[0] == '_' && inWord {
			c[0] = ' '
		} else if c[0] == '=' && i+2 < len(text) {
			if _, err := hex.Decode(c[:], text[i+1:i+3]); err == nil {
				i += 2
			} else {
				c[0] = '='
			}
		}
		dst = append(dst, c[0])
	}
	return dst
}
