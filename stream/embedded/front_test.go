package embedded

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// A full front gives the place of the oldest stranger to who comes. A client that has
// logged in keeps its place, and who comes then waits.
func TestFrontMakesRoom(t *testing.T) {
	listener, err := net.Listen("tcp", defaultAddr)
	if err != nil {
		t.Fatal(err)
	}
	f := newFront(listener, 2, oneLogin, slog.New(slog.DiscardHandler))
	defer func() { f.close(); f.running.Wait() }()

	first, second := newVisitor(t, listener), newVisitor(t, listener)
	first.hear(t, "INFO")
	second.hear(t, "INFO")
	third := newVisitor(t, listener)
	first.gone(t)
	third.hear(t, "INFO")
	for _, v := range []*visitor{second, third} {
		v.say(t, "CONNECT")
		v.hear(t, "PONG")
	}
	fourth := newVisitor(t, listener)
	for _, v := range []*visitor{second, third} {
		v.say(t, "CONNECT")
		v.hear(t, "PONG")
	}
	second.Close()
	fourth.hear(t, "INFO")
	third.say(t, "CONNECT")
	third.hear(t, "PONG")
}

// oneLogin is a server that lets in who says a line.
func oneLogin() (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		_, err := io.WriteString(server, "INFO {}\r\n")
		for lines := bufio.NewScanner(server); err == nil && lines.Scan(); {
			_, err = io.WriteString(server, "PONG\r\n")
		}
	}()
	return client, nil
}

type visitor struct {
	net.Conn
	lines *bufio.Scanner
}

func newVisitor(t *testing.T, l net.Listener) *visitor {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &visitor{conn, bufio.NewScanner(conn)}
}

func (v *visitor) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(v, line+"\r\n"); err != nil {
		t.Fatal(err)
	}
}

func (v *visitor) hear(t *testing.T, want string) {
	t.Helper()
	if !v.lines.Scan() || !strings.HasPrefix(v.lines.Text(), want) {
		t.Fatalf("%q, %v; want %s", v.lines.Text(), v.lines.Err(), want)
	}
}

func (v *visitor) gone(t *testing.T) {
	t.Helper()
	var timeout net.Error
	if v.lines.Scan() || errors.As(v.lines.Err(), &timeout) && timeout.Timeout() {
		t.Fatalf("%q, %v; want the end of the connection", v.lines.Text(), v.lines.Err())
	}
}

func TestAnswersTellALogin(t *testing.T) {
	for text, want := range map[string]bool{
		"":                        false,
		"INFO {\"P\":1}\r\n":      false,
		"INFO {}\r\n-ERR 'P'\r\n": false,
		"INFO {}\r\nPONG\r\n":     true,
		"INFO {}\r\n+OK\r\n":      true,
		"INFO {}\r\nINFO {}\r\nMSG a 1 0\r\n\r\n": true,
	} {
		client, other := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, other) }()
		got := false
		a := &answers{Conn: client, loggedIn: func() { got = true }}
		for i := range text { // the worst pieces
			if _, err := io.WriteString(a, text[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("%q: logged in %v, want %v", text, got, want)
		}
		client.Close()
	}
}
