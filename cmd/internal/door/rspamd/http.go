package rspamd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"hamlet/cmd/internal/door/gateway"
)

// serveHTTP serves one connection by a server of its own, so that the end of ctx closes
// it between two requests.
func (s *Server) serveHTTP(ctx context.Context, conn net.Conn, in *bufio.Reader) {
	c := &httpConn{Conn: conn, in: in, header: headerBudget{door: s.door, open: true}, closed: make(chan struct{})}
	defer c.header.release()
	server := &http.Server{
		Handler:                      s.recovering(c),
		ReadHeaderTimeout:            startTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader - 4<<10, // net/http adds 4 KiB
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnState:                    c.changed,
		ErrorLog:                     log.New(io.Discard, "", 0),
	}
	defer context.AfterFunc(ctx, func() { server.SetKeepAlivesEnabled(false) })()
	_ = server.Serve(gateway.Single(c, c.closed))
}

// recovering calls the mux. A panic ends the connection and reaches the log.
func (s *Server) recovering(c *httpConn) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.header.close()
		defer func() {
			if p := recover(); p != nil {
				s.door.Log.Error("panic in a door", "door", s.door.Name(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			}
		}()
		s.mux.ServeHTTP(w, r)
	})
}

// An httpConn is a connection whose first bytes are in a buffer.
type httpConn struct {
	net.Conn
	in     *bufio.Reader
	header headerBudget
	once   sync.Once
	closed chan struct{} // closed when net/http has closed the connection
}

var errHeaderMemory = fmt.Errorf("a request's header: %w", gateway.ErrMemory)

// Read returns what is in the buffer first. Once there is no room for a header, the
// connection is closed and all that follows is its end: net/http must not read on behind
// bytes that are lost.
func (c *httpConn) Read(p []byte) (int, error) {
	if c.header.refused() {
		return 0, io.EOF
	}
	var n int
	var err error
	if c.in.Buffered() > 0 {
		n, err = c.in.Read(p)
	} else {
		n, err = c.Conn.Read(p)
	}
	if !c.header.take(n) {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

// changed follows the states of the connection.
func (c *httpConn) changed(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateIdle:
		c.header.reopen()
	case http.StateClosed, http.StateHijacked:
		switch {
		case c.header.refused():
			c.header.door.PassedBroken(errHeaderMemory)
		case c.header.begun():
			c.header.door.Garbage(errors.New("no request of HTTP, or half of one"))
		}
		c.once.Do(func() { close(c.closed) })
	}
}

// A headerBudget counts the bytes of a header that arrives. Beyond freeHeader it takes
// headerCost times as many from the gateway's budget, because many short fields take much
// more memory than their bytes. It may be used concurrently.
type headerBudget struct {
	door *gateway.Door

	mu      sync.Mutex
	open    bool // a header arrives
	full    bool // there was no room for it; final
	n, held int64
}

const (
	freeHeader = 4 << 10
	headerCost = 32
)

// take counts n bytes and returns whether there is room for them. The caller ends the
// request if there is none.
func (h *headerBudget) take(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open || n <= 0 {
		return true
	}
	h.n += int64(n)
	more := max(0, h.n-freeHeader)*headerCost - h.held
	if more <= 0 {
		return true
	}
	if !h.door.Acquire(more) {
		h.full = true
		return false
	}
	h.held += more
	return true
}

// begun reports whether a part of a header has arrived, and not all of it.
func (h *headerBudget) begun() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open && h.n > 0
}

// refused reports whether there was no room for the header.
func (h *headerBudget) refused() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.full
}

// close says that the header is complete. Its memory stays taken.
func (h *headerBudget) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = false
}

// release gives the memory back.
func (h *headerBudget) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.door.Return(h.held)
	h.held, h.n = 0, 0
}

// reopen gives the memory back and awaits the next header.
func (h *headerBudget) reopen() {
	h.release()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = true
}

// errCut: a body has more than maxBody bytes.
var errCut = errors.New("the body does not end")

// A paced reader reads a body that must make progress.
type paced struct {
	r           io.Reader
	setDeadline func(time.Time) error
	pace        gateway.Pace
	start       time.Time
	n           int64
}

// Read implements [io.Reader].
func (p *paced) Read(b []byte) (int, error) {
	if p.n > maxBody {
		return 0, errCut
	}
	if err := p.setDeadline(p.start.Add(p.pace.For(p.n))); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}

// receive reads the message of a request. Without an error the body may still have one.
// An answer to a body that did not arrive whole closes the connection.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, body *gateway.Body) error {
	if err := refused(r.Header); err != nil {
		return err
	}
	control := http.NewResponseController(w)
	in := &paced{r: r.Body, setDeadline: control.SetReadDeadline, pace: s.pace, start: time.Now()}
	err := s.readBody(body, in, r.Header)
	if err != nil {
		return err
	}
	return control.SetReadDeadline(time.Time{}) // while we score, the client need not speak
}

// statusOf returns the status that an error of receive is answered with.
func statusOf(err error) int {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	case errors.Is(err, errUnsupported):
		return http.StatusUnsupportedMediaType
	case errors.Is(err, gateway.ErrMemory):
		return http.StatusServiceUnavailable
	case errors.Is(err, gateway.ErrTooLarge), errors.Is(err, errCut):
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// garbage answers what is no request of the protocol, as rspamd does.
func (s *Server) garbage(w http.ResponseWriter, code int, err error) {
	s.door.Garbage(err)
	w.Header().Set("Connection", "close") // the rest of its body is not awaited
	s.fail(w, code, err.Error())
}

// fail answers with rspamd's form of an error.
func (s *Server) fail(w http.ResponseWriter, code int, reason string) {
	answer, err := json.Marshal(struct {
		Error  string `json:"error"`
		Domain string `json:"error_domain"`
	}{reason, "protocol-error"})
	if err != nil {
		panic(err)
	}
	s.reply(w, code, "application/json", answer)
}

// reply writes an answer, for which the client has answerTimeout.
func (s *Server) reply(w http.ResponseWriter, code int, contentType string, answer []byte) {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		s.door.Log.Debug("set the deadline of an answer", "door", s.door.Name(), "error", err)
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(answer) // the client may be gone
}
