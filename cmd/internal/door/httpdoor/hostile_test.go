package httpdoor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/process/httpd"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
)

// A rawConn is a client that writes what it likes.
type rawConn struct {
	net.Conn
	from *bufio.Reader
}

func (s *tested) dial(t testing.TB) *rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	return &rawConn{conn, bufio.NewReader(conn)}
}

// answer reads one answer.
func (c *rawConn) answer() (answer, error) {
	response, err := http.ReadResponse(c.from, nil)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, body}, err
}

func header(path, kind string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, kind, length)
}

// free reports whether all of the door's memory is free again.
func (s *tested) free(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		if s.cfg.Door.Acquire(memory) {
			s.cfg.Door.Return(memory)
			return
		}
		if time.Now().After(deadline) {
			t.Error("memory is lost")
			return
		}
	}
}

// Half a body and silence is answered 408 after the time that is due, whatever came.
func TestStalledBody(t *testing.T) {
	for _, c := range []struct {
		sent   int
		within time.Duration
	}{{0, 5 * time.Second}, {10, 5 * time.Second}, {gateway.MinRate, 6 * time.Second}, {200 * gateway.MinRate, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{}})})
			client, end := net.Pipe()
			server := &http.Server{Handler: s.handlers()[scorePath]}
			listener := &oneConn{conn: end, done: make(chan struct{})}
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(listener) }()
			start := time.Now()
			if _, err := io.WriteString(client, header(scorePath, questions.Mail, 20<<20)+strings.Repeat("x", c.sent)); err != nil {
				t.Fatal(err)
			}
			a, err := (&rawConn{client, bufio.NewReader(client)}).answer()
			if took := time.Since(start); err != nil || a.code != http.StatusRequestTimeout || took < c.within || took > c.within+time.Millisecond {
				t.Errorf("%d bytes: %d %s after %v, %v; want 408 after %v", c.sent, a.code, a.body, took, err, c.within)
			}
			_, err = client.Read(make([]byte, 1))
			if err != io.EOF {
				t.Errorf("the connection lives on: %v", err)
			}
			_ = server.Close()
			<-ended
		})
	}
}

// oneConn is a listener of one connection.
type oneConn struct {
	conn net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	close(l.done)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A thousand clients that send half of a large mail hold bounded memory, and keep nobody
// waiting. Those for whom there is no memory are told so.
func TestThousandHalfBodies(t *testing.T) {
	const conns, sent, memory = 1000, 40 << 10, 16 << 20
	s := serve(t, config{pace: gateway.Pace{Stall: 5 * time.Minute}, Door: newGateway(t, gateway.Config{Memory: memory, Asker: &fakeClient{}})})
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	half := header(scorePath, questions.Mail, 20<<20) + strings.Repeat("x", sent)
	var all []*rawConn
	for range conns {
		conn := s.dial(t)
		defer conn.Close()
		if _, err := io.WriteString(conn, half); err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	const room = memory / (64<<10 - gateway.FreeBytes) // clients: a buffer doubles
	refused := func() float64 { return testutil.ToFloat64(s.requests.WithLabelValues(scorePath, "429")) }
	for deadline := time.Now().Add(time.Minute); refused() < conns-room; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%v clients were refused, want %d", refused(), conns-room)
		}
	}
	start := time.Now()
	if a := s.ask(t, question{path: scorePath, kind: questions.Mail, body: message}); a.code != http.StatusOK {
		t.Errorf("a small mail meanwhile: %d %s", a.code, a.body)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("another client waited %v", took)
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	if grown := int64(during.HeapInuse+during.StackInuse) - int64(before.HeapInuse+before.StackInuse); grown > memory+conns*(100<<10) {
		t.Errorf("%d MiB for %d clients", grown>>20, conns)
	}
	for _, conn := range all {
		conn.Close()
	}
	for deadline := time.Now().Add(20 * time.Second); len(s.slots) > 0 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if len(s.slots) > 0 || !s.cfg.Door.Acquire(memory) {
		t.Errorf("%d requests are still under way, or memory is lost", len(s.slots))
	}
}

// A body beyond the limit is refused when its length is stated, or when it is reached.
func TestLargeBodies(t *testing.T) {
	s := serve(t, config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{}})})
	for kind, most := range map[string]int{questions.Mail: maxMail, questions.Text: maxText, questions.JSON: maxJSON} {
		conn := s.dial(t)
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", scorePath, kind); err != nil {
			t.Fatal(err)
		}
		written := make(chan struct{})
		go func() {
			defer close(written)
			chunk := fmt.Sprintf("10000\r\n%s\r\n", strings.Repeat("x", 1<<16))
			for range 100 << 20 >> 16 {
				if _, err := io.WriteString(conn, chunk); err != nil {
					return
				}
			}
		}()
		a, err := conn.answer()
		conn.Close()
		<-written
		if err != nil || a.code != http.StatusRequestEntityTooLarge {
			t.Errorf("100 MiB of %s: %d %s, %v; want 413 after %d", kind, a.code, a.body, err, most)
		}
	}
	exact := message + strings.Repeat("x", mail.MaxSize-len(message))
	if a := s.ask(t, question{path: scorePath, kind: questions.Mail, body: exact}); a.code != http.StatusOK {
		t.Errorf("a mail of 25 MiB: %d %s", a.code, a.body)
	}
	s.free(t)
}

// Lengths that lie, broken chunks and headers beyond the bound end the connection.
func TestLies(t *testing.T) {
	s := serve(t, config{Door: newGateway(t, gateway.Config{Asker: &fakeClient{}})})
	for _, request := range []string{
		header(scorePath, questions.Mail, 5) + "Subject: more than that\r\n\r\n",
		"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: message/rfc822\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
		"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"\x00\x01\x02\r\n\r\n",
	} {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(conn.from)
		conn.Close()
		if err != nil || !strings.Contains(string(rest), "HTTP/1.1 400") {
			t.Errorf("%.60q: %q, %v; want 400 and an end", request, rest, err)
		}
	}
	conn := s.dial(t) // the client ends before the length that it stated
	if _, err := io.WriteString(conn, header(scorePath, questions.Mail, 100)+"x"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if a, err := conn.answer(); err != nil || a.code != http.StatusBadRequest {
		t.Errorf("a body that ends early: %d %s, %v", a.code, a.body, err)
	}
	conn.Close()
	s.free(t)
}

// Behind httpd: when the door closes, the request under way is answered, and no other.
func TestShutdown(t *testing.T) {
	asked, answered := make(chan struct{}, 1), make(chan struct{})
	handlers := newServer(config{Door: newGateway(t, gateway.Config{Deadline: time.Minute, Asker: &fakeClient{score: func(context.Context, string, []byte, string) error {
		asked <- struct{}{}
		<-answered
		return nil
	}}})}).handlers()
	server, err := httpd.New(httpd.Config{Addr: "127.0.0.1:0", Registry: httpd.NewRegistry(), Handlers: handlers, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	s := &tested{addr: server.Addr(), url: "http://" + server.Addr(), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	last := make(chan answer, 1)
	go func() { last <- s.ask(t, question{path: scorePath, kind: questions.Mail, body: message}) }()
	<-asked
	stop()
	close(answered)
	if a := <-last; a.code != http.StatusOK {
		t.Errorf("the request under way at the end: %d %s", a.code, a.body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.addr); err == nil {
		t.Error("the door takes a request after its end")
	}
}

// A client that goes away is counted for nothing against the scoring service.
func TestClientGoesAway(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	s := serve(t, config{Door: newGateway(t, gateway.Config{Deadline: time.Minute, Asker: &fakeClient{score: func(ctx context.Context, _ string, _ []byte, _ string) error {
		close(asked)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}}})})
	conn := s.dial(t)
	if _, err := io.WriteString(conn, header(scorePath, questions.Mail, len(message))+message); err != nil {
		t.Fatal(err)
	}
	<-asked
	conn.Close()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the scoring service is asked for nobody")
	}
}
