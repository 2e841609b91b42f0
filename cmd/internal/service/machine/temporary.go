package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"hamlet/cmd/internal/process/secretfile"
)

const (
	temporaryName = "hamlet-up-"
	temporaryMark = ".temporary" // the file that says that a directory is one
)

var temporaryFolder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^` + temporaryName + `[0-9]+$`)
})

// Temporary makes a directory for a machine that ends with its program. remove deletes it. It deletes
// those of this user's programs that were killed.
func Temporary() (path string, remove func(), err error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryName+"*"))
	for _, dir := range left {
		if !abandoned(dir) {
			continue
		}
		if unlock, err := Lock(dir); err == nil { // nobody's any more
			_ = os.RemoveAll(dir)
			_ = unlock()
		}
	}
	path, err = os.MkdirTemp("", temporaryName)
	if err == nil {
		err = os.WriteFile(filepath.Join(path, temporaryMark), nil, 0o600)
	}
	if err != nil {
		return "", nil, fmt.Errorf("a temporary folder: %w", err)
	}
	return path, func() { _ = os.RemoveAll(path) }, nil
}

// abandoned reports whether Temporary has made a directory, for this user, and not just now: its program may be
// about to lock it.
func abandoned(dir string) bool {
	if !temporaryFolder().MatchString(filepath.Base(dir)) {
		return false
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || !secretfile.Ours(info) || !secretfile.Private(info) {
		return false
	}
	mark, err := os.Lstat(filepath.Join(dir, temporaryMark))
	return err == nil && mark.Mode().IsRegular() && time.Since(mark.ModTime()) > time.Minute
}
