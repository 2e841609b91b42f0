package filter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Bounds of an answer beyond the message's own header.
const (
	maxAdded = 64 << 10 // bytes of marks
	maxLine  = 4 << 10  // bytes of a line of the protocol
	maxLines = 64       // lines of the protocol
)

// question sends the message and returns the header that the door answers.
func (c Config) question(message []byte) ([]byte, error) {
	deadline := time.Now().Add(c.Timeout)
	network, addr := "tcp", c.Addr
	if path, unix := strings.CutPrefix(c.Addr, "unix:"); unix {
		network, addr = "unix", path
	}
	conn, err := (&net.Dialer{Deadline: deadline}).Dial(network, addr)
	if err != nil {
		return nil, c.late(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	request := []byte("HEADERS SPAMC/1.5\r\n")
	if c.User != "" {
		request = fmt.Appendf(request, "User: %s\r\n", c.User)
	}
	request = fmt.Appendf(request, "Content-length: %d\r\n\r\n", len(message))
	// One system call for both, where the system can.
	if _, err := (&net.Buffers{request, message}).WriteTo(conn); err != nil {
		return nil, c.late(err)
	}
	header, err := readAnswer(conn, len(message)+maxAdded)
	return header, c.late(err)
}

// late says in plain words that the time was up.
func (c Config) late(err error) error {
	var timeout net.Error
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("no answer from %s within %v", c.Addr, c.Timeout)
	}
	return err
}

// readAnswer reads what a spamd answers to HEADERS, and returns the header in it:
//
//	SPAMD/1.1 0 EX_OK
//	Content-length: 1234
//	Spam: False ; 1.2 / 5.0
//
//	Received: …
//
// An answer may go without its length; then it ends with the connection. One that is
// longer than limit bytes is an error.
func readAnswer(r io.Reader, limit int) ([]byte, error) {
	lines := bufio.NewReaderSize(r, maxLine)
	status, err := readLine(lines)
	if err != nil {
		return nil, err
	}
	version, rest, _ := strings.Cut(status, " ")
	code, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if !strings.HasPrefix(version, "SPAMD/") {
		return nil, errors.New("the answer is not of spamd's protocol")
	}
	if n, err := strconv.Atoi(code); err != nil {
		return nil, errors.New("the answer has no status")
	} else if n != 0 {
		return nil, fmt.Errorf("the answer has status %d", n)
	}
	length := -1
	for n := 0; ; n++ {
		line, err := readLine(lines)
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		if n == maxLines {
			return nil, fmt.Errorf("the answer has more than %d lines before its header", maxLines)
		}
		name, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(strings.TrimSpace(name), "content-length") {
			continue
		}
		v, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
		if err != nil || length >= 0 && length != int(v) {
			return nil, errors.New("the answer's length is not a number")
		}
		length = int(v)
	}
	return readHeader(lines, length, limit)
}

// readHeader reads length bytes, or up to the end if length is negative.
func readHeader(r io.Reader, length, limit int) ([]byte, error) {
	tooLong := fmt.Errorf("the answer's header is more than %d KiB longer than the message", maxAdded>>10)
	if length > limit {
		return nil, tooLong
	}
	if length >= 0 {
		header := make([]byte, length)
		if n, err := io.ReadFull(r, header); err != nil {
			return nil, fmt.Errorf("the answer breaks off after %d bytes of %d: %w", n, length, err)
		}
		return header, nil
	}
	header, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("the answer breaks off after %d bytes: %w", len(header), err)
	}
	if len(header) > limit {
		return nil, tooLong
	}
	return header, nil
}

// readLine reads a line of at most maxLine bytes and returns it without its end.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("the answer has a line of more than %d bytes", maxLine)
	case err == io.EOF:
		return "", errors.New("the answer breaks off before the header")
	case err != nil:
		return "", err
	}
	return string(bytes.TrimRight(line, "\r\n")), nil
}
