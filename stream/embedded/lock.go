package embedded

import (
	"errors"
	"fmt"
	"io/fs"
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
	return flock(f, dir, syscall.LOCK_EX)
}

// ShareDir locks dir together with others that only read it, until unlock is called or the
// process dies. Meanwhile [LockDir] fails. It writes nothing: a directory that was never
// locked, or whose lock this user may not open, is not locked.
func ShareDir(dir string) (unlock func() error, err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	return flock(f, dir, syscall.LOCK_SH)
}

// flock locks the file, and closes it if that fails.
func flock(f *os.File, dir string, how int) (unlock func() error, err error) {
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
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
