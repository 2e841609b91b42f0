package gateway

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of tenants is secret if it has tokens.
func TestTenantsWithTokensAreSecret(t *testing.T) {
	for text, ok := range map[string]bool{"users: {a: b}\n": true, "tokens: {secret: b}\n": false} {
		path := filepath.Join(t.TempDir(), "tenants.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenTenants(path, slog.New(slog.DiscardHandler))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "chmod o= "+path) {
			t.Errorf("%q: %v", text, err)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTenants(path, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("%q, mode 0640: %v", text, err)
		}
	}
}
