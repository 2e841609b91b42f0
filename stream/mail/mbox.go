package mail

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Mbox yields the messages of an mbox file in order, each with its "From " line and in
// a slice of its own. A message starts at a line "From " at the start of the file or
// after an empty line. That empty line is left out. ">From " is unquoted as in mboxrd.
// Text before the first "From " line is a message too.
//
// For a message of more than MaxSize bytes it yields an error that wraps
// [ErrTooLarge], and goes on, in bounded memory. Any other error comes from r and is
// the last.
func Mbox(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		m := mboxReader{r: bufio.NewReaderSize(r, 64<<10)}
		for n := 1; ; n++ {
			message, err := m.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				err = fmt.Errorf("mbox: message %d: %w", n, err)
			}
			if !yield(message, err) || err != nil && !errors.Is(err, ErrTooLarge) {
				return
			}
		}
	}
}

// An mboxReader splits an mbox into messages, line by line. Only next changes it.
type mboxReader struct {
	r    *bufio.Reader
	from []byte // the start of the next message's "From " line, already read
	err  error  // of r; nothing follows
}

// next returns the next message, or io.EOF after the last.
func (m *mboxReader) next() ([]byte, error) {
	message := m.from
	m.from = nil
	afterEmpty, tooLarge := len(message) == 0, false // afterEmpty: no line, or an empty one, comes before
	for m.err == nil {
		piece, err := m.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) { // a long line comes in pieces
			m.err = err
		}
		if len(piece) == 0 {
			break
		}
		begun := len(message) > 0
		if !begun || bytes.HasSuffix(message, []byte("\n")) { // a line starts
			if afterEmpty && bytes.HasPrefix(piece, fromPrefix) && begun {
				m.from = bytes.Clone(piece)
				return finishMessage(message, tooLarge)
			}
			afterEmpty = isEmptyLine(piece)
			if afterEmpty && !begun {
				continue
			}
			if isQuotedFrom(piece) {
				piece = piece[1:]
			}
		}
		if tooLarge = tooLarge || len(message)+len(piece) > MaxSize+len("\r\n"); tooLarge {
			message = message[:0] // only the last piece stays
		}
		message = append(message, piece...)
	}
	switch {
	case m.err != nil && !errors.Is(m.err, io.EOF):
		return nil, m.err
	case len(message) == 0:
		return nil, io.EOF
	}
	return finishMessage(message, tooLarge)
}

// finishMessage removes the format's empty line from the end of a message.
func finishMessage(message []byte, tooLarge bool) ([]byte, error) {
	for _, end := range []string{"\n\n", "\n\r\n"} {
		if bytes.HasSuffix(message, []byte(end)) {
			message = message[:len(message)-len(end)+1]
			break
		}
	}
	if tooLarge || len(message) > MaxSize {
		return nil, ErrTooLarge
	}
	return message, nil
}

var fromPrefix = []byte("From ")

// isQuotedFrom reports whether line is ">From ", with one ">" or more.
func isQuotedFrom(line []byte) bool {
	rest := bytes.TrimLeft(line, ">")
	return len(rest) < len(line) && bytes.HasPrefix(rest, fromPrefix)
}

func isEmptyLine(b []byte) bool { return len(b) > 0 && emptyLine(b) == len(b) }

// emptyLine returns the length of the empty line at the start of b, and 0 without one.
func emptyLine(b []byte) int {
	switch {
	case len(b) > 0 && b[0] == '\n':
		return 1
	case len(b) > 1 && b[0] == '\r' && b[1] == '\n':
		return 2
	}
	return 0
}
