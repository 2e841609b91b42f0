package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"hamlet/stream"
)

// readAll reads a file to its end, and returns its error.
func readAll(path string) (n int, err error) {
	for _, err := range File(path) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// An exported log gives the same records, packed or not, and one that was changed or cut off
// is refused.
func TestExport(t *testing.T) {
	source := numbered(3, 8)
	for i := range source {
		source[i].Offset = int64(2 * i) // a log may have holes
	}
	want := digest(t, of(source))
	dir := t.TempDir()
	for _, name := range []string{"log", "log.gz", "log.zst"} {
		path := filepath.Join(dir, name)
		if n, err := Export(of(source), "m", path); err != nil || n != 5 {
			t.Errorf("%d records, %v", n, err)
		}
		if got := digest(t, File(path)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	path := filepath.Join(dir, "log")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	if last := `{"records":5,"order":9}` + "\n"; lines[6] != last {
		t.Errorf("the last line is %s, want %s", lines[6], last)
	}
	for want, text := range map[string]string{
		"this is no log":                  lines[1],
		"has layout 2":                    strings.Replace(string(whole), `"hamlet_order":1`, `"hamlet_order":2`, 1),
		"its last line is missing":        strings.Join(lines[:4], ""),
		"its last line says 5":            strings.Join(lines[:3], "") + lines[6],
		"does not follow":                 lines[0] + lines[2] + lines[2] + lines[6],
		"something follows the last line": string(whole) + lines[1],
		"unknown field":                   lines[0] + `{"partition":0,"what":1}` + "\n",
		"the last line: ":                 lines[0] + `{"records":0,"what":1}` + "\n",
		"record 1: the line is no record": lines[0] + "{}\n",
		"record 2: the line is no record": lines[0] + lines[1] + "null\n",
		"the object":                      lines[0] + strings.TrimSpace(lines[1]) + "}\n" + lines[6],
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// A frame of Zstandard that wants a window of 256 MiB, with one block as it is.
	block := uint32(len(whole))<<3 | 1
	frame := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, byte(block), byte(block >> 8), byte(block >> 16)}, whole...)
	if err := os.WriteFile(path+".zst", frame, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(path + ".zst"); !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("a window of 256 MiB: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, dir} {
		if _, err := Export(of(source), "m", path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if err := CheckFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	broken := errors.New("broken")
	if _, err := Export(func(yield func(*stream.Record, error) bool) {
		_ = yield(&source[0], nil) && yield(nil, broken)
	}, "m", filepath.Join(dir, "new")); !errors.Is(err, broken) {
		t.Errorf("a log that ends with an error is exported: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 || err != nil {
		t.Errorf("left are %q, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a log stands in place of the file: %v", err)
	}
}

// A file of hamlet order export of 0.1.0 has the offsets of several partitions.
func TestFileOfSeveralPartitions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "order")
	const text = `{"hamlet_order":1,"model":"m","topic":"hamlet.events.m"}
{"partition":1,"offset":0,"time":"2026-11-20T10:00:00Z","headers":[],"value":"YQ=="}
{"partition":0,"offset":0,"time":"2026-11-20T10:00:00.001Z","key":"aw==","headers":[{"key":"h","value":null}],"value":"Yg=="}
{"partition":1,"offset":1,"time":"2026-11-20T09:00:00Z","headers":[],"value":null}
{"records":3,"order":7}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _ := all(t, File(path))
	if len(got) != 3 || string(got[0].Value) != "a" || string(got[1].Key) != "k" || got[1].Headers[0].Key != "h" ||
		got[1].Offset != 1 || got[2].Value != nil {
		t.Errorf("%+v", got)
	}
}
