package filelog

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// ErrLocked: another program has the log open.
var ErrLocked = errors.New("another program has it open")

// lock locks a file, which it makes, until unlock is called or the process ends.
func lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// syncFolder does nothing: Windows keeps names by itself, and has no call for it.
func syncFolder(string) error { return nil }

// full reports whether there was no room.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
