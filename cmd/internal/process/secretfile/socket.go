package secretfile

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// Listen makes a socket at path with a mode. On Linux it has no other mode before: bind(2) gives
// the socket that of its descriptor, less the umask. To change the umask instead would change it
// for every file and folder that this process makes meanwhile.
func Listen(path string, mode os.FileMode) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { setMode(fd, mode) })
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
