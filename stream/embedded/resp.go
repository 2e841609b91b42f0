package embedded

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Bounds of a command, far above what hamlet sends.
const (
	maxCommandBytes = 64 << 20 // of its arguments; Redis' own bound is 512 MiB each
	maxCommandArgs  = 1 << 20  // as in Redis

	// maxHeaderLine is the longest line: a type, at most 20 digits, CR, LF.
	maxHeaderLine = 23
)

// writeTimeout is how long a client may take to read the next writeBytes of a reply.
// miniredis writes replies under the lock of all its data.
const (
	writeTimeout = 2 * time.Second
	writeBytes   = 64 << 10
)

// A redisConn closes the connection of a client that does not speak RESP or does not
// read its replies.
type redisConn struct{ checkedConn }

func newRedisConn(c net.Conn) *redisConn {
	return &redisConn{checkedConn{Conn: c, check: new(respChecker).check}}
}

// Write fails if the client does not read within writeTimeout.
func (c *redisConn) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[:min(len(p), writeBytes)])
		written, p = written+n, p[n:]
		if err != nil {
			return written, errors.Join(err, c.Close()) // a part of a reply is useless
		}
	}
	return written, nil
}

// A respChecker checks a stream of commands in RESP: *n, then n arguments, each $length
// and that many bytes. miniredis trusts the numbers: it would reserve any length, and a
// command without arguments, or with a length that overflows, would end the process.
// Only check changes it:
//
//	state     args  rest  next byte
//	command   0     0     of the line *n
//	argument  >0    0     of the line $length
//	bytes     ≥0    >0    of an argument or the CR LF after it
type respChecker struct {
	line [maxHeaderLine]byte
	seen int // bytes of line that have arrived
	args int // arguments of this command that have not begun
	room int // bytes that its arguments may still have
	rest int // bytes to come of this argument, with its CR LF
}

func (c *respChecker) check(p []byte) error {
	for len(p) > 0 {
		if c.rest > 0 {
			n := min(c.rest, len(p))
			c.rest -= n
			p = p[n:]
			continue
		}
		if c.seen == len(c.line) {
			return fmt.Errorf("redis: %q is no number", c.line[:])
		}
		c.line[c.seen] = p[0]
		c.seen++
		p = p[1:]
		if c.line[c.seen-1] != '\n' {
			want := byte('$')
			if c.args == 0 {
				want = '*'
			}
			if c.line[0] != want {
				return fmt.Errorf("redis: %q where %q begins a command or an argument", c.line[0], want)
			}
			continue
		}
		if err := c.header(c.line[:c.seen]); err != nil {
			return err
		}
		c.seen = 0
	}
	return nil
}

// header reads a line: the number of a command's arguments, or an argument's length.
func (c *respChecker) header(line []byte) error {
	if len(line) < len("*1\r\n") || line[len(line)-2] != '\r' {
		return fmt.Errorf("redis: a line %q", line)
	}
	number, err := strconv.ParseUint(string(line[1:len(line)-2]), 10, 31)
	if err != nil {
		return fmt.Errorf("redis: a line %q: %w", line, err)
	}
	n := int(number)
	if c.args == 0 {
		if n == 0 || n > maxCommandArgs {
			return fmt.Errorf("redis: a command of %d arguments: at least 1 and at most %d", n, maxCommandArgs)
		}
		c.args, c.room = n, maxCommandBytes
		return nil
	}
	if n > c.room {
		return fmt.Errorf("redis: a command of more than %d bytes", maxCommandBytes)
	}
	c.args--
	c.room -= n
	c.rest = n + len("\r\n")
	return nil
}

// refused are commands of miniredis that could harm other clients.
var refused = map[string]bool{
	// They wait as long as their client likes, and a snapshot waits for them.
	"BLPOP": true, "BRPOP": true, "BRPOPLPUSH": true, "BLMOVE": true,
	"BZMPOP": true, "BZPOPMAX": true, "BZPOPMIN": true, "XREAD": true, "XREADGROUP": true,
	// A small number in them makes a value or a reply of gigabytes.
	"SETBIT": true, "SETRANGE": true, "SRANDMEMBER": true, "HRANDFIELD": true, "ZRANDMEMBER": true,
	// They make values that a snapshot cannot hold. One such key makes all snapshots fail.
	"XADD": true, "XGROUP": true, "PFADD": true, "PFMERGE": true,
}
