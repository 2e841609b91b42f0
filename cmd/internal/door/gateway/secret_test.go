package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// A file of tenants that takes the place of another is read, also one of the same size and time.
// One whose tokens every user of the machine may read is not used until its mode is right.
func TestTenantsFileIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, at := filepath.Join(t.TempDir(), "tenants.yaml"), time.Now()
		replace := func(text string, mode os.FileMode) {
			t.Helper()
			made := path + ".new"
			err := errors.Join(os.WriteFile(made, []byte(text), 0o600), os.Chmod(made, mode),
				os.Chtimes(made, at, at), os.Rename(made, path))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * watchInterval)
			synctest.Wait()
		}
		replace("tokens: {one: a}\n", 0o600)
		var log bytes.Buffer
		tenants, err := OpenTenants(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = tenants.Watch(ctx) }()
		known := func(token string) bool { _, ok := tenants.OfToken(token); return ok }
		if replace("tokens: {two: a}\n", 0o600); known("one") || !known("two") {
			t.Error("a file of the same size and time is not read")
		}
		if replace("tokens: {abc: a}\n", 0o604); known("abc") || !known("two") {
			t.Error("a file that everybody may read is used")
		}
		if n := strings.Count(log.String(), "stay as they were"); n != 1 {
			t.Errorf("the log says it %d times:\n%s", n, &log)
		}
		if replace("tokens: {abc: a}\n", 0o640); !known("abc") || known("two") {
			t.Error("a file with the right mode is not read")
		}
	})
}
