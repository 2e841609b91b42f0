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

// ErrLineTooLong means that a line was skipped; the next may be read.
var ErrLineTooLong = errors.New("the line is too long")

// Lines yields the lines of r without newlines, each valid until the next one. It skips
// a line of more than most bytes and yields [ErrLineTooLong] for it. Any other error is
// the last. A byte order mark before the first line is dropped.
func Lines(r io.Reader, most int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		buffered, ok := r.(*bufio.Reader)
		if !ok {
			buffered = bufio.NewReader(r)
		}
		var buf []byte
		for first := true; ; first = false {
			line, err := nextLine(buffered, buf[:0], most)
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				buf = line
				line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			}
			if first {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			if !yield(line, err) || err != nil && !errors.Is(err, ErrLineTooLong) {
				return
			}
		}
	}
}

// nextLine appends the next line to buf, with its newline, or returns io.EOF.
func nextLine(r *bufio.Reader, buf []byte, most int) ([]byte, error) {
	length := 0
	for {
		part, err := r.ReadSlice('\n')
		if length += len(part); length <= most {
			buf = append(buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || length == 0):
			return nil, err
		case length > most:
			return nil, fmt.Errorf("%w: it has more than %d bytes", ErrLineTooLong, most)
		}
		return buf, nil
	}
}

// errSkip means that a line holds no item.
var errSkip = errors.New("no item")

// A lineParser reads one line into a draft without its place. It must not keep line.
type lineParser func(line []byte) (draft, error)

// eventLine returns the lineParser of lines that are all events.
func eventLine(parse func(line []byte) (stream.Event, error)) lineParser {
	return func(line []byte) (d draft, err error) {
		d.event, err = parse(line)
		return d, err
	}
}

// eachLine reads the inputs in order, one item per line. It skips blank lines.
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
	n := 0
	for line, err := range Lines(r, maxLine) {
		n++
		var d draft
		switch {
		case err == nil && len(bytes.TrimSpace(line)) == 0:
			continue
		case err == nil:
			d, err = parse(line)
		case !errors.Is(err, ErrLineTooLong):
			yield(draft{}, fmt.Errorf("%s: read line %d: %w", in.name, n, err))
			return false
		}
		if errors.Is(err, errSkip) {
			continue
		}
		d.place = fmt.Sprintf("%s:%d", in.name, n)
		if err != nil {
			err = &Rejection{Place: d.place, Err: err}
		}
		if !yield(d, err) {
			return false
		}
	}
	return true
}
