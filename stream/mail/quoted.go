package mail

// This file is made of internal/coding/quotedprint.go of github.com/jhillyerd/enmime/v2, which has this notice:
//
// The MIT License (MIT)
//
// Copyright (c) 2012-2016 James Hillyerd, All Rights Reserved
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of
// this software and associated documentation files (the "Software"), to deal in
// the Software without restriction, including without limitation the rights to
// use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of
// the Software, and to permit persons to whom the Software is furnished to do so,
// subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS
// FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
// COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER
// IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
// CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/quotedprintable"
)

// lenientQuoted returns what enmime makes of broken quoted-printable. Models have learnt that, and so the rule stays.
// enmime itself brings packages that print tables, and they made every start of a program slower.
func lenientQuoted(body []byte) (decoded []byte, ok bool) {
	clean := &quotedCleaner{in: bufio.NewReader(bytes.NewReader(body))}
	decoded, err := io.ReadAll(quotedprintable.NewReader(clean))
	return decoded, err == nil
}

// A quotedCleaner makes quoted-printable of what is nearly that: it escapes what [quotedprintable.Reader] refuses.
type quotedCleaner struct {
	in       *bufio.Reader
	overflow []byte // what did not fit into the last Read
	lineLen  int
}

// maxQuotedLine is the longest line without a soft line break. The reader after it has a buffer of 4,096 bytes.
const maxQuotedLine = 1024

// Read implements [io.Reader].
func (q *quotedCleaner) Read(dst []byte) (n int, err error) {
	if len(q.overflow) > 0 {
		n = copy(dst, q.overflow)
		q.overflow = q.overflow[n:]
	}
	write := func(b ...byte) {
		fits := copy(dst[n:], b)
		q.overflow = append(q.overflow, b[fits:]...)
		n += fits
		q.lineLen += len(b)
	}
	softBreak := func() {
		write('=', '\r', '\n')
		q.lineLen = 0
	}
	// room breaks the line where so many bytes beyond the next would not fit, so that no break parts an escape.
	room := func(bytes int) {
		if q.lineLen+bytes >= maxQuotedLine {
			softBreak()
		}
	}
	for n < len(dst) {
		var b byte
		if b, err = q.in.ReadByte(); err != nil {
			return n, err
		}
		if q.lineLen >= maxQuotedLine {
			softBreak()
			if n == len(dst) {
				break
			}
		}
		switch {
		case b == '=':
			room(2)
			var next []byte
			if next, err = q.in.Peek(2); err != nil && err != io.EOF {
				return 0, err
			}
			if isQuotedEscape(next) {
				write(b)
			} else {
				write('=', '3', 'D')
			}
		case b == '\r' || b == '\n':
			write(b)
			q.lineLen = 0
		case b != '\t' && (b < ' ' || '~' < b):
			room(2)
			write(fmt.Appendf(nil, "=%02X", b)...)
		default:
			write(b)
		}
	}
	return n, err
}

// isQuotedEscape reports whether "=" before v is an escape or a soft line break.
func isQuotedEscape(v []byte) bool {
	isHex := func(b byte) bool { return '0' <= b && b <= '9' || 'A' <= b && b <= 'F' || 'a' <= b && b <= 'f' }
	return len(v) > 0 && v[0] == '\n' ||
		len(v) > 1 && (v[0] == '\r' && v[1] == '\n' || isHex(v[0]) && isHex(v[1]))
}
