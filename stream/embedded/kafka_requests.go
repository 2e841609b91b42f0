package embedded

import (
	"encoding/binary"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxRequestBytes is Kafka's default of socket.request.max.bytes.
const maxRequestBytes = 100 << 20

// A kafkaListener closes connections that do not speak Kafka's protocol. kfake would
// reserve a gigabyte for the size in "GET /", and end the process at an unknown API
// key.
type kafkaListener struct{ net.Listener }

func (l kafkaListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &checkedConn{Conn: c, check: new(requestChecker).check}, nil
}

// A requestChecker checks a stream of requests. A request is a size of 4 bytes,
// big-endian, and that many bytes. The first 2 are the API key. Only check changes it.
type requestChecker struct {
	head [sizeBytes + keyBytes]byte
	seen int   // bytes of head that have arrived; once it is full, rest counts down
	rest int64 // bytes of the request after its head; set with the size
}

const sizeBytes, keyBytes = 4, 2

func (c *requestChecker) check(p []byte) error {
	for len(p) > 0 {
		if c.seen == len(c.head) {
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
			n = min(n, sizeBytes-c.seen) // check the size before the key arrives
		}
		c.seen += n
		p = p[n:]
		switch c.seen {
		case sizeBytes:
			size := binary.BigEndian.Uint32(c.head[:])
			if size < keyBytes || size > maxRequestBytes {
				return fmt.Errorf("kafka: a request of %d bytes: at least %d and at most %d", size, keyBytes, maxRequestBytes)
			}
			c.rest = int64(size) - keyBytes
		case len(c.head):
			if key := int16(binary.BigEndian.Uint16(c.head[sizeBytes:])); kmsg.RequestForKey(key) == nil {
				return fmt.Errorf("kafka: a request of unknown API key %d", key)
			}
		}
	}
	return nil
}
