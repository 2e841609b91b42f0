//go:build unix

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// File locks an open file until it is closed, alone or shared. It does not wait: it returns
// [ErrLocked].
func File(f *os.File, shared bool) error {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	return flock(f, how|syscall.LOCK_NB)
}

// Wait locks an open file for this program alone, until it is closed, and waits for that.
func Wait(f *os.File) error { return flock(f, syscall.LOCK_EX) }

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		case !errors.Is(err, syscall.EINTR):
			return err
		}
	}
}
