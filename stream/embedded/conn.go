package embedded

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// A checkedConn closes a connection whose client does not speak the protocol.
type checkedConn struct {
	net.Conn
	check func([]byte) error // is given all bytes read, in order
}

// Read fails if check does, and then returns none of the bytes.
func (c *checkedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bad := c.check(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// listen listens on addr. The error for a port in use says what to do.
func listen(network, addr string) (net.Listener, error) {
	l, err := net.Listen(network, addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is taken by another program: stop that one or choose another port (0: any free one)", addr)
	}
	return l, err
}

// defaultAddr is a free port of loopback.
const defaultAddr = "127.0.0.1:0"
