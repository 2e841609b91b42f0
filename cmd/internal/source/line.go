package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"hamlet/stream"
)

// maxLine bounds a line: the largest mail, 25 MB, in base64 within an event.
const maxLine = 36 << 20

// ErrLineTooLong says that a line was skipped; the next may be read.
var ErrLineTooLong = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// Lines yields the lines of r without their ends, each valid until the next one. A
// line of more than max bytes is skipped and yielded as [ErrLineTooLong]; any other
// error ends the reading.
func Lines(r io.Reader, max int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		l := lines{r: bufio.NewReader(r), max: max}
		for {
			line, err := l.next()
			if errors.Is(err, io.EOF) || !yield(line, err) || err != nil && !errors.Is(err, ErrLineTooLong) {
				return
			}
		}
	}
}

// lines reads lines of any length up to maxLine in little memory.
type lines struct {
	r   *bufio.Reader
	n   int // of the last line, from 1
	buf []byte
	max int
}

// next returns the next line without its end; it is valid until the call after.
// A line that is too long is skipped and returned as ErrLineTooLong.
func (l *lines) next() ([]byte, error) {
	l.buf = l.buf[:0]
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		if !tooLong && len(l.buf)+len(part) > l.max {
			tooLong = true
			l.buf = nil
		}
		whole := err == nil && len(l.buf) == 0
		if !tooLong && !whole {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(l.buf) == 0 && !tooLong):
			return nil, err
		}
		l.n++
		if tooLong {
			return nil, ErrLineTooLong
		}
		line := l.buf
		if whole {
			line = part
		}
		if l.n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
	}
}

// errSkip says that a line holds no item.
var errSkip = errors.New("no item")

// A lineParser reads one line, the n-th of its file from 1, into an event
// without an id. It must not keep line.
type lineParser func(line []byte, n int) (stream.Event, error)

// eachLine reads the inputs one after the other, an item a line. Blank lines are
// none.
func eachLine(inputs []*input, parse lineParser) drafts {
	return func(yield func(draft, error) bool) {
		for _, in := range inputs {
			if !linesOf(in, parse, yield) {
				return
			}
		}
	}
}

func linesOf(in *input, parse lineParser, yield func(draft, error) bool) (more bool) {
	r, closer, err := in.open()
	if err != nil {
		yield(draft{}, err)
		return false
	}
	defer closer()
	l := lines{r: r, max: maxLine}
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil && !errors.Is(err, ErrLineTooLong) {
			yield(draft{}, fmt.Errorf("%s: read line %d: %w", in.name, l.n+1, err))
			return false
		}
		var e stream.Event
		if err == nil {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			e, err = parse(line, l.n)
		}
		if errors.Is(err, errSkip) {
			continue
		}
		place := fmt.Sprintf("%s:%d", in.name, l.n)
		if err != nil {
			if !yield(rejected(place, err)) {
				return false
			}
			continue
		}
		if !yield(draft{e, place}, nil) {
			return false
		}
	}
}
