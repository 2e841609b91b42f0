package filelog

import (
	"errors"

	"golang.org/x/sys/windows"
)

// syncFolder does nothing: Windows keeps names by itself, and has no call for it.
func syncFolder(string) error { return nil }

// full reports whether there was no room.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
