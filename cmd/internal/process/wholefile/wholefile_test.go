package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A file that cannot be written leaves the former one, and nothing beside it.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, failed := io.WriteString(w, s)
			return errors.Join(failed, err)
		}
	}
	broken := errors.New("broken")
	if err := Write(path, text("one", nil)); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, text("tw", broken)); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil || string(b) != "one" {
		t.Errorf("the file has %q, %v", b, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("the folder has %v, %v", all, err)
	}
	if err := Write(filepath.Join(path, "x"), text("", nil)); err == nil {
		t.Error("a file is no folder")
	}
}
