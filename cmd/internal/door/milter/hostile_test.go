package milter

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-milter"

	"hamlet/cmd/internal/door/gateway"
)

// TestCommands sends commands that the door has no use for, also where it said so.
func TestCommands(t *testing.T) {
	d := open(t, gateway.Config{}, Config{}, nil)
	for _, protocol := range []milter.OptProtocol{allProtocol, 0} {
		s := d.dialAs(t, 6, allActions, protocol)
		for range 3 {
			for _, data := range []string{"", "x", "host\x00", "host\x00U", "host\x004\x00\x19127.0.0.1\x00", strings.Repeat("x", 2*maxFrame)} {
				for _, code := range []byte("UTCH") {
					s.command(code, 0, data)
				}
				s.send('D', []byte(data))
			}
			s.command('M', milter.OptNoMailReply, "<>\x00")
			s.command('R', milter.OptNoRcptReply, "<void@example.com>\x00")
			s.content("Subject: void\n\nvoid\n")
			s.send([]byte("AK")[len(d.client.asked)%2], nil)
			if got := s.deliver(letter, "bob@example.com"); got.answer != 'a' || got.changes != 1 {
				t.Fatalf("answered with %q and %d changes", got.answer, got.changes)
			}
			if got := d.client.last(); got != letter {
				t.Fatalf("scored\n%q", got)
			}
		}
		s.send('Q', nil)
		if _, _, err := s.tryReceive(); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
	}
	if n := d.metric(t, "protocol_errors_total", ""); n != 0 {
		t.Errorf("%v protocol errors", n)
	}
}

// TestManyMessages checks that nothing of a message stays on its connection: neither its
// tenants nor its fields, nor memory.
func TestManyMessages(t *testing.T) {
	d := open(t, gateway.Config{Marks: gateway.Marks{Tag: "[SPAM] "}}, Config{}, map[string]float64{"default": 1})
	s := d.dial(t)
	var heap [2]uint64
	for i := range 300 {
		var b strings.Builder
		for j := range 200 { // names and values that differ
			fmt.Fprintf(&b, "X-%d-%d: %0200d\n", i, j, i)
		}
		got := s.deliver(b.String() + letter)
		if got.changes != 3 || len(got.header) != 200+4+2 {
			t.Fatalf("message %d: %d changes, %d fields", i, got.changes, len(got.header))
		}
		d.client.bodies = nil
		if i == 50 || i == 299 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap[i/299] = m.HeapAlloc
		}
	}
	if heap[1] > heap[0]+4<<20 { // 250 messages of 40 kB of fields are 10 MB
		t.Errorf("the heap grew from %d to %d bytes", heap[0], heap[1])
	}
}

// TestGarbage sends what is not the protocol. The connection ends, and is counted.
func TestGarbage(t *testing.T) {
	d := open(t, gateway.Config{}, Config{}, nil)
	offer := frame('O', "\x00\x00\x00\x06\x00\x00\x01\xff\x00\x1f\xff\xff")
	for name, b := range map[string]string{
		"HTTP":                       "GET / HTTP/1.1\r\n\r\n",
		"an empty frame":             "\x00\x00\x00\x00",
		"a lying length":             "\xff\xff\xff\xffB",
		"an unknown command":         string(frame('z', "")),
		"a short negotiation":        string(frame('O', "\x00\x00\x00\x06")),
		"a long negotiation":         string(frame('O', strings.Repeat("x", cutFrame+1))),
		"an old version":             string(frame('O', "\x00\x00\x00\x01\x00\x00\x01\xff\x00\x1f\xff\xff")),
		"half a frame and the end":   string(frame('B', "hello")[:7]),
		"half a length and the end":  "\x00\x00",
		"half a last chunk, the end": string(frame('E', "hello")[:7]),
	} {
		t.Run(name, func(t *testing.T) {
			before := d.metric(t, "protocol_errors_total", "")
			conn, err := net.Dial("unix", d.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = conn.Write(append(bytes.Clone(offer), b...))
			if strings.Contains(name, "the end") {
				_ = conn.(*net.UnixConn).CloseWrite()
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
			if n := d.metric(t, "protocol_errors_total", "") - before; n != 1 && !strings.HasPrefix(name, "half a frame") {
				t.Errorf("%v errors are counted", n)
			}
		})
	}
}

// TestManyClients opens 1,000 connections that announce much, send little and fall silent.
// They hold little memory, and others are served at once.
func TestManyClients(t *testing.T) {
	const clients, budget = 1000, 1 << 20
	d := open(t, gateway.Config{Memory: budget}, Config{}, nil)
	lie := frame('L', "X-Long\x00")
	binary.BigEndian.PutUint32(lie, maxFrame)
	half := [][]byte{lie, {0, 0}, frame('M', "<ann@example.com>\x00")[:9], frame('L', "Subject\x00 news\x00"), frame('U', strings.Repeat("x", 100))}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range clients {
		d.dial(t).raw(half[i%len(half)])
	}
	start := time.Now()
	if got := d.dial(t).deliver(letter); got.changes != 1 {
		t.Errorf("another connection got %+v", got)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("another connection waited %v", took)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > budget+clients*24<<10 { // 50 MB were announced
		t.Errorf("%d connections hold %d bytes", clients, grown)
	}
	if held := d.metric(t, "held_bytes", ""); held > budget {
		t.Errorf("%v bytes are held", held)
	}
}

// handle serves one connection in a bubble of synctest and returns the other end.
func handle(t *testing.T, d *testDoor, ctx context.Context) (conn net.Conn, done chan time.Duration) {
	here, there := net.Pipe()
	done = make(chan time.Duration, 1)
	start := time.Now()
	go func() {
		d.server.Handle(ctx, there)
		done <- time.Since(start)
	}()
	return here, done
}

// TestSilence checks how long a silent client keeps its connection.
func TestSilence(t *testing.T) {
	d := open(t, gateway.Config{}, Config{}, nil)
	for _, c := range []struct {
		name string
		send func(s *mailServer)
		want time.Duration
	}{
		{"between messages", func(*mailServer) {}, idleTimeout},
		{"between recipients", func(s *mailServer) { s.send('M', []byte("<>\x00")) }, idleTimeout},
		{"in a frame", func(s *mailServer) { s.raw(frame('M', "<ann@example.com>")[:8]) }, frameTimeout},
		{"in a length", func(s *mailServer) { s.raw([]byte{0}) }, frameTimeout},
		{"in the header", func(s *mailServer) { s.send('L', []byte("a\x00b\x00")) }, frameTimeout + 1},
		{"in the body", func(s *mailServer) { s.send('B', bytes.Repeat([]byte("0123456789abcde\n"), minRate/16)) }, frameTimeout + time.Second + 1},
		{"drop by drop", func(s *mailServer) {
			for range 120 {
				if _, err := s.conn.Write(frame('B', "x")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}, frameTimeout + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, done := handle(t, d, context.Background())
				defer conn.Close()
				c.send(negotiate(t, conn, 6, allActions, allProtocol))
				got := <-done
				if got.Truncate(time.Second) != c.want.Truncate(time.Second) {
					t.Errorf("closed after %v, want %v", got, c.want)
				}
			})
		})
	}
	for name, before := range map[string][]byte{
		"says nothing at all":    nil,
		"does not negotiate":     frame('U', "x"),
		"sends macros and stops": frame('D', "Cj\x00host\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, done := handle(t, d, context.Background())
				defer conn.Close()
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				if _, err := conn.Write(before); err != nil {
					t.Fatal(err)
				}
				if got := <-done; got != frameTimeout {
					t.Errorf("closed after %v, want %v", got, frameTimeout)
				}
			})
		})
	}
	t.Run("nobody reads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, done := handle(t, d, context.Background())
			defer conn.Close()
			s := negotiate(t, conn, 6, allActions, allProtocol)
			s.content(letter)
			s.send('E', nil)
			if got := <-done; got != frameTimeout {
				t.Errorf("closed after %v, want %v", got, frameTimeout)
			}
		})
	})
	if held := d.metric(t, "held_bytes", ""); held != 0 {
		t.Errorf("%v bytes are still held", held)
	}
}

// TestStop checks that the end of ctx lets the message under way pass, and none else.
func TestStop(t *testing.T) {
	d := open(t, gateway.Config{}, Config{}, nil)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		idle, idleDone := handle(t, d, ctx)
		busy, busyDone := handle(t, d, ctx)
		negotiate(t, idle, 6, allActions, allProtocol)
		s := negotiate(t, busy, 6, allActions, allProtocol)
		s.content(letter)
		cancel()
		if got := <-idleDone; got != 0 {
			t.Errorf("the idle connection ended after %v", got)
		}
		time.Sleep(time.Second)
		if got := s.end(nil, nil); got.answer != 'a' || got.changes != 1 {
			t.Errorf("the message was answered with %q and %d changes", got.answer, got.changes)
		}
		if got := <-busyDone; got != time.Second {
			t.Errorf("the busy connection ended after %v", got)
		}
		_, _ = idle.Close(), busy.Close()
	})
	if n := d.metric(t, "protocol_errors_total", ""); n != 0 {
		t.Errorf("%v protocol errors", n)
	}
}

// FuzzWire sends arbitrary bytes. No command panics, the library logs nothing, and no
// memory stays taken.
func FuzzWire(f *testing.F) {
	offer := string(frame('O', "\x00\x00\x00\x06\x00\x00\x01\xff\x00\x1f\xff\xff"))
	message := string(frame('M', "<>\x00")) + string(frame('R', "<a@example.com>\x00")) +
		string(frame('L', "X-Hamlet\x00ham\x00")) + string(frame('L', "Subject\x00 news\x00")) +
		string(frame('N', "")) + string(frame('B', "hello\r")) + string(frame('E', "\nAnn"))
	f.Add([]byte(offer + message + message))
	f.Add([]byte(message + string(frame('A', ""))))
	f.Add([]byte(offer + string(frame('L', "\x00\x00")) + string(frame('E', ""))))
	f.Add([]byte(offer + string(frame('L', "a\x00b\x00c\x00")) + "\x00\x03\x00\x00B"))
	var logged bytes.Buffer
	before := log.Writer()
	log.SetOutput(&logged)
	f.Cleanup(func() { log.SetOutput(before) })
	d := open(f, gateway.Config{Memory: 100 << 10, Marks: gateway.Marks{Tag: "[SPAM] ", SpamFields: true}}, Config{RejectAt: .999}, map[string]float64{"default": .99})
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.server.Handle(context.Background(), there)
		}()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		_ = here.SetWriteDeadline(time.Now().Add(time.Minute))
		_, _ = here.Write(b)
		_ = here.Close()
		<-done
		if logged.Len() > 0 {
			t.Errorf("the library logged %q", logged.String())
		}
		if held := d.metric(t, "held_bytes", ""); held != 0 {
			t.Errorf("%v bytes are still held", held)
		}
	})
}
