package httpd

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/process/systemd"
	"hamlet/stream/openfiles"
)

// A listener has a bounded number of connections open. Its connections are those of TCP
// in all they can do: package net/http closes one half of a connection that it refuses, so
// that the client sees the answer.
//
// It stops in two steps. Package net/http drops a request that it reads after Shutdown began.
// So stop first takes no more connections, and waits for the first request of those that were
// taken. Who connects after that waits at systemd's socket, or is refused.
type listener struct {
	*net.TCPListener
	log     *slog.Logger
	slots   chan struct{} // holds one token for each open connection
	fresh   atomic.Int64  // connections without a request yet
	quiet   chan struct{} // closed once Accept takes no more after stop
	stopped chan struct{} // closed by stop and by Close
	closed  chan struct{} // closed by Close
	told    time.Time     // when the log said last that connections wait; Accept writes it

	stopOnce, closeOnce, quietOnce sync.Once
}

// listen takes a TCP address, or the socket that systemd holds there. While most connections
// are open, more wait in the kernel's queue.
func listen(addr string, most int, log *slog.Logger) (*listener, error) {
	l, err := systemd.Listener(addr)
	if l == nil && err == nil {
		l, err = net.Listen("tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	return &listener{TCPListener: l.(*net.TCPListener), log: log, slots: make(chan struct{}, most),
		quiet: make(chan struct{}), stopped: make(chan struct{}), closed: make(chan struct{})}, nil
}

const (
	acceptPause = 100 * time.Millisecond // after a failed accept
	acceptTold  = time.Minute            // how often the log says that connections wait
)

// Accept takes a connection, and waits where it cannot for want of files or memory. After
// stop it waits for Close.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.stopped:
		return nil, l.ended()
	}
	c, err := l.AcceptTCP()
	for openfiles.Passing(err) {
		if now := time.Now(); now.Sub(l.told) > acceptTold {
			l.told = now
			l.log.Warn("http connections wait", "address", l.Addr().String(), "error", err)
		}
		select {
		case <-time.After(acceptPause):
		case <-l.stopped:
		}
		c, err = l.AcceptTCP()
	}
	if err != nil {
		<-l.slots
		select {
		case <-l.stopped:
			err = l.ended()
		default:
		}
		return nil, err
	}
	l.fresh.Add(1)
	return &conn{
		TCPConn: c, leave: sync.OnceFunc(func() { <-l.slots }), begin: sync.OnceFunc(func() { l.fresh.Add(-1) }),
	}, nil
}

// ended returns what Accept returns once Close was called.
func (l *listener) ended() error {
	l.quietOnce.Do(func() { close(l.quiet) })
	<-l.closed
	return net.ErrClosed
}

// stop takes no more connections, and waits until each has a request or is closed, or ctx
// ends.
func (l *listener) stop(ctx context.Context) {
	l.stopOnce.Do(func() {
		close(l.stopped)
		_ = l.TCPListener.Close() // it is open, and nobody else closes it
	})
	select {
	case <-l.quiet:
	case <-ctx.Done():
		return
	}
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for l.fresh.Load() > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// Close ends Accept. Closing again is no error.
func (l *listener) Close() (err error) {
	l.stopOnce.Do(func() {
		close(l.stopped)
		err = l.TCPListener.Close()
	})
	l.closeOnce.Do(func() { close(l.closed) })
	return err
}

type conn struct {
	*net.TCPConn
	leave, begin func()
}

func (c *conn) Close() error {
	defer c.leave()
	c.begin()
	return c.TCPConn.Close()
}

// beginning is the key of a connection's begin in the context of its requests.
type beginning struct{}

// withBegin is http.Server.ConnContext.
func withBegin(ctx context.Context, c net.Conn) context.Context {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	if own, ok := c.(*conn); ok {
		return context.WithValue(ctx, beginning{}, own.begin)
	}
	return ctx
}

// began notes the first request of each connection, and serves it.
func began(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if begin, ok := r.Context().Value(beginning{}).(func()); ok {
			begin()
		}
		h.ServeHTTP(w, r)
	})
}
