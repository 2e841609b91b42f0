package embedded

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

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
