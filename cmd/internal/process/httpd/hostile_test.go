//go:build linux

package httpd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limitFiles sets how many files this process may open, until the test ends or the returned
// function is called.
func limitFiles(t *testing.T, n uint64) (restore func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	restore = sync.OnceFunc(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(restore)
	return restore
}

// The connections of one address are a share of the files that the process may open.
func TestConnectionsLeaveFilesToOthers(t *testing.T) {
	limitFiles(t, 1200)
	s, err := New(Config{Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := cap(s.below[s.listener].slots); got != 118 {
		t.Errorf("%d connections at most, want 118", got)
	}
}

// A server without a file to accept with says so, and goes on once there is one.
func TestAcceptWaitsForFiles(t *testing.T) {
	said := &lines{next: make(chan string, 100)}
	s, err := New(Config{Addr: "127.0.0.1:0", Registry: NewRegistry(), Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", s.Addr()) // the kernel keeps it
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	restore := limitFiles(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case line := <-said.next:
		if !strings.Contains(line, "http connections wait") || !strings.Contains(line, "too many open files") {
			t.Errorf("it says %s", line)
		}
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("it does not say that it has no files")
	}
	restore()
	if _, err := io.WriteString(client, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("then it answers %s", answer.Status)
	}
	client.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lines gets what a log says.
type lines struct{ next chan string }

func (l *lines) Write(p []byte) (int, error) {
	select {
	case l.next <- string(p):
	default:
	}
	return len(p), nil
}

// Forty clients that send all they can before a request is complete cost little memory.
func TestHeadersCostLittle(t *testing.T) {
	const clients, most = 40, 32 << 10 // kB
	s, err := New(Config{Addr: "127.0.0.1:0", Registry: NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	before := peakMemory(t)
	for name, chunk := range map[string]string{
		"a path without an end":  "GET /" + strings.Repeat("a", 64<<10),
		"a field without an end": "GET / HTTP/1.1\r\nX: " + strings.Repeat("a", 64<<10),
		"many fields":            "GET / HTTP/1.1\r\n" + strings.Repeat("X: a\r\n", 16<<10),
		"a TLS hello":            "\x16\x03\x01\xff\xff" + strings.Repeat("a", 64<<10),
		"a chunked body":         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("4000\r\n"+strings.Repeat("a", 0x4000)+"\r\n", 8),
	} {
		var sending sync.WaitGroup
		for range clients {
			conn, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			sending.Go(func() {
				defer conn.Close()
				for range 64 {
					if _, err := io.WriteString(conn, chunk); err != nil {
						return
					}
				}
			})
		}
		sending.Wait()
		t.Logf("%-25s peak +%5.1f MB", name, float64(peakMemory(t)-before)/1024)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if more := peakMemory(t) - before; more > most && !raced {
		t.Errorf("%d connections cost %d kB more, want at most %d", clients, more, most)
	}
}

// peakMemory returns the process's largest memory so far, in kB. That of the clients is in it.
func peakMemory(t *testing.T) (kB int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d", &kB); err != nil {
		t.Fatal(err)
	}
	return kB
}
