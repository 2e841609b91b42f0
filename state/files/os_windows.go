package files

import (
	"errors"

	"golang.org/x/sys/windows"
)

// syncFolder does nothing: Windows does not flush a directory that is open for reading.
func syncFolder(string) error { return nil }

// full reports whether a disk, a quota or a table of open files is full. That may pass.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED) || errors.Is(err, windows.ERROR_TOO_MANY_OPEN_FILES)
}

// broken reports whether the disk cannot read what is on it.
func broken(err error) bool {
	return errors.Is(err, windows.ERROR_CRC) || errors.Is(err, windows.ERROR_READ_FAULT) ||
		errors.Is(err, windows.ERROR_IO_DEVICE)
}
