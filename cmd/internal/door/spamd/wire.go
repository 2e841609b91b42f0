package spamd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"hamlet/cmd/internal/door/gateway"
)

// A wire is a connection with deadlines.
type wire struct {
	conn  net.Conn
	r     *bufio.Reader // reads through the wire
	pace  gateway.Pace
	start time.Time
	got   int64
	ctx   context.Context // ends while the wire waits for a request; nil afterwards
}

func newWire(conn net.Conn, pace gateway.Pace) *wire {
	w := &wire{conn: conn, pace: pace, start: time.Now()}
	w.r = bufio.NewReaderSize(w, maxLine)
	return w
}

// await waits for a request's first byte, and returns false if none came: the client
// left, was silent, or ctx ended.
func (w *wire) await(ctx context.Context) bool {
	w.ctx = ctx
	stop := context.AfterFunc(ctx, func() { _ = w.conn.SetReadDeadline(time.Unix(1, 0)) })
	_, err := w.r.Peek(1)
	w.ctx = nil
	return stop() && err == nil
}

// Read reads from the connection by the deadline that is due.
func (w *wire) Read(p []byte) (int, error) {
	_ = w.conn.SetReadDeadline(w.start.Add(w.pace.For(w.got)))
	if w.ctx != nil && w.ctx.Err() != nil {
		return 0, w.ctx.Err()
	}
	n, err := w.conn.Read(p)
	w.got += int64(n)
	return n, err
}

// write sends the pieces of an answer.
func (w *wire) write(pieces ...[]byte) error {
	var n int64
	for _, p := range pieces {
		n += int64(len(p))
	}
	_ = w.conn.SetWriteDeadline(time.Now().Add(w.pace.For(n)))
	buffers := net.Buffers(pieces)
	_, err := buffers.WriteTo(w.conn)
	return err
}

// finish ends our half, and then reads what the client still sends. A connection that is
// closed with unread bytes is reset, and a reset can overtake the answer.
func (w *wire) finish() {
	if half, ok := w.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = w.conn.SetReadDeadline(time.Now().Add(w.pace.Stall))
	_, _ = io.Copy(io.Discard, w.conn)
}

// isTimeout reports whether a deadline of the wire has passed.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// A bodyReader reads the left bytes of a body, and finds out if more came with them.
type bodyReader struct {
	r    io.Reader
	left int64
	more bool // the client sent more
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if b.left == 0 || len(p) == 0 {
		return 0, io.EOF
	}
	// One byte more than is due shows whether it is there. With room for one byte alone
	// nothing is seen; no reader here asks so.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		b.more = true
		n = int(b.left)
	}
	b.left -= int64(n)
	return n, err
}
