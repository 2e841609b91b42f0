// Package jsonlines is a conversation in JSON Lines: a request a line, a reply a line,
// in order. `hamlet-lab fit` and `hamlet pipe` have it with other programs.
//
//	err := jsonlines.Serve(ctx, os.Stdin, os.Stdout, func(ctx context.Context, request []byte) ([]byte, error) {
//		return []byte(`{"length":` + strconv.Itoa(len(request)) + `}`), nil
//	})
package jsonlines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"hamlet/cmd/internal/data/source"
)

// A FailedError reports that some lines were answered with an error.
type FailedError struct {
	Failed, Requests int
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("%d of %d requests could not be answered; their replies say why", e.Failed, e.Requests)
}

// ExitCode returns 1.
func (e *FailedError) ExitCode() int { return 1 }

// An Answer returns the reply to a request.
type Answer = func(ctx context.Context, request []byte) (reply []byte, err error)

// maxLine bounds a request: about ten million numbers.
const maxLine = 256 << 20

// A line is one line of input without its newline, or an error.
type line struct {
	text []byte
	err  error
}

// Serve reads requests from r, one a line, and writes a reply to w for each, in
// order, as soon as it is known and in a single Write. The reply is what answer
// returns, or {"error": "…"} with its error. A panic of answer is such an error too.
// So is a line of more than 256 MiB. Blank lines are skipped, and one line is read ahead.
//
// Serve returns nil at the end of r if every request could be answered, and a
// *[FailedError] if it could not. An error of r or w, or the end of ctx, stops it early.
// A request that ctx interrupts gets no reply. A goroutine may then remain in r.Read
// until that returns.
func Serve(ctx context.Context, r io.Reader, w io.Writer, answer Answer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	lines := make(chan line)
	go func() {
		defer close(lines)
		for text, err := range source.Lines(bufio.NewReaderSize(r, 64<<10), maxLine) {
			select {
			case lines <- line{bytes.Clone(text), err}:
			case <-ctx.Done():
				return
			}
		}
	}()

	var count FailedError
	for {
		var l line
		more := true
		select {
		case l, more = <-lines:
		case <-ctx.Done():
			return stopped(ctx)
		}
		var reply []byte
		err := l.err
		switch {
		case !more && ctx.Err() != nil:
			return stopped(ctx)
		case !more && count.Failed > 0:
			return &count
		case !more:
			return nil
		case err == nil:
			if len(bytes.TrimSpace(l.text)) == 0 {
				continue
			}
			reply, err = protect(ctx, l.text, answer)
		case !errors.Is(err, source.ErrLineTooLong):
			return fmt.Errorf("read request %d: %w", count.Requests+1, err)
		}
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		count.Requests++
		if err != nil {
			count.Failed++
			reply = AppendError(nil, err)
		}
		if _, err := w.Write(append(reply, '\n')); err != nil {
			return fmt.Errorf("write reply %d: %w", count.Requests, err)
		}
	}
}

func stopped(ctx context.Context) error {
	return fmt.Errorf("stopped: %w", context.Cause(ctx))
}

// protect calls answer. It turns a panic, which is a bug in hamlet, into an error.
func protect(ctx context.Context, text []byte, answer Answer) (reply []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = nil, fmt.Errorf("a bug in hamlet, please report it with the request: %v", p)
		}
	}()
	return answer(ctx, text)
}

// AppendError appends {"error": …}.
func AppendError(dst []byte, err error) []byte {
	dst = append(dst, `{"error":`...)
	dst = AppendString(dst, err.Error())
	return append(dst, '}')
}

// AppendString appends s in JSON, without the escapes that HTML would need.
func AppendString(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // JSON can encode every string
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
