package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/debian"
	"hamlet/cmd/internal/filter"
	"hamlet/cmd/internal/filter/filtertest"
)

// BenchmarkProcess times whole processes, from start to end, that mark one message of
// 4 KiB: hamlet-filter against a spamd that answers at once, and bogofilter with a small
// list of words. They run in turn, so that both see the same noise.
//
//	HAMLET_TEST_PROGRAMS=DIR go test ./cmd/hamlet-filter -run - -bench Process -benchtime 2000x
func BenchmarkProcess(b *testing.B) {
	message := sampleMail(4 << 10)
	words := b.TempDir()
	for _, label := range []string{"-s", "-n"} {
		learn := debian.Command(b, "bogofilter-bdb", "bogofilter-bdb", "-d", words, label)
		learn.Stdin = bytes.NewReader(sampleMail(64 << 10))
		if out, err := learn.CombinedOutput(); err != nil {
			b.Fatalf("bogofilter %s: %v\n%s", label, err, out)
		}
	}
	addr := filtertest.Start(b, filtertest.Serve)
	// Without a shell between: the program itself, with the libraries of its tree.
	tree := debian.Tree(b, "bogofilter-bdb")
	libraries, err := filepath.Glob(filepath.Join(tree, "usr/lib/*"))
	if err != nil {
		b.Fatal(err)
	}
	programs := []struct {
		name, path string
		args, env  []string
		times      []time.Duration
	}{
		{name: "hamlet-filter", path: build(b), env: []string{filter.Variable + "=" + addr}},
		{name: "bogofilter", path: filepath.Join(tree, "usr/bin/bogofilter-bdb"), args: []string{"-d", words, "-p", "-e"},
			env: []string{"LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}},
	}
	for b.Loop() {
		for i := range programs {
			p := &programs[i]
			cmd := exec.CommandContext(b.Context(), p.path, p.args...)
			cmd.Env = append(os.Environ(), p.env...)
			cmd.Stdin = bytes.NewReader(message)
			begin := time.Now()
			out, err := cmd.Output()
			p.times = append(p.times, time.Since(begin))
			if err != nil || !bytes.Contains(out, []byte("X-")) {
				b.Fatalf("%s: %v\n%.300s", p.name, err, out)
			}
		}
	}
	for _, p := range programs {
		slices.Sort(p.times)
		n := len(p.times)
		b.ReportMetric(p.times[n/2].Seconds()*1e3, p.name+"-median-ms")
		b.ReportMetric(p.times[n*99/100].Seconds()*1e3, p.name+"-p99-ms")
	}
}

// sampleMail returns a message of about n bytes.
func sampleMail(n int) []byte {
	var b bytes.Buffer
	b.WriteString("From: a@example.org\nTo: b@example.org\nSubject: minutes of the meeting\n\n")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "Item %d was put off until word%d has been read by everybody.\n", i, i%997)
	}
	return b.Bytes()
}
