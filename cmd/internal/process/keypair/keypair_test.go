package keypair

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/testkit/testca"
)

func TestLoadSaysWhatIsWrong(t *testing.T) {
	ca := testca.New(t)
	cert, key := ca.Files(t, "a", testca.Valid)
	expired, expiredKey := ca.Files(t, "a", testca.Expired)
	_, other := ca.Files(t, "b", testca.Valid)
	noPEM := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(noPEM, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	anybodys := filepath.Join(t.TempDir(), "anybodys.key")
	text, err := os.ReadFile(key)
	if err := errors.Join(err, os.WriteFile(anybodys, text, 0o600), os.Chmod(anybodys, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, cert, key, want string }{
		{"a key that all may read", cert, anybodys, "chmod o= " + anybodys},
		{"right", cert, key, ""},
		{"no certificate", filepath.Join(t.TempDir(), "gone"), key, "no such file"},
		{"no key", cert, filepath.Join(t.TempDir(), "gone"), "no such file"},
		{"not PEM", noPEM, key, "no certificate in PEM"},
		{"key not PEM", cert, noPEM, "is not the key of"},
		{"another's key", cert, other, "is not the key of"},
		{"expired", expired, expiredKey, "expired at"},
	} {
		_, err := Load(c.cert, c.key, nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Authorities(testca.Until(t, testca.Expired).File); err == nil || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("an expired authority: %v", err)
	}
	if _, err := Authorities(noPEM); err == nil || !strings.Contains(err.Error(), "no certificate in PEM") {
		t.Errorf("an authority without PEM: %v", err)
	}
	if _, err := Authorities(ca.File); err != nil {
		t.Error(err)
	}
}

// A renewed pair is used at the next handshake. While one of the files is new and the
// other is old, the old pair stays in use, and one warning says so.
func TestPairFollowsTheFiles(t *testing.T) {
	ca := testca.New(t)
	cert, key := ca.Files(t, "old", testca.Valid)
	var log bytes.Buffer
	pair, err := Load(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	name := func() string {
		t.Helper()
		c, err := pair.Server(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.Subject.CommonName
	}
	newCert, newKey := ca.Files(t, "new", testca.Valid)
	for i, c := range []struct {
		change func() error
		want   string
	}{
		{func() error { return nil }, "old"},
		{func() error { return os.Rename(newCert, cert) }, "old"},
		{func() error { return nil }, "old"},
		{func() error { return os.Rename(newKey, key) }, "new"},
		{func() error { return os.Remove(cert) }, "new"},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if got := name(); got != c.want {
			t.Errorf("step %d: the certificate of %s, want of %s", i, got, c.want)
		}
	}
	if n := strings.Count(log.String(), "is not the key of"); n != 1 {
		t.Errorf("%d warnings of the half-changed pair, want one:\n%s", n, log.String())
	}
}
