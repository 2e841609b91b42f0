//go:build unix

package filelog

import (
	"errors"
	"os"
	"syscall"
)

// syncFolder makes names in a folder survive a loss of power.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// full reports whether there was no room, or a limit of the size of files was reached.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
