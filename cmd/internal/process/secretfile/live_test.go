package secretfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file is read again when it was replaced or written, and not otherwise. A mistake changes
// nothing, and is told once for each file.
func TestLive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	at := time.Now().Truncate(time.Second)
	write := func(path, text string) {
		t.Helper()
		err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at))
		if err != nil {
			t.Fatal(err)
		}
	}
	replace := func(text string) {
		t.Helper()
		write(path+".new", text)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	reads := 0
	write(path, "a")
	live, err := Open(func() (string, error) {
		reads++
		text, err := Read(path, 2)
		return string(text), err
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name    string
		do      func()
		want    string // what Get returns then
		changed bool
		told    bool // Refresh returns an error
		reads   int
	}{
		{"nothing", func() {}, "a", false, false, 0},
		{"another file of the same size and time", func() { replace("b") }, "b", true, false, 1},
		{"the same file with another size", func() { write(path, "cc") }, "cc", true, false, 1},
		{"the same file with another time", func() { at = at.Add(time.Second); write(path, "dd") }, "dd", true, false, 1},
		{"a mistake", func() { replace("eee") }, "dd", false, true, 1},
		{"the same mistake", func() {}, "dd", false, false, 1},
		{"a mistake in another file", func() { replace("fff") }, "dd", false, true, 1},
		{"no file", func() { _ = os.Remove(path) }, "dd", false, true, 1},
		{"still none", func() {}, "dd", false, false, 1},
		{"a file again", func() { replace("g") }, "g", true, false, 1},
		{"one that all may read", func() { replace("h"); _ = os.Chmod(path, 0o604) }, "g", false, true, 1},
		{"which is mended", func() { _ = os.Chmod(path, 0o600) }, "h", true, false, 1},
		{"nothing again", func() {}, "h", false, false, 0},
	} {
		step.do()
		before := reads
		changed, err := live.Refresh()
		if changed != step.changed || (err != nil) != step.told || *live.Get() != step.want || reads-before != step.reads {
			t.Errorf("%s: %q, changed %v, %v, read %d times", step.name, *live.Get(), changed, err, reads-before)
		}
	}
	replace("i")
	if err := live.Reload(); err != nil || *live.Get() != "i" {
		t.Errorf("Reload: %q, %v", *live.Get(), err)
	}
}
