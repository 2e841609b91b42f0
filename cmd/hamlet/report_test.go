package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
)

// A page changes nothing in the model, also of a table with text and gaps. A directory
// that cannot be made is told before anything is learnt.
func TestEvalReport(t *testing.T) {
	dir := t.TempDir()
	var rows strings.Builder
	rows.WriteString("title,price,label\n")
	for i := range 300 {
		price := "?"
		if i%3 > 0 {
			price = fmt.Sprint(i % 7)
		}
		fmt.Fprintf(&rows, "\"%s, no %d\",%s,%d\n", []string{"Cheap prize", "Dear friend"}[i%2], i%11, price, 1-i%2)
	}
	file := filepath.Join(dir, "rows.csv")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	evaluate := func(more ...string) (string, error) {
		var out bytes.Buffer
		args := append([]string{"eval", file, "--text", "title", "--missing", "price", "--json"}, more...)
		err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard})
		return regexp.MustCompile(`"events_per_second":[^,]*`).ReplaceAllString(out.String(), ""), err
	}
	plain, err := evaluate()
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "new", "page")
	with, err := evaluate("--report", page)
	if err != nil || with != plain || !strings.Contains(plain, `"events":300`) || !strings.Contains(plain, `"rejected":0`) {
		t.Errorf("%v\nwith a page %s\nwithout %s", err, with, plain)
	}
	html, err := os.ReadFile(filepath.Join(page, "index.html"))
	if err != nil || strings.Count(string(html), "<figure") < 6 {
		t.Errorf("%v: the page has few figures", err)
	}
	if _, err := evaluate("--report", filepath.Join(file, "page")); err == nil || !strings.Contains(err.Error(), "--report: ") {
		t.Errorf("a directory below a file: %v", err)
	}
}
