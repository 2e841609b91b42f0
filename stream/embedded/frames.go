package embedded

import (
	"encoding/binary"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxRequestBytes is Kafka's default of socket.request.max.bytes.
const maxRequestBytes = 100 << 20

// requestHead is the length of what is looked at of a request: its size, which
// counts the bytes that follow it, and the key of its kind.
const requestHead = sizeBytes + kindBytes

const sizeBytes, kindBytes = 4, 2

// A requestListener closes connections that do not speak Kafka's protocol, as
// Kafka does. kfake takes the first four bytes on trust: those of "GET /" or of a
// TLS handshake would have it reserve a gigabyte, and a kind of request that it
// does not know would bring the process down.
type requestListener struct{ net.Listener }

func (l requestListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &requestConn{Conn: c}, nil
}

// A requestConn reads a stream of requests: a size in 4 bytes, big-endian, and as
// many bytes, of which the first two are the kind.
type requestConn struct {
	net.Conn
	head [requestHead]byte
	seen int   // bytes of head
	rest int64 // bytes of the request that follow its head
}

// Read fails at the request that is none; nothing of it, nor of what came with it,
// is handed on.
func (c *requestConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bad := c.follow(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// follow goes through the bytes read.
func (c *requestConn) follow(p []byte) error {
	for len(p) > 0 {
		if c.seen == requestHead {
			n := min(c.rest, int64(len(p)))
			c.rest -= n
			p = p[n:]
			if c.rest == 0 {
				c.seen = 0 // the next request begins
			}
			continue
		}
		n := copy(c.head[c.seen:], p)
		if c.seen < sizeBytes {
			n = min(n, sizeBytes-c.seen) // the size is judged before the kind is there
		}
		c.seen += n
		p = p[n:]
		switch c.seen {
		case sizeBytes:
			size := binary.BigEndian.Uint32(c.head[:])
			if size < kindBytes || size > maxRequestBytes {
				return fmt.Errorf("kafka: a request of %d bytes: at least %d and at most %d", size, kindBytes, maxRequestBytes)
			}
			c.rest = int64(size) - kindBytes
		case requestHead:
			if key := int16(binary.BigEndian.Uint16(c.head[sizeBytes:])); kmsg.RequestForKey(key) == nil {
				return fmt.Errorf("kafka: a request of unknown kind %d", key)
			}
		}
	}
	return nil
}
