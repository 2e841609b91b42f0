package lockfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// File locks an open file until it is closed, alone or shared. It does not wait: it returns
// [ErrLocked].
func File(f *os.File, shared bool) error {
	if shared {
		return lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY)
	}
	return lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY|windows.LOCKFILE_EXCLUSIVE_LOCK)
}

// Wait locks an open file for this program alone, until it is closed, and waits for that.
func Wait(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func lock(f *os.File, how uint32) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}
