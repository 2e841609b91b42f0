package rspamd

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/door/gateway"
)

// A connection whose header finds no memory is closed without an answer, at once, however
// much of the header is left.
func TestHTTPHeaderWithoutMemory(t *testing.T) {
	fields := strings.Repeat("X: y\r\n", 8_000)
	for name, serve := range map[string]func(*gateway.Door) *Server{"scan": scan, "controller": controllerDoor} {
		b := open(t, gateway.Config{Asker: spam(), Memory: 256 << 10}, serve)
		for i, header := range []string{
			fields[:18_000] + "\r\n", // the whole
			fields[:18_000],          // a part
			fields[:39_999] + "z: \r\n\r\n",
			fields,
		} {
			conn := b.dial()
			_, _ = io.WriteString(conn, "POST /checkv2 HTTP/1.1\r\nHost: x\r\n"+header) // it may be reset meanwhile
			if got, err := io.ReadAll(conn); len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s, %d bytes: %.60q, %v", name, len(header), got, err)
			}
			_ = conn.Close()
			b.scan(message, "Password", "secret") // small ones still pass
			b.await("hamlet_gateway_unmarked_total", float64(i+1))
		}
	}
}

// While a header arrives others take all the memory and give it back. The request is not
// read on: its message, which has fields like a header's, would choose the tenant.
func TestHeaderWithoutAHole(t *testing.T) {
	const room = 1 << 20
	c := spam()
	b := open(t, gateway.Config{Asker: c, Memory: room}, scan)
	conn := b.dial()
	defer conn.Close()
	begin := "POST /checkv2 HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 700)
	if _, err := io.WriteString(conn, begin); err != nil {
		t.Fatal(err)
	}
	held := int64(len(begin)-freeHeader) * headerCost
	b.await("hamlet_gateway_held_bytes", float64(held))
	if !b.server.door.Acquire(room - held) {
		t.Fatal("others find no memory")
	}
	_, err := io.WriteString(conn, "Deliver-To: alice\r\nContent-Length: 100000\r\n\r\n")
	b.await("hamlet_gateway_unmarked_total", 1)
	b.server.door.Return(room - held)
	if err == nil {
		_, _ = io.WriteString(conn, "Deliver-To: mallory\r\nContent-Length: 9\r\nConnection: close\r\n\r\nbuy now\r\n")
	}
	if got, err := io.ReadAll(conn); len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.60q, %v", got, err)
	}
	if asked := c.seen(); len(asked) > 0 {
		t.Errorf("asked for %q", asked)
	}
}

// Memory that others give back does not let a request go on behind bytes that are lost:
// its message would be read as its header.
func TestRefusedHeaderIsFinal(t *testing.T) {
	g, err := gateway.New(gateway.Config{Asker: spam(), Memory: 1 << 20, Deadline: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	door := g.Door("rspamd")
	if !door.Acquire(1 << 20) { // others' messages
		t.Fatal("no memory")
	}
	conn := &closing{replay: replay{Reader: bytes.NewReader(make([]byte, 16<<10))}}
	c := &httpConn{Conn: conn, in: bufio.NewReader(conn), header: headerBudget{door: door, open: true}}
	buffer := make([]byte, freeHeader)
	if n, err := io.ReadFull(c, buffer); err != nil || conn.closed {
		t.Fatal(n, err)
	}
	for range 2 {
		if n, err := c.Read(buffer); n != 0 || !errors.Is(err, io.EOF) || !conn.closed {
			t.Errorf("%d bytes, %v, closed: %v", n, err, conn.closed)
		}
		c.header.release()
		door.Return(1 << 19)
	}
}

// A closing connection knows whether it was closed.
type closing struct {
	replay
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}
