package loopback

import (
	"errors"
	"net"
	"runtime"
	"syscall"
	"testing"
)

// A held port refuses connections. A server can listen on it, close and listen again.
func TestServersInTurn(t *testing.T) {
	addr := Hold(t)
	for range 3 {
		if conn, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial %s without a server: %v, %v; want a refusal", addr, conn, err)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		client, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []interface{ Close() error }{l, server, client} { // the server's end stays in TIME_WAIT
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An outgoing connection does not get the port, even if it asks for it. With a free
// port it would connect to itself.
func TestNobodyElseGetsIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux gives a port twice to who names it and never to who does not")
	}
	addr := Hold(t)
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.DialTCP("tcp", at, at); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("from %s to itself: %v, %v; want that the port is in use", addr, conn, err)
	}
}
