package lockfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

// One has the file for itself, or several share it.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := Share(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sharing a file that is missing: %v", err)
	}
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, lock := range map[string]func(string) (func() error, error){"Lock": Lock, "Share": Share} {
		if _, err := lock(path); !errors.Is(err, ErrLocked) {
			t.Errorf("%s of what is locked: %v", name, err)
		}
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		unlock, err := Share(path)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
	}
	if _, err := Lock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a lock of what is shared: %v", err)
	}
}
