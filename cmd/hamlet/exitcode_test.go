package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
)

// Wrong usage is never the status of "unsure" to who asked for statuses, wherever.
func TestWrongUsageIsNotUnsure(t *testing.T) {
	for _, c := range []struct {
		file string // the configuration
		args string
		want int
	}{
		{"", "score --exit-code --nonsense m", 3},
		{"", "score --nonsense m", 2},
		{"score:\n  exit-code: true\n", "score --nonsense m", 3},
		{"score:\n  exit-code: true\n", "score m", 3},
		{"exit-code: true\n", "score m", 3},
		{"exit-code: true\n", "eval m", 2},
		{"score:\n  text: true\n", "score m", 2},
		{"score:\n  text: true\n", "score --exit-code m", 3},
	} {
		args := strings.Fields(c.args)
		if c.file != "" {
			path := filepath.Join(t.TempDir(), "hamlet.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--config="+path)
		}
		err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if got := cli.Status(err); got != c.want {
			t.Errorf("%q, %s: status %d (%v), want %d", c.file, c.args, got, err, c.want)
		}
	}
}
