// Package wholefile writes files that appear as a whole.
package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write makes what write writes the content of the file at path. Whoever reads the file meanwhile,
// or after a crash, has the former content or the new one. Only its owner may read it.
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
	return os.Rename(f.Name(), path)
}
