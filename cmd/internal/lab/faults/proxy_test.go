package faults

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"
)

// patience bounds waits on a slow machine.
const patience = 30 * time.Second

// echo starts a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // until the client ends
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// exchange sends b and returns as many bytes as come back.
func exchange(c net.Conn, b []byte) ([]byte, error) {
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(b)
		sent <- err
	}()
	back := make([]byte, len(b))
	_, err := io.ReadFull(c, back)
	return back, errors.Join(err, <-sent)
}

func newProxy(t *testing.T, newFlipper func() flipper) *proxy {
	t.Helper()
	x, err := listenProxy("127.0.0.1:0", echo(t), newFlipper)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// Bytes pass unchanged; a cut ends every connection; a refused one ends too; the next
// works again.
func TestProxyCuts(t *testing.T) {
	t.Parallel()
	x := newProxy(t, nil)
	message := bytes.Repeat([]byte("hello "), 50_000)
	one, two := dial(t, x.Addr()), dial(t, x.Addr())
	for _, c := range []net.Conn{one, two} {
		if back, err := exchange(c, message); err != nil || !bytes.Equal(back, message) {
			t.Fatalf("%d bytes came back: %v", len(back), err)
		}
	}
	x.Refuse(true)
	x.Cut()
	conns := []net.Conn{one, two}
	if third, err := net.Dial("tcp", x.Addr()); err == nil { // it may be refused that early
		defer third.Close()
		conns = append(conns, third)
	}
	for _, c := range conns {
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := exchange(c, message); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a cut connection: %v", err)
		}
	}
	x.Refuse(false)
	if _, err := exchange(dial(t, x.Addr()), message); err != nil {
		t.Errorf("after the cut: %v", err)
	}
}

// A slow proxy takes at least as long as its rate says, also on an open connection.
func TestProxySlows(t *testing.T) {
	t.Parallel()
	x := newProxy(t, nil)
	c := dial(t, x.Addr())
	message := make([]byte, 40_000)
	x.Slow(100_000)
	begun := time.Now()
	if _, err := exchange(c, message); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("40,000 bytes at 100,000 a second took %v", took)
	}
	x.Slow(0)
	if _, err := exchange(c, message); err != nil {
		t.Error(err)
	}
}

// A flip changes one bit that a checksum covers, and reports when none comes.
func TestProxyFlips(t *testing.T) {
	t.Parallel()
	x := newProxy(t, func() flipper { return new(kafkaFlipper) })
	if x.Flip(10 * time.Millisecond) {
		t.Error("a flip without traffic")
	}
	c := dial(t, x.Addr())
	message := frame([]byte("produce"), batch(rand.New(rand.NewPCG(5, 6)), 300))
	flipped := make(chan bool)
	go func() { flipped <- x.Flip(patience) }()
	for {
		back, err := exchange(c, message)
		if err != nil {
			t.Fatal(err)
		}
		if _, n := differences(t, message, back); n == 1 {
			break
		} else if n > 1 {
			t.Fatalf("%d bits differ", n)
		}
	}
	if !<-flipped {
		t.Error("a bit was flipped, and Flip says that none was")
	}
	if back, err := exchange(c, message); err != nil || !bytes.Equal(back, message) {
		t.Errorf("after the flip: %v", err)
	}
}
