package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pipes is a listener whose connections are made in the process, so that time is
// the test's.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// Whoever stalls loses the connection, wherever in the request or the answer.
func TestStalledClientsAreGivenUp(t *testing.T) {
	for _, c := range []struct {
		name, sent string
		reads      bool
		within     time.Duration
	}{
		{"nothing sent", "", true, headerTimeout},
		{"half a header", "GET /healthz HTTP/1.1\r\nHost: x", true, headerTimeout},
		// The handler answers at once, without the body; the server waits for it.
		{"half a body", "POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc", true, readTimeout},
		{"answer not taken", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", false, writeTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := &pipes{make(chan net.Conn), make(chan struct{})}
				server := &Server{cfg: Config{
					Registry: NewRegistry(),
					Handlers: map[string]http.Handler{"POST /refuse": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.WriteHeader(http.StatusUnauthorized)
					})},
					Log: slog.New(slog.DiscardHandler),
				}, listener: listener}
				ctx, stop := context.WithCancel(t.Context())
				stopped := make(chan error, 1)
				go func() { stopped <- server.Run(ctx) }()

				client := listener.dial()
				start := time.Now()
				if _, err := io.WriteString(client, c.sent); err != nil {
					t.Fatal(err)
				}
				if !c.reads {
					<-time.After(c.within + time.Second)
				}
				answer, err := io.ReadAll(bufio.NewReader(client))
				if took := time.Since(start); err != nil || took > c.within+time.Second {
					t.Errorf("%v, %q after %v; want an end within %v", err, answer, took, c.within)
				}
				if !c.reads && strings.Contains(string(answer), "ok") {
					t.Errorf("an answer %q after its time", answer)
				}
				stop()
				if err := <-stopped; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A header of any length costs the server maxHeader bytes and little more.
func TestLargeHeaderIsRefused(t *testing.T) {
	s, err := New(Config{Addr: "127.0.0.1:0", Registry: NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for headers, want := range map[int]int{10: http.StatusOK, 10_000: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range headers {
			request.Header.Set(fmt.Sprintf("X-Header-%d", i), "x")
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%d fields: %s, want %d", headers, response.Status, want)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A handler that has the address to itself sees paths as they were written: what it sets on
// every answer is on all of them. No metrics are there.
func TestApart(t *testing.T) {
	s, err := New(Config{Addr: "127.0.0.1:0", Apart: true, Registry: NewRegistry(), Log: slog.New(slog.DiscardHandler), Handlers: map[string]http.Handler{
		"/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "path "+r.URL.Path) }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for _, path := range []string{"/static/../audit", "//x", "/metrics", "/readyz"} {
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
		answer, err := io.ReadAll(conn)
		conn.Close()
		if err != nil || !strings.HasSuffix(string(answer), "path "+path) {
			t.Errorf("%s: %s, %v", path, answer, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is ready may say more: a standby is as ready as the active learner.
func TestReadySaysMore(t *testing.T) {
	var notReady error
	standing := ""
	s := Server{cfg: Config{Ready: func() error { return notReady }, Standing: func() string { return standing }}}
	mux := http.NewServeMux()
	s.addMetrics(mux)
	want := func(code int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if w.Code != code || w.Body.String() != body {
			t.Errorf("%d %q, want %d %q", w.Code, w.Body, code, body)
		}
	}
	want(http.StatusOK, "ready\n")
	standing = "standby"
	want(http.StatusOK, "ready: standby\n")
	notReady = errors.New("alone")
	want(http.StatusServiceUnavailable, "alone\n")
}
