package httpd

import (
	"errors"
	"net"
	"testing"
)

// Beyond the bound a connection waits until another one ends, or the listener does.
func TestConnectionsAreBounded(t *testing.T) {
	l, err := listen("127.0.0.1:0", 2)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	var last net.Conn
	for range 4 {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	first := <-accepted
	last = <-accepted
	select {
	case <-accepted:
		t.Error("a third connection is taken")
	default:
	}
	first.Close()
	first.Close() // counts once
	third := <-accepted
	defer third.Close()
	if _, ok := last.(interface{ CloseWrite() error }); !ok {
		t.Error("a connection cannot close one half")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, want that the listener is closed", err)
	}
	last.Close()
}
