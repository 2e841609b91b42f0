package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// A failure is why a server can no longer keep what it is given: its disk is full, or
// it cannot open files or connections. The server's owner stops it then and starts it
// again when the cause is mended.
type failure struct {
	dir string // of the server's data; empty: in memory

	once  sync.Once
	known chan struct{} // closed once err is set
	err   error         // the first one; record writes it once
}

func newFailure(dir string) *failure { return &failure{dir: dir, known: make(chan struct{})} }

// record notes the first error, as explain has made it.
func (f *failure) record(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.known)
	})
}

// get returns the error, nil as long as there is none.
func (f *failure) get() error {
	select {
	case <-f.known:
		return f.err
	default:
		return nil
	}
}

// Wait blocks until ctx ends, and returns nil, or until the server cannot go on, and
// returns why and what to do. What the server has acknowledged before is on disk.
func (f *failure) Wait(ctx context.Context) error {
	select {
	case <-f.known:
		return f.err
	case <-ctx.Done():
		return nil
	}
}

// explain says what to do about an error of the system. It returns others as they are.
func explain(dir string, err error) error {
	var system syscall.Errno
	switch {
	case outOfSpace(err):
		return fmt.Errorf("the disk of %s is full, or a limit of size is reached: make room and start again, it goes on where it ended: %w", dir, err)
	case outOfFiles(err):
		return fmt.Errorf("too few files and connections may be open at once: allow more (ulimit -n) and start again: %w", err)
	case dir != "" && errors.As(err, &system):
		return fmt.Errorf("%s cannot be written: mend that and start again, it goes on where it ended: %w", dir, err)
	}
	return err
}

func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// A patientListener accepts again after an error such as too many open files, which
// may pass when clients leave. An error that lasts is recorded as a failure. Without
// it, kfake would never accept again.
type patientListener struct {
	net.Listener
	failure *failure
}

const (
	// acceptPause is the pause after a failed accept, as long as net/http's longest.
	acceptPause = time.Second

	// acceptPatience is how long accepting may fail. Clients time out earlier.
	acceptPatience = 15 * time.Second
)

// Accept returns net.ErrClosed, and no other error, at most a pause after Close.
func (l patientListener) Accept() (net.Conn, error) {
	var failing time.Time
	for {
		conn, err := l.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return conn, err
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		if time.Since(failing) >= acceptPatience {
			l.failure.record(explain("", err))
		}
		time.Sleep(acceptPause)
	}
}
