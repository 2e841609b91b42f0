package orderlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

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
		"record 1: the line is no record":   lines[0] + "{}\n",
		"record 2: the line is no record":   lines[0] + lines[1] + "null\n",
		"the object":                        lines[0] + strings.TrimSpace(lines[1]) + "}\n" + lines[6],
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := items(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// A frame of Zstandard that wants a window of 256 MiB, with one block as it is.
	block := uint32(len(whole))<<3 | 1
	frame := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, byte(block), byte(block >> 8), byte(block >> 16)}, whole...)
	if err := os.WriteFile(path+".zst", frame, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := items(path + ".zst"); !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("a window of 256 MiB: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, dir} {
		if _, err := orderlog.Export(t.Context(), r.cfg, "m", path); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v, %v", info, err)
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
