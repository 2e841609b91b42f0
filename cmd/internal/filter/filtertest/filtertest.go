// Package filtertest is a small spamd for tests of what asks one. It marks every message
// in the same way, and can answer wrongly on request.
package filtertest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Mark is the field that Answer adds.
const Mark = "X-Hamlet: spam; p=0.9990; lo=0.9900; hi=0.9999; model=default/0123456789ab"

// A Request is what a client sent.
type Request struct {
	Line    string            // such as HEADERS SPAMC/1.5
	Fields  map[string]string // by name in lower case
	Message []byte
}

// Marked returns the message with Mark at the top of its header, behind the mbox "From "
// line.
func Marked(message []byte) []byte {
	var from []byte
	if bytes.HasPrefix(message, []byte("From ")) {
		n := bytes.IndexByte(message, '\n') + 1
		from, message = message[:n], message[n:]
	}
	end := "\n"
	if i := bytes.IndexByte(message, '\n'); i > 0 && message[i-1] == '\r' {
		end = "\r\n"
	}
	return bytes.Join([][]byte{from, []byte(Mark + end), message}, nil)
}

// Header returns a message's header with its empty line.
func Header(message []byte) []byte {
	for _, empty := range []string{"\n\n", "\n\r\n"} {
		if i := bytes.Index(message, []byte(empty)); i >= 0 {
			return message[:i+len(empty)]
		}
	}
	return message
}

// Answer writes the answer to HEADERS with this header.
func Answer(w io.Writer, header []byte) {
	fmt.Fprintf(w, "SPAMD/1.1 0 EX_OK\r\nContent-length: %d\r\nSpam: True ; 9.9 / 5.0\r\n\r\n%s", len(header), header)
}

// Serve reads a request and answers it rightly.
func Serve(conn net.Conn) {
	request, err := Read(conn)
	if err != nil {
		return // the client has gone
	}
	Answer(conn, Header(Marked(request.Message)))
}

// Read reads a request.
func Read(conn net.Conn) (Request, error) {
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return Request{}, err
	}
	request := Request{Line: strings.TrimSpace(line), Fields: map[string]string{}}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return Request{}, err
		}
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			break
		}
		request.Fields[strings.ToLower(name)] = strings.TrimSpace(value)
	}
	n, err := strconv.Atoi(request.Fields["content-length"])
	if err != nil {
		return Request{}, err
	}
	request.Message = make([]byte, n)
	_, err = io.ReadFull(r, request.Message)
	return request, err
}

// Start serves every connection with handle, at a Unix socket, until the test ends. It
// returns the address, unix:PATH. The connection is closed when handle returns.
func Start(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spamd.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return "unix:" + path
}
