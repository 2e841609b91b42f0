package spamd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream/mail"
)

func writeTenants(t *testing.T, text string) *gateway.Tenants {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tenants, err := gateway.OpenTenants(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return tenants
}

// TestHalfARequest checks that a client that stops in the middle is let go, and told so.
func TestHalfARequest(t *testing.T) {
	registry := prometheus.NewRegistry()
	g, err := gateway.New(gateway.Config{Asker: &scorer{}, Registerer: registry, Deadline: 2 * time.Second, Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const stall = 3 * time.Second
	server := New(g.Door("spamd"))
	server.pace.Stall = stall
	whole := mailRequest("CHECK SPAMC/1.5", hamMail)
	halves := []string{"CHECK", "CHECK SPAMC/1.5\r\n", "CHECK SPAMC/1.5\r\nUser: x\r\n", whole[:len(whole)-1],
		compressed("CHECK SPAMC/1.5", hamMail)[:70]}
	for _, half := range append(halves, "") {
		synctest.Test(t, func(t *testing.T) {
			conn, there := net.Pipe()
			defer conn.Close()
			start := time.Now()
			go func() {
				defer there.Close()
				server.Handle(context.Background(), there)
			}()
			if _, err := conn.Write([]byte(half)); err != nil {
				t.Fatal(err)
			}
			want := "SPAMD/1.0 79 Timeout: (half a request, and then nothing)\r\n"
			if half == "" {
				want = "" // a client without a word
			}
			var answer [100]byte
			n, err := conn.Read(answer[:])
			took := time.Since(start)
			if string(answer[:n]) != want || (err == nil) != (half != "") || took != stall+time.Duration(len(half))*time.Second/gateway.MinRate {
				t.Errorf("%q and then nothing: %q after %v, %v, want %q", half, answer[:n], took, err, want)
			}
			if _, err := conn.Read(answer[:]); err != io.EOF {
				t.Errorf("%q and then nothing: %v behind the answer, want the end", half, err)
			}
		})
	}
	d := testDoor{registry: registry}
	if n := d.metric(t, "hamlet_gateway_protocol_errors_total"); n != float64(len(halves)) {
		t.Errorf("%v protocol errors counted, want %d", n, len(halves))
	}
}

// TestMemory checks that clients that say and send much take no more than the budget, and
// that mail of usual size passes meanwhile.
func TestMemory(t *testing.T) {
	const budget = 24 << 20
	d := open(t, gateway.Config{Memory: budget, Deadline: patience})
	part := strings.Repeat("A: b\n", 1<<20) // 5 MiB of header
	var open []net.Conn
	for range 16 {
		conn := d.dial(t)
		open = append(open, conn)
		_, _ = fmt.Fprintf(conn, "PROCESS SPAMC/1.5\r\nContent-length: %d\r\n\r\n%s", len(part)+1, part)
	}
	if held := d.metric(t, "hamlet_gateway_held_bytes"); held == 0 || held > budget {
		t.Errorf("%v bytes held, want some, and at most %d", held, budget)
	}
	want := "SPAMD/1.1 0 EX_OK\r\nSpam: True ; 7.1 / 5.0\r\n\r\n"
	if got := d.ask(t, mailRequest("CHECK SPAMC/1.5", spamMail)); got != want {
		t.Errorf("usual mail meanwhile: got %q, want %q", got, want)
	}
	refused := 0
	for _, conn := range open {
		_, _ = conn.Write([]byte("\n"))
		first, _ := bufio.NewReader(conn).ReadString('\n')
		switch {
		case strings.HasPrefix(first, "SPAMD/1.0 75 Not marked"):
			refused++
		case first != "SPAMD/1.1 0 EX_OK\r\n":
			t.Errorf("large mail: %q", first)
		}
		_ = conn.Close()
	}
	if refused == 0 {
		t.Error("all large messages fitted, want some without memory")
	}
	waitFor(t, "return of the memory", func() bool { return d.metric(t, "hamlet_gateway_held_bytes") == 0 })
}

// TestBomb checks that a compressed body is cut where the message becomes too large.
func TestBomb(t *testing.T) {
	d := open(t, gateway.Config{})
	bomb := pack(strings.Repeat("\x00", mail.MaxSize+1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	request := mailRequest("SYMBOLS SPAMC/1.5", bomb+strings.Repeat("x", 1<<20), "Compress: zlib")
	got := d.ask(t, request)
	if want := "SPAMD/1.1 0 EX_OK\r\nContent-length: 18\r\nSpam: False ; 0.0 / 5.0\r\n\r\nHAMLET_UNAVAILABLE"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4*mail.MaxSize {
		t.Errorf("a bomb made us allocate %d bytes", n)
	}
}

// TestManyConnections checks that clients that hold connections keep nobody waiting.
func TestManyConnections(t *testing.T) {
	d := open(t, gateway.Config{})
	for range 400 {
		conn := d.dial(t)
		_, _ = conn.Write([]byte("CHECK SPAMC/1.5\r\nContent-length: 1000000\r\n\r\nA: b\n"))
	}
	start := time.Now()
	if got := d.ask(t, mailRequest("CHECK SPAMC/1.5", spamMail)); !strings.Contains(got, "True ; 7.1") {
		t.Errorf("got %q", got)
	}
	t.Logf("answered in %v beside 400 clients that wait", time.Since(start))
}

// TestReaderThatStops checks that a client that does not take its answer is let go.
func TestReaderThatStops(t *testing.T) {
	t.Parallel() // it waits
	d := open(t, gateway.Config{}, gateway.Pace{Stall: 200 * time.Millisecond, Total: 400 * time.Millisecond})
	conn := d.dial(t)
	_, _ = conn.Write([]byte(mailRequest("PROCESS SPAMC/1.5", hamMail+strings.Repeat("x", 4<<20))))
	waitFor(t, "release", func() bool {
		return d.metric(t, "hamlet_gateway_connections") == 0 && d.metric(t, "hamlet_gateway_held_bytes") == 0
	})
}

func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{mailRequest("CHECK SPAMC/1.5", hamMail, "User: x"), "PING SPAMC/1.2\r\n",
		"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local, remote\r\nCompress: zlib\r\nContent-length: 7\r\n\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(data), maxLine)
		req, err := readRequest(r)
		rest, _ := io.ReadAll(r)
		var refused *refusal
		switch {
		case err != nil && !errors.As(err, &refused):
			t.Errorf("error %v is no refusal", err)
		case err != nil && strings.ContainsAny(refused.text, "\r\n"):
			t.Errorf("refusal %q has a line end", refused.text)
		case err == nil && len(data)-len(rest) > maxHead:
			t.Errorf("%d bytes read before the message", len(data)-len(rest))
		case err == nil && (req.version < 1 || req.zlib && req.length < 0 || strings.ContainsAny(req.user, "\r\n")):
			t.Errorf("request %+v", req)
		}
	})
}

// FuzzHandle checks that any bytes get an answer, and that nothing stays held.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{mailRequest("PROCESS SPAMC/1.5", spamMail), compressed("HEADERS SPAMC/1.5", hamMail),
		"REPORT SPAMC/1.0\n" + hamMail, mailRequest("TELL SPAMC/1.5", lostMail, "Remove: local"), "SKIP SPAMC/1.5\r\n\r\n"} {
		f.Add([]byte(seed))
	}
	g, err := gateway.New(gateway.Config{Asker: &scorer{}, Teacher: &teacher{}, Deadline: 2 * time.Second, Memory: 256 << 20})
	if err != nil {
		f.Fatal(err)
	}
	s := New(g.Door("spamd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := &script{in: bytes.NewReader(data)}
		s.Handle(context.Background(), conn)
		if out := conn.out.String(); len(data) > 0 && !strings.HasPrefix(out, "SPAMD/1.") && !bytes.HasPrefix(data, []byte("SKIP")) {
			t.Errorf("%q: answer %q", data, out)
		}
	})
}

// A script is a connection whose client has sent all at once.
type script struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
