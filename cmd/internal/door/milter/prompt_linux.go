package milter

import (
	"io"
	"net"
	"syscall"
)

// prompt returns a reader of conn that acknowledges by TCP what it has read at once.
// Postfix writes a message in several small pieces that get no answer. Its kernel keeps
// the second back until the first is acknowledged (Nagle), and ours waits 40 ms for an
// answer to go along with that: a message took 50 ms instead of 5.
func prompt(conn net.Conn) io.Reader {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &promptReader{conn, raw}
}

type promptReader struct {
	conn net.Conn
	raw  syscall.RawConn
}

func (r *promptReader) Read(p []byte) (int, error) {
	n, err := r.conn.Read(p)
	if n > 0 { // the option does not last: the kernel takes it back
		_ = r.raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		})
	}
	return n, err
}
