package backup

import (
	"os"
	"path/filepath"
	"testing"
)

// What is still being written, or has another name, is no backup.
func TestUnfinishedIsNoBackup(t *testing.T) {
	f := folder{t.TempDir()}
	const whole = "20261123T201500.123Z-0123456789abcdef0123456789abcdef.json"
	for _, name := range []string{whole, unfinished + "123", "20261123T201500.123Z-0123.json", "notes.json", whole + ".part"} {
		if err := os.WriteFile(filepath.Join(f.path, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := f.list(); err != nil || len(names) != 1 || names[0] != whole {
		t.Errorf("%q, %v", names, err)
	}
}
