package spamd

import (
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/testkit/debian"
)

// benchMail is of usual size.
var benchMail = "From: a@example.org\nSubject: hello\nMessage-ID: <1@example.org>\n\n" + strings.Repeat("buy pills now, they are cheap and good\n", 100)

// quantiles reports the median and the 99th percentile of what f takes.
func quantiles(b *testing.B, f func()) {
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		f()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCheck is a CHECK over a Unix socket, with a scoring service that answers at once.
func BenchmarkCheck(b *testing.B) {
	d := open(b, gateway.Config{})
	request := []byte(mailRequest("CHECK SPAMC/1.5", benchMail))
	quantiles(b, func() {
		conn, err := net.Dial("unix", d.addr)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = conn.Write(request)
		_ = conn.(*net.UnixConn).CloseWrite()
		if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "True") {
			b.Fatalf("%q, %v", answer, err)
		}
		_ = conn.Close()
	})
}

// BenchmarkSpamc is Debian's spamc -c, its start included.
func BenchmarkSpamc(b *testing.B) {
	program := filepath.Join(debian.Tree(b, "spamc"), "usr/bin/spamc") // without the tree's launcher
	d := open(b, gateway.Config{})
	quantiles(b, func() {
		cmd := exec.Command(program, "-F", "/dev/null", "-U", d.addr, "-c")
		cmd.Stdin = strings.NewReader(benchMail)
		if out, _ := cmd.Output(); string(out) != "7.1/5.0\n" || cmd.ProcessState.ExitCode() != 1 {
			b.Fatalf("spamc: %q, %v", out, cmd.ProcessState)
		}
	})
}
