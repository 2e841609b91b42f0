//go:build unix

package filelog

import (
	"errors"
	"syscall"
)

// full reports whether there was no room, or a limit of the size of files was reached.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
