package embedded

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Bounds of a command to the Redis, far above what hamlet sends: a chunk of a model
// has 1 MiB, and a commit names some thousand of them.
const (
	maxCommandBytes = 64 << 20 // of its words; Redis' own bound is 512 MiB a word
	maxCommandWords = 1 << 20  // as Redis has it
)

// maxCommandLine is the length of the longest line between the words: a type, a
// number of at most 20 characters, CR, LF.
const maxCommandLine = 23

// replyPatience is how long a client may take to accept the next replyPiece of what
// it asked for. miniredis writes replies under the lock of all its data, so who
// asks and does not read would stop everybody.
const (
	replyPatience = 2 * time.Second
	replyPiece    = 64 << 10
)

// A commandConn reads a stream of commands in Redis' protocol: *n, then n words as
// $length and as many bytes. It fails at anything else, and the connection is
// closed. miniredis takes numbers on trust: it would reserve whatever length is
// named, and a command of no words, or of a length that overflows, would bring the
// process down.
type commandConn struct {
	net.Conn
	line  [maxCommandLine]byte
	seen  int // bytes of line
	words int // to come of this command; 0: between commands
	room  int // bytes that this command may still have
	rest  int // bytes to come of this word, its CR and LF included
}

// Read fails at the command that is none; nothing of it, nor of what came with it,
// is handed on.
func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bad := c.follow(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// Write gives up on a client that does not read.
func (c *commandConn) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(replyPatience)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[:min(len(p), replyPiece)])
		written, p = written+n, p[n:]
		if err != nil {
			return written, errors.Join(err, c.Close()) // half a reply is none
		}
	}
	return written, nil
}

// follow goes through the bytes read.
func (c *commandConn) follow(p []byte) error {
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
			if c.line[0] != c.sign() {
				return fmt.Errorf("redis: %q where %q begins a command or a word", c.line[0], c.sign())
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

// sign is what the next line begins with.
func (c *commandConn) sign() byte {
	if c.words == 0 {
		return '*'
	}
	return '$'
}

// header takes a line: the number of a command's words, or the length of a word.
func (c *commandConn) header(line []byte) error {
	if len(line) < len("*1\r\n") || line[len(line)-2] != '\r' {
		return fmt.Errorf("redis: a line %q", line)
	}
	number, err := strconv.ParseUint(string(line[1:len(line)-2]), 10, 31)
	if err != nil {
		return fmt.Errorf("redis: a line %q: %w", line, err)
	}
	n := int(number)
	if c.words == 0 {
		if n == 0 || n > maxCommandWords {
			return fmt.Errorf("redis: a command of %d words: at least 1 and at most %d", n, maxCommandWords)
		}
		c.words, c.room = n, maxCommandBytes
		return nil
	}
	if n > c.room {
		return fmt.Errorf("redis: a command of more than %d bytes", maxCommandBytes)
	}
	c.words--
	c.room -= n
	c.rest = n + len("\r\n")
	return nil
}

// refused are commands of miniredis that could harm the others who use it.
var refused = map[string]bool{
	// They wait, as long as their client likes, and a snapshot waits for them.
	"BLPOP": true, "BRPOP": true, "BRPOPLPUSH": true, "BLMOVE": true,
	"BZMPOP": true, "BZPOPMAX": true, "BZPOPMIN": true, "XREAD": true, "XREADGROUP": true,
	// A small number in them makes a value or a reply of gigabytes.
	"SETBIT": true, "SETRANGE": true, "SRANDMEMBER": true, "HRANDFIELD": true, "ZRANDMEMBER": true,
	// They make what no snapshot can hold: one such key, and nothing is kept any more.
	"XADD": true, "XGROUP": true, "PFADD": true, "PFMERGE": true,
}
