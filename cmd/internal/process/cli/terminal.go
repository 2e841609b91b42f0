package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// IsTerminal reports whether a program's standard input is a terminal.
func IsTerminal(in io.Reader) bool {
	if r, ok := in.(*interruptible); ok {
		in = r.from
	}
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ReadLine reads an answer from a terminal, without its end of line.
func ReadLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(in).ReadString('\n')
	return strings.TrimSpace(line), err
}

// ReadSecret reads a line as ReadLine does, with its blanks. A terminal does not show it, and
// is as before when ctx ends.
func ReadSecret(ctx context.Context, in io.Reader) (string, error) {
	if !IsTerminal(in) {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err == io.EOF && line != "" {
			err = nil
		}
		return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), err
	}
	if r, ok := in.(*interruptible); ok {
		in = r.from
	}
	fd := int(in.(*os.File).Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type answer struct {
		line []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		line, err := term.ReadPassword(fd)
		read <- answer{line, err}
	}()
	select {
	case a := <-read:
		return string(a.line), a.err
	case <-ctx.Done():
		if err := term.Restore(fd, before); err != nil {
			return "", fmt.Errorf("give the terminal its echo back: %w", err)
		}
		return "", ctx.Err()
	}
}

// controlC and controlD are what a terminal without line editing gives for ^C and ^D.
const (
	controlC = 3
	controlD = 4
)

// ReadKey reads one byte. A terminal gives it without the key Enter, and is as before afterwards, also when
// ctx ends. Its ^C and ^D are the end of the input.
func ReadKey(ctx context.Context, in io.Reader) (byte, error) {
	var key [1]byte
	if !IsTerminal(in) {
		_, err := io.ReadFull(in, key[:])
		return key[0], err
	}
	if r, ok := in.(*interruptible); ok {
		in = r.from
	}
	fd := int(in.(*os.File).Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return 0, err
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(in, key[:])
		read <- err
	}()
	select {
	case err = <-read:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if restored := term.Restore(fd, before); restored != nil {
		return 0, fmt.Errorf("give the terminal its lines back: %w", restored)
	}
	switch {
	case err != nil:
		return 0, err
	case key[0] == controlC || key[0] == controlD:
		return 0, io.EOF
	}
	return key[0], nil
}

// An interruptible is a reader that gives up when a context ends. A read of
// standard input alone cannot be interrupted: a pipe may be quiet for hours.
type interruptible struct {
	ctx  context.Context
	from io.Reader

	once sync.Once
	pipe *io.PipeReader
}

func (r *interruptible) Read(b []byte) (int, error) {
	r.once.Do(func() {
		var w *io.PipeWriter
		r.pipe, w = io.Pipe()
		context.AfterFunc(r.ctx, func() { w.CloseWithError(context.Canceled) })
		go func() {
			_, err := io.CopyBuffer(w, r.from, make([]byte, 256<<10))
			w.CloseWithError(err)
		}()
	})
	return r.pipe.Read(b)
}
