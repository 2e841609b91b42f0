package embedded

import (
	"container/list"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A front takes the NATS server's TCP connections and passes their bytes on to it, in the
// process. It has a bounded number open. Beyond that each new one takes the place of the
// oldest that has not logged in; if all have, it waits, and others wait in the kernel's
// queue, where they cost no file.
//
// The NATS server's own listener accepts first and counts afterwards: with a limit of
// 1,200 files and MaxConn 118, a burst of 1,500 connections left no file for anything
// else, and the server refused who came after them (measured, November 2026).
type front struct {
	listener net.Listener
	dial     func() (net.Conn, error) // opens a connection to the server, in the process
	log      *slog.Logger
	slots    chan struct{} // holds one token for each open connection

	running sync.WaitGroup
	closing chan struct{}

	mu        sync.Mutex
	open      map[net.Conn]*list.Element // clients, and where they stand in strangers; nil after close
	strangers *list.List                 // clients that have not logged in, the oldest first
}

const (
	// frontPause is the pause after a failed accept, as long as net/http's longest.
	frontPause = time.Second

	// frontTold is how often the log says that connections wait for files.
	frontTold = time.Minute

	// frontPatience is how long a client may take nothing of what the server sends. It is
	// the server's own.
	frontPatience = 10 * time.Second

	// frontBuffer is in bytes; a connection has two. Answers and questions are smaller.
	frontBuffer = 16 << 10
)

// newFront serves what the listener takes, at most most connections at a time, until close. Its owner
// waits for running once the server has stopped.
func newFront(l net.Listener, most int, dial func() (net.Conn, error), log *slog.Logger) *front {
	f := &front{listener: l, dial: dial, log: log, slots: make(chan struct{}, most),
		closing: make(chan struct{}), open: map[net.Conn]*list.Element{}, strangers: list.New()}
	f.running.Go(f.accept)
	return f
}

func (f *front) accept() {
	var told time.Time
	for {
		client, err := f.listener.Accept()
		switch {
		case err == nil:
			if !f.enter(client) {
				return
			}
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		if time.Since(told) > frontTold {
			told = time.Now()
			f.log.Warn("connections to the embedded NATS wait", "error", err)
		}
		select {
		case <-time.After(frontPause):
		case <-f.closing:
			return
		}
	}
}

// enter serves a client once it has a place, in a goroutine of its own. It reports whether
// the front goes on.
func (f *front) enter(client net.Conn) bool {
	select {
	case f.slots <- struct{}{}:
	default:
		f.evict()
		select {
		case f.slots <- struct{}{}:
		case <-f.closing:
			_ = client.Close()
			return false
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		_ = client.Close()
		return false
	}
	f.open[client] = f.strangers.PushBack(client)
	f.running.Go(func() {
		if server, err := f.dial(); err == nil { // or it stops
			serve(client, server, func() { f.known(client) })
		}
		_ = client.Close()
		f.known(client)
		f.mu.Lock()
		delete(f.open, client)
		f.mu.Unlock()
		<-f.slots
	})
	return true
}

// inProcess returns a connection that needs no place.
func (f *front) inProcess() (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		return nil, net.ErrClosed
	}
	server, err := f.dial()
	if err != nil {
		return nil, err
	}
	client, between := net.Pipe()
	f.running.Go(func() { serve(between, server, func() {}) })
	return client, nil
}

// evict closes the oldest connection that has not logged in, if there is one.
func (f *front) evict() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if oldest := f.strangers.Front(); oldest != nil {
		_ = f.strangers.Remove(oldest).(net.Conn).Close()
	}
}

// known notes that a client has logged in, or has left.
func (f *front) known(client net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.open[client]; e != nil {
		f.strangers.Remove(e) // nothing if evict was first
	}
}

// serve passes bytes on to the server, both ways, until one side ends. It calls loggedIn
// once the server has let the client in.
func serve(client, server net.Conn, loggedIn func()) {
	var in sync.WaitGroup
	in.Go(func() {
		defer server.Close()
		relay(server, client)
	})
	relay(&answers{Conn: client, loggedIn: loggedIn}, server)
	_ = client.Close()
	_ = server.Close()
	in.Wait()
}

// relay copies with a small buffer of its own.
func relay(to io.Writer, from io.Reader) {
	type onlyReader struct{ io.Reader }
	type onlyWriter struct{ io.Writer }
	_, _ = io.CopyBuffer(onlyWriter{to}, onlyReader{from}, make([]byte, frontBuffer))
}

// answers are what a client gets. They fail if it takes nothing for a while: the front does
// not see that the server has given it up.
//
// Before a login the server sends lines of INFO and -ERR alone. The first of another kind,
// such as the PONG that clients ask for, says that it has let the client in.
type answers struct {
	net.Conn
	loggedIn func() // nil once it was called
	inLine   bool   // the next byte is not the first of a line
}

func (a *answers) Write(p []byte) (int, error) {
	for i := 0; i < len(p) && a.loggedIn != nil; i++ {
		if !a.inLine && p[i] != 'I' && p[i] != '-' {
			a.loggedIn()
			a.loggedIn = nil
			break
		}
		a.inLine = p[i] != '\n'
	}
	if err := a.SetWriteDeadline(time.Now().Add(frontPatience)); err != nil {
		return 0, err
	}
	return a.Conn.Write(p)
}

// close stops accepting and closes what came by TCP. What is in the process ends with the
// server; then running is over.
func (f *front) close() {
	close(f.closing)
	_ = f.listener.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for client := range f.open {
		_ = client.Close()
	}
	f.open = nil
}
