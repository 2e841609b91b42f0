//go:build unix

package secretfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhoMayReadIt(t *testing.T) {
	dir := t.TempDir()
	for mode, ok := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o640: true, 0o440: true, 0o660: true,
		0o644: false, 0o604: false, 0o602: false, 0o666: false, 0o444: false,
	} {
		path := filepath.Join(dir, fmt.Sprintf("%o", mode))
		if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // not the umask's
			t.Fatal(err)
		}
		link := path + ".link" // as Kubernetes mounts them; its own mode is 0777
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, link} {
			text, err := Read(p, 6)
			if (err == nil) != ok || ok && string(text) != "secret" {
				t.Errorf("mode %#o: %q, %v", mode, text, err)
			}
			if got := Check(p); (got == nil) != ok {
				t.Errorf("mode %#o: Check says %v", mode, got)
			}
			if text, unfit, err := ReadAny(p, 6); (unfit == nil) != ok || err != nil || string(text) != "secret" {
				t.Errorf("mode %#o: ReadAny returns %q, %v, %v", mode, text, unfit, err)
			}
			if err != nil && !strings.Contains(err.Error(), "chmod o= "+p) {
				t.Errorf("mode %#o: %v; want what to do", mode, err)
			}
		}
	}
	if _, err := Read(filepath.Join(dir, "600"), 5); err == nil || !strings.Contains(err.Error(), "larger than 5 bytes") {
		t.Errorf("a large file: %v", err)
	}
}

// A file may belong to root or to the user of the program. Root takes everybody's.
func TestWhoseItMayBe(t *testing.T) {
	for _, c := range []struct {
		us, owner int
		want      bool
	}{{1000, 1000, true}, {1000, 0, true}, {1000, 1001, false}, {0, 0, true}, {0, 1000, true}} {
		if got := trusts(c.us, c.owner); got != c.want {
			t.Errorf("user %d, owner %d: %v", c.us, c.owner, got)
		}
	}
}

// A shell's <(command) is a pipe.
func TestPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("secret"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /dev/fd")
	}
	if text, err := Read(path, 100); err != nil || string(text) != "secret" {
		t.Errorf("%q, %v", text, err)
	}
}
