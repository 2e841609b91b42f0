// Package lockfile locks files, so that one program at a time uses what they stand for. The system
// frees a lock when its program ends, however that was.
//
//	unlock, err := lockfile.Lock("data/lock")
//	if err != nil {
//		return err // errors.Is(err, lockfile.ErrLocked): another program has it
//	}
//	defer unlock()
//
// The file stays: to remove it would race with the next program.
package lockfile

import (
	"errors"
	"os"
)

// ErrLocked: another program has the lock.
var ErrLocked = errors.New("another program has it open")

// Lock locks a file, which it makes if it is missing, until unlock is called or the process ends.
func Lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return closing(f, File(f, false))
}

// Share locks a file together with others that share it. Meanwhile [Lock] fails. It makes no file.
func Share(path string) (unlock func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return closing(f, File(f, true))
}

func closing(f *os.File, err error) (unlock func() error, _ error) {
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil // closing a file unlocks it
}
