package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/report"
)

// What was learnt before is counted over all partitions, in whichever order they
// come.
func TestResumedAtCountsAllPartitions(t *testing.T) {
	dir := t.TempDir()
	learnt := 0
	for i, n := range []int{400, 20, 30} {
		var events strings.Builder
		for j := range n {
			fmt.Fprintf(&events, `{"id":"%d/%d","tenant":"t%d","label":"%s","text":"words of %d"}`+"\n",
				i, j, j%16, []string{"spam", "ham"}[j%2], j)
		}
		file := filepath.Join(dir, fmt.Sprint(i, ".jsonl"))
		if err := os.WriteFile(file, []byte(events.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		args := []string{"up", file, "--experts=lean", "--once", "--json", "--partitions=4", "--data", filepath.Join(dir, "data"), "--log-level=error"}
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		var r report.Result
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Summary.Events != n || r.ResumedAt != learnt {
			t.Errorf("run %d: %d events, resumed at %d; want %d, %d", i, r.Summary.Events, r.ResumedAt, n, learnt)
		}
		learnt += n
	}
}
