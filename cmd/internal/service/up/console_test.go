package up

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is no terminal may be a journal that others read: the link goes into a file.
func TestConsoleLinkIsNotLogged(t *testing.T) {
	const secret = "/login/link/abc"
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	for name, dir := range map[string]string{"--data": t.TempDir(), "in memory": ""} {
		var said bytes.Buffer
		l, err := newConsoleLink(&said, dir)
		if err != nil {
			t.Fatal(err)
		}
		if dir != "" && l.path != filepath.Join(dir, "console-link") || dir == "" && filepath.Dir(l.path) != filepath.Join(runtime, "hamlet") {
			t.Errorf("%s: the link is in %s", name, l.path)
		}
		// What stands there before, such as a link to another file, is replaced.
		other := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(other, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(other, l.path); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.show("http://127.0.0.1:9", secret); err != nil {
				t.Fatal(err)
			}
		}
		if said := said.String(); strings.Contains(said, secret) || !strings.Contains(said, l.path) || !strings.Contains(said, "  console http://127.0.0.1:9\n") {
			t.Errorf("%s: it says\n%s", name, said)
		}
		text, err := os.ReadFile(l.path)
		if err != nil || string(text) != "http://127.0.0.1:9"+secret+"\n" {
			t.Errorf("%s: the file: %q, %v", name, text, err)
		}
		if info, err := os.Lstat(l.path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: the file: %v, %v; want mode 0600", name, info.Mode(), err)
		}
		if text, err := os.ReadFile(other); err != nil || len(text) > 0 {
			t.Errorf("%s: another file was written: %q, %v", name, text, err)
		}
		l.remove()
		if left, err := os.ReadDir(filepath.Dir(l.path)); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}
	}
}
