// Package filter passes one message from a reader to a writer and marks it on the way.
// Procmail, maildrop and Sieve start it for each message that they deliver.
//
//	cfg := filter.Config{Addr: filter.DefaultAddr, Timeout: filter.DefaultTimeout}
//	unmarked, err := filter.Run(cfg, os.Stdin, os.Stdout)
//
// It asks the spamd door of `hamlet gateway` for the message's new header, with HEADERS
// of spamd's protocol. It writes that header and then the message's own body.
//
//	message ─┬─ HEADERS ─> gateway ─> new header ─ checked against the old one ─> written
//	         └─ body, byte for byte ────────────────────────────────────────────> written
//
// # Rules
//
//   - A message is never lost or changed because of hamlet. Without an answer in time,
//     and with an answer that is not right, the message passes byte for byte.
//   - A right answer has all fields of the message, unchanged and in order. Only marks
//     (fields X-Hamlet… and X-Spam-…) may come and go, and a tag may stand before the
//     subject's text.
//   - Nothing is written before it is known what to write. Where the rest cannot be
//     written, the status is 75: the reader drops what came and tries again.
//   - Memory is bounded by three times MaxSize. A longer message passes as it comes.
//   - It imports nothing but the standard library, because it starts for every message.
package filter

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Defaults of the flags.
const (
	DefaultAddr    = "unix:/run/hamlet/spamd.sock"
	DefaultTimeout = 3 * time.Second // a gateway that hears nothing answers after two
	Variable       = "HAMLET_FILTER" // the environment variable of Config.Addr
)

// MaxSize is the longest message, in bytes, that is marked. It is mail.MaxSize.
const MaxSize = 25 << 20

// Exit statuses of the programs.
const (
	StatusUsage    = 2
	StatusTempFail = 75 // EX_TEMPFAIL of sysexits.h: try again later
)

// A Config says whom to ask.
type Config struct {
	Addr    string        // host:port or unix:PATH of a spamd door
	User    string        // whose mail it is; empty: the door's default
	Timeout time.Duration // for connection, question and answer together
}

// Check reports what cannot be asked.
func (c Config) Check() error {
	var errs []error
	if path, unix := strings.CutPrefix(c.Addr, "unix:"); unix && path == "" {
		errs = append(errs, fmt.Errorf("--socket: %q names no file", c.Addr))
	} else if _, _, err := net.SplitHostPort(c.Addr); !unix && err != nil {
		errs = append(errs, fmt.Errorf("--socket: %q is neither unix:PATH nor host:port", c.Addr))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout: %v is not above zero", c.Timeout))
	}
	if strings.ContainsFunc(c.User, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		errs = append(errs, fmt.Errorf("--user: %q has a control character", c.User))
	}
	return errors.Join(errs...)
}

// A TempFailError says that the message was not passed as a whole. Its reader must drop
// what came and try again later.
type TempFailError struct{ Err error }

func (e *TempFailError) Error() string { return e.Err.Error() }
func (e *TempFailError) Unwrap() error { return e.Err }

// ExitCode is the status of a program that fails with e.
func (e *TempFailError) ExitCode() int { return StatusTempFail }

// Run passes a message from in to out. Unmarked says why the message was passed as it
// came; it is nil if the message has its marks. Err is a *TempFailError; then out lacks
// a part of the message. An out that can be closed is closed, because some file systems
// tell only then that a disk is full.
func Run(cfg Config, in io.Reader, out io.Writer) (unmarked, err error) {
	message, whole, err := read(in)
	if err != nil {
		return nil, &TempFailError{fmt.Errorf("read the message: %w", err)}
	}
	header, body := []byte(nil), message
	switch {
	case !whole:
		unmarked = fmt.Errorf("it is longer than %d MiB", MaxSize>>20)
	case len(message) > 0:
		header, body, unmarked = cfg.ask(message)
	}
	err = write(out, header, body)
	if err == nil && !whole {
		_, err = io.Copy(out, in)
	}
	if c, ok := out.(io.Closer); ok && err == nil {
		err = c.Close()
	}
	if err != nil {
		return unmarked, &TempFailError{fmt.Errorf("pass the message on: %w", err)}
	}
	return unmarked, nil
}

func write(out io.Writer, parts ...[]byte) error {
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		if _, err := out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// firstRead is the space for a message at first. Most messages fit.
const firstRead = 64 << 10

// read reads the message, or its first MaxSize+1 bytes if it is longer.
func read(in io.Reader) (message []byte, whole bool, err error) {
	message = make([]byte, 0, firstRead)
	for len(message) <= MaxSize {
		if len(message) == cap(message) {
			larger := make([]byte, len(message), min(2*cap(message), MaxSize+1))
			copy(larger, message)
			message = larger
		}
		n, err := in.Read(message[len(message):cap(message)])
		message = message[:len(message)+n]
		if err == io.EOF {
			return message, len(message) <= MaxSize, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return message, false, nil
}

// ask returns the message's new header and its body. When there is no right answer it
// returns an error, no header and the whole message as the body.
func (c Config) ask(message []byte) (header, body []byte, err error) {
	header, err = c.question(message)
	if err == nil {
		body, err = match(message, header)
	}
	if err != nil {
		return nil, message, err
	}
	return header, body, nil
}
