package fit

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/show/jsonlines"
)

var update = flag.Bool("update", false, "write the replies to the requests in testdata instead of comparing them")

// The errors are a contract like the replies. For every algorithm testdata/refused
// has each kind of mistake: a field that is unknown, missing, repeated, in the wrong
// case or of the wrong type, NaN, 1e999; and deep nesting and lines that are not
// JSON. The golden file is made by
// `go test ./cmd/internal/lab/fit -run TestGoldenErrors -update`.
func TestGoldenErrors(t *testing.T) {
	dir := filepath.Join("testdata", "refused")
	requests, err := os.ReadFile(filepath.Join(dir, "requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for request := range strings.Lines(string(requests)) {
		text, _ := ask(t, strings.TrimSuffix(request, "\n"))
		got.WriteString(text + "\n")
	}
	compareGolden(t, filepath.Join(dir, "replies.golden"), got.String())
}

// requestsOf returns the lines of testdata/<name>.jsonl.
func requestsOf(t testing.TB, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatalf("every algorithm has requests in testdata (see the package doc): %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, l := range lines {
		if !strings.Contains(l, fmt.Sprintf("%q", name)) {
			t.Fatalf("testdata/%s.jsonl has a request that does not name %s: %s", name, name, l)
		}
	}
	return lines
}

// ask returns the reply to one line, and whether it is an error.
func ask(t testing.TB, request string) (text string, failed bool) {
	t.Helper()
	b, err := answer(t.Context(), []byte(request))
	if err != nil {
		b = jsonlines.AppendError(nil, err)
	}
	if !json.Valid(b) || bytes.ContainsAny(b, "\n\r") {
		t.Fatalf("the reply to %.200s is not one line of JSON: %.200s", request, b)
	}
	return string(b), err != nil
}

// reply returns the reply to a request that has one.
func reply[R any](t testing.TB, request string) *R {
	t.Helper()
	text, failed := ask(t, request)
	if failed {
		t.Fatalf("request %.300s: %s", request, text)
	}
	r := new(R)
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(r); err != nil {
		t.Fatalf("reply %.300s: %v", text, err)
	}
	return r
}

// line writes a request from alternating names and values.
func requestLine(t testing.TB, algorithm string, fields ...any) string {
	t.Helper()
	b := fmt.Appendf(nil, `{"algorithm":%q`, algorithm)
	for i := 0; i < len(fields); i += 2 {
		value, err := json.Marshal(fields[i+1])
		if err != nil {
			t.Fatal(err)
		}
		b = fmt.Appendf(b, `,%q:%s`, fields[i], value)
	}
	return string(append(b, '}'))
}

// The replies are a contract: the same request gets the same bytes. The golden
// files are made by `go test ./cmd/internal/lab/fit -run TestGolden/<algorithm> -update`.
func TestGolden(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			answered := 0
			for _, request := range requestsOf(t, name) {
				text, failed := ask(t, request)
				if !failed {
					answered++
				}
				got.WriteString(text + "\n")
			}
			if answered == 0 {
				t.Error("no request is answered without an error")
			}
			compareGolden(t, filepath.Join("testdata", name+".golden"), got.String())
		})
	}
}

// compareGolden compares the replies got with those in the file, or writes it.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%d replies, the golden file has %d", len(gotLines)-1, len(wantLines)-1)
	}
	for i := range gotLines {
		if gotLines[i] != wantLines[i] {
			t.Errorf("request %d\n got %s\nwant %s", i+1, gotLines[i], wantLines[i])
		}
	}
}

// Every file of testdata belongs to an algorithm.
func TestNoOrphans(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
		if algorithms[name] == nil {
			t.Errorf("%s belongs to no algorithm", f)
		}
	}
}
