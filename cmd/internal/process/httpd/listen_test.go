package httpd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Beyond the bound a connection waits until another one ends, or the listener does.
func TestConnectionsAreBounded(t *testing.T) {
	l, err := listen("127.0.0.1:0", 2, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const clients = 4
	accepted := make(chan net.Conn, clients) // so that nothing but the bound holds the loop
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	next := func() net.Conn {
		t.Helper()
		select {
		case c := <-accepted:
			return c
		case err := <-ended:
			t.Fatalf("the listener ended: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("no connection is taken")
		}
		return nil
	}
	for range clients {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	first, last := next(), next()
	first.Close()
	first.Close() // counts once
	third := next()
	defer third.Close()
	if _, ok := last.(interface{ CloseWrite() error }); !ok {
		t.Error("a connection cannot close one half")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v, want that the listener is closed", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the listener does not end")
	}
	for range len(accepted) {
		(<-accepted).Close()
		t.Error("a third connection is taken beside two")
	}
	last.Close()
}

// A connection that was taken before the server stops has its first request answered, although
// it comes later. Package net/http alone would drop it.
func TestStopAnswersWhoWasTaken(t *testing.T) {
	s, err := New(Config{Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
		Handlers: map[string]http.Handler{"/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })}})
	if err != nil {
		t.Fatal(err)
	}
	own := s.below[s.listener]
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for own.fresh.Load() == 0 {
		runtime.Gosched()
	}
	cancel()
	<-own.quiet // no further connection is taken
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusAccepted {
		t.Errorf("%v, %v", answer, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
