package rspamd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hamlet/cmd/internal/door/gateway"
)

// lineCommands are the first words of the line protocol, with whether a message follows.
var lineCommands = map[string]bool{
	"CHECK": true, "SYMBOLS": true, "REPORT": true, "REPORT_IFSPAM": true,
	"PING": false, "SKIP": false,
}

// isLineCommand reports whether a connection that begins with word speaks lines. No client
// of rspamd uses such a word as a method of HTTP; WebDAV's REPORT is refused as lines.
func isLineCommand(word string) bool {
	_, ok := lineCommands[word]
	return ok
}

// A lineRequest is the header of a request of the line protocol:
//
//	CHECK RSPAMC/1.3
//	Content-length: 1234
//	Rcpt: <alice@example.org>
//
// and then the message.
type lineRequest struct {
	command  string
	length   int64
	envelope envelope
	header   http.Header // the fields, as in HTTP
}

// lengthUnknown says that the message goes on until the client stops sending.
const lengthUnknown = -1

// Exim sends a line for each recipient, and a sender chooses how many there are. Lines
// Rcpt beyond maxRcpt are skipped, not refused, as far as maxSkipped: their tenants are
// not asked for.
const (
	maxRcpt    = 32 << 10 // bytes
	maxSkipped = 4 << 20  // bytes
)

// readLineRequest reads a request up to the empty line. It asks take for room for the
// bytes of the header.
func readLineRequest(in *bufio.Reader, take func(int) bool) (lineRequest, error) {
	q := lineRequest{length: lengthUnknown, header: http.Header{}}
	total, recipients := 0, 0
	for first := true; ; first = false {
		b, err := in.ReadSlice('\n')
		if err != nil {
			return q, fmt.Errorf("a header line: %w", err)
		}
		if name, _, _ := bytes.Cut(b, []byte{':'}); bytes.EqualFold(bytes.TrimSpace(name), []byte("Rcpt")) {
			recipients += len(b)
			if maxRcpt < recipients && recipients <= maxRcpt+maxSkipped {
				continue
			}
		}
		if total += len(b); total > maxHeader {
			return q, fmt.Errorf("a header of more than %d bytes", maxHeader)
		}
		if !take(len(b)) {
			return q, errHeaderMemory
		}
		line := strings.TrimRight(string(b), "\r\n")
		switch {
		case first:
			err = q.start(line)
		case line == "":
			return q, q.complete()
		default:
			err = q.field(line)
		}
		if err != nil {
			return q, err
		}
	}
}

// start reads the first line.
func (q *lineRequest) start(line string) error {
	command, protocol, _ := strings.Cut(line, " ")
	if !isLineCommand(command) || !strings.HasPrefix(strings.TrimSpace(protocol), "RSPAMC/") {
		return fmt.Errorf("%.40q is no request", line)
	}
	q.command = command
	return nil
}

// field takes one field.
func (q *lineRequest) field(line string) error {
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return errors.New("a header line without a colon")
	}
	q.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	return nil
}

// complete reads the fields.
func (q *lineRequest) complete() (err error) {
	if text := q.header.Get("Content-Length"); text != "" {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return fmt.Errorf("a Content-length of %.20q", text)
		}
		q.length = int64(n)
	}
	q.envelope, err = envelopeOf(q.header)
	return err
}

// serveLines answers one request of the line protocol. As rspamd does, it then closes the
// connection.
func (s *Server) serveLines(ctx context.Context, conn net.Conn, in *bufio.Reader) {
	header := headerBudget{door: s.door, open: true}
	defer header.release()
	q, err := readLineRequest(in, header.take)
	if errors.Is(err, gateway.ErrMemory) {
		s.door.PassedBroken(err)
		a := s.answer(s.unavailable(err, time.Now()))
		s.sendLines(conn, a.rspamc())
		return
	}
	if err != nil {
		s.door.Garbage(err)
		s.sendLines(conn, noRequest)
		return
	}
	if !lineCommands[q.command] {
		if q.command == "PING" {
			s.sendLines(conn, []byte("RSPAMD/1.3 0 PONG\r\n"))
		}
		return
	}
	a, err := s.scanLines(ctx, conn, in, &q)
	if err != nil {
		s.door.Garbage(err)
		s.sendLines(conn, noRequest)
		return
	}
	s.sendLines(conn, a.rspamc())
}

// scanLines receives and scores the message of a request.
func (s *Server) scanLines(ctx context.Context, conn net.Conn, in *bufio.Reader, q *lineRequest) (answer, error) {
	if err := refused(q.header); err != nil {
		return answer{}, err
	}
	start := time.Now()
	var from io.Reader = in
	if q.length != lengthUnknown {
		from = io.LimitReader(in, q.length)
	}
	body := s.door.NewBody()
	defer body.Release()
	arriving := &paced{r: from, setDeadline: conn.SetReadDeadline, pace: s.pace, start: start}
	err := s.readBody(body, arriving, q.header)
	switch {
	case body.Err() != nil:
		return s.answer(s.unavailable(body.Err(), start)), nil
	case errors.Is(err, gateway.ErrMemory):
		s.door.PassedBroken(err)
		return s.answer(s.unavailable(err, start)), nil
	case err != nil:
		return answer{}, err
	case arriving.n < q.length:
		return answer{}, io.ErrUnexpectedEOF
	}
	return s.answer(s.score(ctx, body, q.envelope, start)), nil
}

// lingerTimeout is how long a connection is read on after the answer, and lingerBytes how
// far. A connection that is closed before all is read may lose the answer.
const (
	lingerTimeout = time.Second
	lingerBytes   = 1 << 20
)

// sendLines writes an answer, for which the client has answerTimeout, and says that it is
// all.
func (s *Server) sendLines(conn net.Conn, text []byte) {
	if err := conn.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return
	}
	if _, err := conn.Write(text); err != nil {
		return // the client is gone
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || conn.SetReadDeadline(time.Now().Add(lingerTimeout)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, lingerBytes)
}

// noRequest is the answer to what is no request, with the code of sysexits.h for it.
var noRequest = []byte("RSPAMD/1.3 76 EX_PROTOCOL\r\n\r\n")
