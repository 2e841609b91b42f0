package orderlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/orderlog"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
)

// An exported order gives the same items, packed or not, and one that was changed or cut off
// is refused.
func TestExport(t *testing.T) {
	r := newRig(t)
	r.append(sequencer.Beginning("w", 1, make([]state.Position, 2), [32]byte{}), upTo(1, 0, 1), upTo(0, 0, 2), upTo(1, 0, 3))
	want, err := r.items()
	if err != nil || len(want) != 5 {
		t.Fatalf("%q, %v", want, err)
	}
	items := func(path string) (got []string, err error) {
		for item, itemErr := range orderlog.FileItems(path) {
			got, err = appendItem(got, item, itemErr)
			if err != nil {
				return got, err
			}
		}
		return got, nil
	}
	dir := t.TempDir()
	for _, name := range []string{"order", "order.gz", "order.zst"} {
		path := filepath.Join(dir, name)
		done, err := orderlog.Export(t.Context(), r.cfg, "m", path)
		if err != nil || done != (orderlog.Exported{Records: 5, Order: 4}) {
			t.Errorf("%+v, %v", done, err)
		}
		if got, err := items(path); err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	path := filepath.Join(dir, "order")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for want, text := range map[string]string{
		"is no file of hamlet order export": lines[1],
		"has layout 2":                      strings.Replace(string(whole), `"hamlet_order":1`, `"hamlet_order":2`, 1),
		"its last line is missing":          strings.Join(lines[:4], ""),
		"its last line says 5":              strings.Join(lines[:3], "") + lines[6],
		"does not follow":                   lines[0] + lines[2] + lines[2] + lines[6],
		"something follows":                 string(whole) + lines[1],
		"unknown field":                     lines[0] + `{"partition":0,"what":1}` + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := items(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := orderlog.CheckFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	r.cfg.End = 100
	if _, err := orderlog.Export(t.Context(), r.cfg, "m", filepath.Join(dir, "new")); err == nil {
		t.Error("a log that is too short is exported")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 || err != nil {
		t.Errorf("left are %q, %v", left, err)
	}
}
