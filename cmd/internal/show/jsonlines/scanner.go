package jsonlines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a request: about ten million numbers.
const maxLine = 256 << 20

var errLineTooLong = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// A line is one line of input without its newline, or an error.
type line struct {
	text []byte
	err  error
}

// A scanner reads lines of up to max bytes. Unlike bufio.Scanner it can skip longer ones.
type scanner struct {
	r     *bufio.Reader
	max   int
	first bool
}

func newScanner(r io.Reader, max int) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, 64<<10), max: max, first: true}
}

// next returns the next line. After errLineTooLong it may be called again. Other errors
// are io.EOF or the reader's.
func (s *scanner) next() line {
	var text []byte
	tooLong, any := false, false
	for {
		part, err := s.r.ReadSlice('\n')
		any = any || len(part) > 0
		if s.first {
			part, s.first = bytes.TrimPrefix(part, []byte("\ufeff")), false
		}
		if len(text)+len(bytes.TrimSuffix(part, []byte("\n"))) > s.max {
			tooLong, text = true, nil
		}
		if !tooLong {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || !any):
			return line{err: err}
		case tooLong:
			return line{err: errLineTooLong}
		}
		return line{text: bytes.TrimSuffix(text, []byte("\n"))}
	}
}
