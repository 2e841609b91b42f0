// Package wholefile writes files that appear as a whole.
package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Write makes what write writes the content of the file at path. Whoever reads the file meanwhile,
// or after a crash, has the former content or the new one; once Write has returned, the new one, after a
// loss of power as well (on Windows the former one may come back). Only its owner may read it.
func Write(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder survive a loss of power. Windows does not flush a folder that is open
// for reading.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
