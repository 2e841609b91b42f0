package embedded

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

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
	k := &kafkaConn{}
	k.checkedConn = checkedConn{Conn: c, check: k.follow}
	return k, nil
}

// A kafkaConn is a client's connection. kfake answers one request before it reads another.
type kafkaConn struct {
	checkedConn
	requests requestChecker // only Read uses it
	asked    atomic.Int32   // the API key of the last request; only Read writes it
}

func (c *kafkaConn) follow(p []byte) error {
	err := c.requests.check(p)
	c.asked.Store(int32(c.requests.last))
	return err
}

// saslHandshake is the API key of a client's first request where there are passwords.
const saslHandshake = 17

// Write adds to the answer to a handshake which mechanisms there are. kfake names them only
// where it refuses one, and clients such as kafkajs and kafka-python then give up.
func (c *kafkaConn) Write(p []byte) (int, error) {
	const header = sizeBytes + 4 // the correlation id follows the size
	answer := kmsg.NewPtrSASLHandshakeResponse()
	answer.Version = 1
	if c.asked.Load() != saslHandshake || len(p) < header || answer.ReadFrom(p[header:]) != nil ||
		answer.ErrorCode != 0 || len(answer.SupportedMechanisms) > 0 {
		return c.checkedConn.Write(p)
	}
	answer.SupportedMechanisms = []string{mechanism}
	whole := answer.AppendTo(slices.Clone(p[:header]))
	binary.BigEndian.PutUint32(whole, uint32(len(whole)-sizeBytes))
	if _, err := c.checkedConn.Write(whole); err != nil {
		return 0, err
	}
	return len(p), nil
}

// A requestChecker checks a stream of requests. A request is a size of 4 bytes,
// big-endian, and that many bytes. The first 2 are the API key. Only check changes it.
type requestChecker struct {
	head [sizeBytes + keyBytes]byte
	seen int   // bytes of head that have arrived; once it is full, rest counts down
	rest int64 // bytes of the request after its head; set with the size
	last int16 // the API key of the last request
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
			c.last = int16(binary.BigEndian.Uint16(c.head[sizeBytes:]))
			if kmsg.RequestForKey(c.last) == nil {
				return fmt.Errorf("kafka: a request of unknown API key %d", c.last)
			}
		}
	}
	return nil
}
