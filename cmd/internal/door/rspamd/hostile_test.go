package rspamd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// impatient opens a scan door whose clients have 50 ms for a body's start.
func impatient(d *gateway.Door) *Server {
	s := New(d, NewCounts())
	s.pace.Stall = 50 * time.Millisecond
	return s
}

func TestHalfABody(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, impatient)
	for request, want := range map[string]string{
		"POST /checkv2 HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf": "HTTP/1.1 408 ",
		"CHECK RSPAMC/1.3\r\nContent-length: 100\r\n\r\nhalf":                  "RSPAMD/1.3 76 ",
		"SYMBOLS RSPAMC/1.3\r\n\r\nno length":                                  "RSPAMD/1.3 76 ",
	} {
		if got := b.say(request); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %q", request, got)
		}
	}
	b.await("hamlet_gateway_protocol_errors_total", 3)
	b.await("hamlet_gateway_connections", 0)
}

// Somebody who says nothing, or half a header, keeps nobody waiting.
func TestOthersAreAnswered(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, scan)
	var idle []net.Conn
	for i := range 60 {
		conn := b.dial()
		idle = append(idle, conn)
		_, err := io.WriteString(conn, []string{"", "CHE", "POST /checkv2 HTTP/1.1\r\nHost:", "CHECK RSPAMC/1.3\r\nContent-le"}[i%4])
		if err != nil {
			t.Fatal(err)
		}
	}
	b.await("hamlet_gateway_connections", 60)
	start := time.Now()
	b.scan(message)
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the answer took %v", took)
	}
	for _, conn := range idle {
		_ = conn.Close()
	}
}

func TestTooManyFields(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, scan)
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "X-%d: %d\r\n", i, i)
	}
	conn := b.dial()
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /checkv2 HTTP/1.1\r\nHost: x\r\n"+many.String()+"\r\n")
	if got, _ := io.ReadAll(conn); len(got) > 0 && !bytes.HasPrefix(got, []byte("HTTP/1.1 431 ")) { // it may be reset first
		t.Errorf("HTTP: %.60q", got)
	}
	if got := b.say("CHECK RSPAMC/1.3\r\n" + many.String() + "\r\n"); !strings.HasPrefix(got, "RSPAMD/1.3 76 ") {
		t.Errorf("lines: %.60q", got)
	}
	b.await("hamlet_gateway_protocol_errors_total", 2)
}

// A header's memory is taken from the budget before it is parsed.
func TestLinesTakeMemory(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam(), Memory: 256 << 10}, scan)
	long := strings.Repeat("X: y\r\n", 8_000)
	if got := b.say("CHECK RSPAMC/1.3\r\n" + long); !strings.Contains(got, "Action: no action") {
		t.Errorf("lines: %.60q", got)
	}
	b.scan(message) // small ones still pass
	b.await("hamlet_gateway_unmarked_total", 1)
}

// A message beyond the limit is read, within the memory of one message, and passes
// unmarked. What is longer than maxBody is cut.
func TestTooLarge(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, scan)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := b.sendLong("POST /checkv2 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 30<<20)
	if !strings.HasPrefix(r, "HTTP/1.1 200 OK") || !strings.Contains(r, gateway.ErrTooLarge.Error()) {
		t.Errorf("HTTP: %.300q", r)
	}
	r = b.sendLong("CHECK RSPAMC/1.3\r\nContent-length: %d\r\n\r\n", 26<<20)
	if !strings.Contains(r, "Action: no action") || !strings.Contains(r, gateway.ErrTooLarge.Error()) {
		t.Errorf("lines: %.300q", r)
	}
	b.sendLong("POST /checkv2 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 70<<20) // cut: the answer may be lost
	runtime.ReadMemStats(&after)
	if more := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && more > 256<<20 {
		t.Errorf("the heap grew by %d MiB", more>>20)
	}
	b.await("hamlet_gateway_unmarked_total", 3)
}

// sendLong sends a body of n bytes and returns what is answered, if anything.
func (b *bench) sendLong(header string, n int) string {
	conn := b.dial()
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, header, n); err != nil {
		b.Fatal(err)
	}
	go func() {
		line := bytes.Repeat([]byte("All work and no play makes Jack a dull boy.\r\n"), 1<<10)
		for ; n > 0; n -= len(line) {
			if _, err := conn.Write(line[:min(n, len(line))]); err != nil {
				return
			}
		}
	}()
	answer := make([]byte, 64<<10)
	read, _ := conn.Read(answer)
	return string(answer[:read])
}

func TestManyAtOnce(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam(), MaxConns: 50}, scan)
	client := b.client()
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			answer, err := client.Post("http://"+b.addr+"/checkv2", "text/plain", strings.NewReader(message))
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			if text, err := io.ReadAll(answer.Body); err != nil || !bytes.Contains(text, []byte(SymbolSpam)) {
				t.Errorf("%v: %s", err, text)
			}
			client.CloseIdleConnections()
		})
	}
	all.Wait()
}

// An idle connection ends with the door; a request in hand is finished.
func TestStop(t *testing.T) {
	c := spam()
	c.asked, c.wait = make(chan struct{}, 1), make(chan struct{})
	b := open(t, gateway.Config{Asker: c}, scan)
	idle := b.dial()
	defer idle.Close()
	if _, err := io.WriteString(idle, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(idle)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	busy := b.dial()
	defer busy.Close()
	fmt.Fprintf(busy, "POST /checkv2 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(message), message)
	<-c.asked
	b.stop()
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection: %v", err)
	}
	close(c.wait)
	if text, err := io.ReadAll(busy); err != nil || !bytes.Contains(text, []byte(SymbolSpam)) {
		t.Errorf("%v: %s", err, text)
	}
}

// A client that has sent its request may close its side, as nc does.
func TestHalfClosed(t *testing.T) {
	c := spam()
	c.asked, c.wait = make(chan struct{}, 1), make(chan struct{})
	b := open(t, gateway.Config{Asker: c}, scan)
	conn := b.dial().(*net.TCPConn)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /checkv2 HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", len(message), message)
	<-c.asked
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(c.wait)
	if text, err := io.ReadAll(conn); err != nil || !bytes.Contains(text, []byte(SymbolSpam)) {
		t.Errorf("%v: %s", err, text)
	}
}

// A connection is kept for several requests.
func TestKeepAlive(t *testing.T) {
	b := open(t, gateway.Config{Asker: spam()}, scan)
	conn := b.dial()
	defer conn.Close()
	in := bufio.NewReader(conn)
	for range 3 {
		fmt.Fprintf(conn, "POST /checkv2 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nX: %s\r\nContent-Length: %d\r\n\r\n%s",
			strings.Repeat("x", 20<<10), len(message), message)
		if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != http.StatusContinue {
			t.Fatal(answer, err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
}

// A panic ends one connection.
func TestPanic(t *testing.T) {
	b := open(t, gateway.Config{Asker: panicking{}}, scan)
	if got := b.say(fmt.Sprintf("POST /checkv2 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(message), message)); got != "" {
		t.Errorf("%q", got)
	}
	if got := b.say("PING RSPAMC/1.3\r\n\r\n"); !strings.Contains(got, "PONG") {
		t.Errorf("%q", got)
	}
}

type panicking struct{ questions.Asker }

func (panicking) Ask(context.Context, questions.Question) ([]stream.Verdict, error) {
	panic("a bug")
}

// FuzzConnection sends anything. Every connection ends, and nothing stays taken.
func FuzzConnection(f *testing.F) {
	f.Add([]byte("CHECK RSPAMC/1.3\r\nContent-length: 5\r\nRcpt: <a@b>, \"x\\\" ,y\"@c\r\n\r\nhello"))
	f.Add([]byte("SYMBOLS RSPAMC/1.2\r\n\r\nSubject: x\r\n y\r\n\r\nhello"))
	f.Add([]byte("POST /checkv2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("POST /check HTTP/1.0\r\nCompression: zstd\r\nContent-Length: 17\r\n\r\n(\xb5/\xfd\x04\x00)\x00\x00hello"))
	f.Add([]byte("PING RSPAMC/1.3\r\n\r\n"))
	g, err := gateway.New(gateway.Config{Asker: spam(), Marks: gateway.Marks{Tag: "[SPAM] "}, Deadline: 2 * time.Second, Memory: 256 << 20})
	if err != nil {
		f.Fatal(err)
	}
	server := New(g.Door("rspamd"), NewCounts())
	f.Fuzz(func(t *testing.T, sent []byte) { server.Handle(t.Context(), &replay{Reader: bytes.NewReader(sent)}) })
}

// A replay is a connection whose other side has sent all that it will.
type replay struct {
	*bytes.Reader
	net.Conn // nil: nothing else may be called
}

func (r *replay) Read(p []byte) (int, error)       { return r.Reader.Read(p) }
func (r *replay) Write(p []byte) (int, error)      { return len(p), nil }
func (r *replay) WriteTo(io.Writer) (int64, error) { panic("not of a connection") }
func (r *replay) Close() error                     { return nil }
func (r *replay) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (r *replay) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (r *replay) SetDeadline(time.Time) error      { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }
