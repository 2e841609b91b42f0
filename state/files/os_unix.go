//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// syncFolder makes the names in a directory survive a loss of power.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// full reports whether a disk, a quota or a table of open files is full, or a limit of the size of files
// was reached. That may pass.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// broken reports whether the disk cannot read what is on it.
func broken(err error) bool { return errors.Is(err, syscall.EIO) }
