package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"hamlet/cmd/internal/process/secretfile"
	"hamlet/cmd/internal/process/systemd"
	"hamlet/stream/openfiles"
)

// Listen takes a door's address. A socket that a killed process left behind is replaced;
// one on which somebody listens is not. Mode is that of a socket. One that systemd holds is
// used as it is.
func Listen(addr string, mode os.FileMode) (net.Listener, error) {
	if l, err := systemd.Listener(addr); l != nil || err != nil {
		return l, err
	}
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		return net.Listen("tcp", addr)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return secretfile.Listen(path, mode)
}

// removeStale removes a socket on which nobody listens.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("a file that is no socket is in the way: remove it, or choose another path")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return errors.New("another process listens there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// drainTimeout bounds the orderly stop of a door.
const drainTimeout = 5 * time.Second

// Serve accepts connections and calls handle for each, in a goroutine of its own, until
// ctx ends; handle's ctx ends then, so that it takes no further request, and after
// drainTimeout its connection is closed. Serve closes l, every connection that handle
// left open, and returns when all handlers have. Beyond Config.MaxConns new connections
// wait in the kernel's queue. A handler that panics loses its connection alone.
func (d *Door) Serve(ctx context.Context, l net.Listener, handle func(ctx context.Context, conn net.Conn)) error {
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		open    = map[net.Conn]struct{}{}
		slots   = make(chan struct{}, d.MaxConns)
		gauge   = d.metrics.conns.WithLabelValues(d.name)
		failure error
	)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	defer l.Close()
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		conn, err := l.Accept()
		if err != nil {
			<-slots
			if ctx.Err() != nil {
				break
			}
			if !openfiles.Passing(err) {
				failure = fmt.Errorf("%s on %s: %w", d.name, l.Addr(), err)
				break
			}
			d.warn("connections wait", "accept", "door", d.name, "error", err)
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		}
		mu.Lock()
		open[conn] = struct{}{}
		mu.Unlock()
		gauge.Inc()
		running.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					d.Log.Error("panic in a door", "door", d.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				}
				_ = conn.Close()
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
				gauge.Dec()
				<-slots
			}()
			handle(ctx, conn)
		})
	}
	kill := time.AfterFunc(drainTimeout, func() {
		mu.Lock()
		defer mu.Unlock()
		for conn := range open {
			_ = conn.Close()
		}
	})
	defer kill.Stop()
	running.Wait()
	return failure
}

// acceptPause is how long a door waits for open files to become free.
const acceptPause = 100 * time.Millisecond

// Single returns a listener of one connection, for the servers of libraries. Its second Accept
// waits until closed is closed. Its Close leaves the connection open.
func Single(conn net.Conn, closed <-chan struct{}) net.Listener {
	return &single{conn: conn, closed: closed}
}

type single struct {
	conn   net.Conn
	closed <-chan struct{}
	given  bool
}

func (l *single) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *single) Close() error   { return nil }
func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }
