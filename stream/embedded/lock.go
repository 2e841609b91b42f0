package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hamlet/stream/lockfile"
)

// startTimeout bounds the wait for a server in this process.
const startTimeout = 10 * time.Second

// openDir makes dir if it is missing, locks it and returns its absolute path. Without a dir it does
// nothing. unlock is never nil.
func openDir(dir string) (path string, unlock func() error, err error) {
	unlock = func() error { return nil }
	if dir == "" {
		return "", unlock, nil
	}
	if path, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return "", unlock, fmt.Errorf("data directory %s: %w; name one that can be written", dir, err)
	}
	locked, err := lockfile.Lock(filepath.Join(path, ".lock"))
	switch {
	case errors.Is(err, lockfile.ErrLocked):
		return "", unlock, fmt.Errorf("data directory %s: another hamlet uses it; stop that one or name another directory", path)
	case err != nil:
		return "", unlock, fmt.Errorf("data directory %s: %w; name one that can be written", path, err)
	}
	return path, locked, nil
}
