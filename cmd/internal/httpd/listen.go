package httpd

import (
	"net"
	"sync"

	"hamlet/cmd/internal/systemd"
)

// A listener has a bounded number of connections open. Its connections are those of TCP
// in all they can do: package net/http closes one half of a connection that it refuses, so
// that the client sees the answer.
type listener struct {
	*net.TCPListener
	places chan struct{} // holds one token for each open connection
	closed chan struct{} // once Close is called
	once   sync.Once     // closes closed
}

// listen takes a TCP address, or the socket that systemd holds there. While most connections are open, more wait in the kernel's
// queue.
func listen(addr string, most int) (net.Listener, error) {
	l, err := systemd.Listener(addr)
	if l == nil && err == nil {
		l, err = net.Listen("tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	return &listener{TCPListener: l.(*net.TCPListener), places: make(chan struct{}, most), closed: make(chan struct{})}, nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.AcceptTCP()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &conn{TCPConn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.TCPListener.Close()
}

type conn struct {
	*net.TCPConn
	leave func()
}

func (c *conn) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}
