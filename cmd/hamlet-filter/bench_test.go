package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
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
// some 4 KiB: hamlet-filter against a spamd that answers at once, and bogofilter with the
// words of half the SpamAssassin corpus. They run in turn, so that both see the same
// noise. HAMLET_FILTER names a running gateway's door to ask instead.
//
//	HAMLET_TEST_PROGRAMS=DIR go test ./cmd/hamlet-filter -run - -bench Process -benchtime 2000x
func BenchmarkProcess(b *testing.B) {
	words := b.TempDir()
	spam, ham, message := corpus(b)
	for label, mbox := range map[string][]byte{"-s": spam, "-n": ham} {
		learn := debian.Command(b, "bogofilter-bdb", "bogofilter-bdb", "-d", words, "-M", label)
		learn.Stdin = bytes.NewReader(mbox)
		if out, err := learn.CombinedOutput(); err != nil {
			b.Fatalf("bogofilter %s: %v\n%s", label, err, out)
		}
	}
	addr := os.Getenv(filter.Variable)
	if addr == "" {
		addr = filtertest.Start(b, filtertest.Serve)
	}
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
			if err != nil || !bytes.Contains(out, []byte("X-Hamlet: ")) && !bytes.Contains(out, []byte("X-Bogosity: ")) {
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

// corpus returns mbox files of half the spam and half the ham of the SpamAssassin corpus,
// and a message of some 4 KiB from the other half.
func corpus(b *testing.B) (spam, ham, message []byte) {
	file, err := os.Open("../../../shared/data/spamassassin/spamassassin.tar.gz")
	if err != nil {
		b.Skip(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		b.Fatal(err)
	}
	archive := tar.NewReader(unzipped)
	for i := 0; ; i++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return spam, ham, message
		}
		if err != nil {
			b.Fatal(err)
		}
		mail, err := io.ReadAll(archive)
		if err != nil {
			b.Fatal(err)
		}
		switch {
		case !bytes.HasPrefix(mail, []byte("From ")):
		case i%2 == 1:
			if message == nil && 4000 < len(mail) && len(mail) < 4300 {
				message = mail
			}
		case strings.HasPrefix(header.Name, "spam"):
			spam = append(append(spam, mail...), '\n')
		default:
			ham = append(append(ham, mail...), '\n')
		}
	}
}
