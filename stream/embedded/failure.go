package embedded

import (
	"errors"
	"fmt"
	"syscall"
)

// explain says what to do about an error of the system. It returns others as they are.
func explain(dir string, err error) error {
	var system syscall.Errno
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk of %s is full: make room and start again, it goes on where it ended: %w", dir, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("too few files and connections may be open at once: allow more (ulimit -n) and start again: %w", err)
	case errors.As(err, &system):
		return fmt.Errorf("%s cannot be written: mend that and start again, it goes on where it ended: %w", dir, err)
	}
	return err
}
