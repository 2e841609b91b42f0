package mail

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Mbox yields the messages of an mbox file in order, each with its "From "
// line, in a slice of its own. A message begins at a line "From " at the start
// or after an empty line; the empty line is the format's and left out, and
// ">From " is unquoted as mboxrd has it. What precedes the first such line is
// a message without it, so that a file that holds a single message works, too.
//
// A message of more than MaxSize bytes is read past in bounded memory and
// yielded as an error that wraps [ErrTooLarge]; the next one follows. Any other
// error comes from r and is the last.
func Mbox(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		b := splitter{r: bufio.NewReaderSize(r, 64<<10)}
		for n := 1; ; n++ {
			message, err := b.next()
			switch {
			case err == nil:
			case errors.Is(err, io.EOF):
				return
			case errors.Is(err, ErrTooLarge):
				err = fmt.Errorf("mbox: message %d: %w", n, err)
			default:
				yield(nil, fmt.Errorf("mbox: message %d: %w", n, err))
				return
			}
			if !yield(message, err) {
				return
			}
		}
	}
}

// A splitter cuts an mbox into messages, line by line.
type splitter struct {
	r    *bufio.Reader
	from []byte // the begin of the next message's "From " line, already read
	err  error  // of r; nothing follows
}

// next returns the next message, or io.EOF after the last.
func (b *splitter) next() ([]byte, error) {
	message := b.from
	b.from = nil
	lineStart := len(message) == 0 || endsInNewline(message)
	afterEmpty := len(message) == 0
	begun, tooLarge := len(message) > 0, false
	for b.err == nil {
		piece, err := b.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) { // a long line comes in pieces
			b.err = err
		}
		if len(piece) == 0 {
			break
		}
		if lineStart {
			if afterEmpty && bytes.HasPrefix(piece, fromPrefix) && begun {
				b.from = bytes.Clone(piece)
				return finishMessage(message, tooLarge)
			}
			afterEmpty = isEmptyLine(piece)
			if afterEmpty && !begun {
				continue // nothing has begun yet
			}
			if isQuotedFrom(piece) {
				piece = piece[1:]
			}
		}
		begun, lineStart = true, endsInNewline(piece)
		if tooLarge = tooLarge || len(message)+len(piece) > MaxSize+len("\r\n"); tooLarge {
			message = nil
			continue
		}
		message = append(message, piece...)
	}
	switch {
	case b.err != nil && !errors.Is(b.err, io.EOF):
		return nil, b.err
	case !begun:
		return nil, io.EOF
	}
	return finishMessage(message, tooLarge)
}

// finishMessage takes the format's empty line off the end of a message.
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

func isEmptyLine(b []byte) bool { return string(b) == "\n" || string(b) == "\r\n" }

func endsInNewline(b []byte) bool { return len(b) > 0 && b[len(b)-1] == '\n' }
