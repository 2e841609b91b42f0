package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is the file in a data directory that its owner locks. It is never
// removed: that would race with the next owner.
const lockName = ".lock"

// LockDir creates dir if it is missing and locks it with flock until unlock is called
// or the process dies. The error names the directory, and says if another process uses
// it.
func LockDir(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s: %w; name one that can be written", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w; name one that can be written", dir, err)
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s: another hamlet uses it; stop that one or name another directory", dir)
		}
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	return f.Close, nil // closing the file unlocks it
}

// openDir locks dir and returns its absolute path. Without a dir it does nothing.
// unlock is never nil.
func openDir(dir string) (path string, unlock func() error, err error) {
	unlock = func() error { return nil }
	if dir == "" {
		return "", unlock, nil
	}
	if path, err = filepath.Abs(dir); err != nil {
		return "", unlock, err
	}
	locked, err := LockDir(path)
	if err != nil {
		return "", unlock, err
	}
	return path, locked, nil
}
