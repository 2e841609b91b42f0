//go:build unix

package disk

import (
	"errors"
	"os"
)

// Sync implements [Folder].
func (d Dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
