package spamd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A command is the first word of a request.
type command string

const (
	check        command = "CHECK"
	symbols      command = "SYMBOLS"
	report       command = "REPORT"
	reportIfSpam command = "REPORT_IFSPAM"
	process      command = "PROCESS"
	headers      command = "HEADERS"
	tell         command = "TELL"
	ping         command = "PING"
	skip         command = "SKIP"
)

// A request is what stands before the message.
type request struct {
	command command
	version float64 // of the client's protocol
	length  int64   // of the body as it is sent; -1: to the client's end
	user    string
	zlib    bool // the body is compressed

	// TELL's; "remote" is somebody else's database, and is not done.
	class       string // "spam", "ham" or none
	setLocal    bool
	removeLocal bool
}

// Exit codes of sysexits.h, which answers begin with.
const (
	exDataErr     = 65
	exUnavailable = 69
	exTempFail    = 75
	exProtocol    = 76
	exTimeout     = 79
)

// A refusal is the answer to a request that is not done.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

// refuse returns the refusal of a request that the protocol does not have.
func refuse(format string, args ...any) error {
	return &refusal{exProtocol, "Bad header line: (" + fmt.Sprintf(format, args...) + ")"}
}

// Bounds of what a client may send before the message. spamc's own buffer has 8 KiB.
const (
	maxLine  = 4 << 10
	maxHead  = 16 << 10
	longPast = 1.5 // the newest version, and all after it
)

var firstLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(PROCESS|CHECK|SYMBOLS|REPORT|REPORT_IFSPAM|HEADERS|TELL|SKIP|PING) ` +
		`SPAMC/(\d{1,3}(?:\.\d{1,3})?)\s*$`)
})

// readRequest reads up to the message. Lines end with \n or \r\n. r has a buffer of
// maxLine bytes at least.
func readRequest(r *bufio.Reader) (*request, error) {
	room := maxHead
	line, err := readLine(r, &room)
	if err != nil {
		return nil, err
	}
	m := firstLine().FindStringSubmatch(line)
	if m == nil {
		return nil, refuse("no command of this protocol")
	}
	version, err := strconv.ParseFloat(m[2], 64)
	if err != nil || version < 1 {
		return nil, refuse("no version of this protocol")
	}
	req := &request{command: command(m[1]), version: version, length: -1}
	if !req.hasFields() {
		return req, nil
	}
	for {
		line, err := readLine(r, &room)
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, refuse("header not in 'Name: value' format")
		}
		if err := req.field(strings.ToLower(name), strings.Trim(value, " \t")); err != nil {
			return nil, err
		}
	}
	return req, req.check()
}

// hasFields reports whether fields and an empty line follow the first line.
func (r *request) hasFields() bool {
	switch r.command {
	case tell:
		return true
	case ping, skip:
		return r.version >= longPast
	}
	return r.version > 1
}

// field takes one field. Unknown ones are passed over, as the protocol wants.
func (r *request) field(name, value string) error {
	switch name {
	case "content-length":
		n, err := strconv.ParseUint(value, 10, 62)
		if err != nil {
			return refuse("Content-length is not a number")
		}
		r.length = int64(n)
	case "user":
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return refuse("User contains control chars")
		}
		r.user = value
	case "compress":
		if !strings.EqualFold(value, "zlib") {
			return refuse("compression type not supported")
		}
		r.zlib = true
	case "message-class":
		r.class = strings.ToLower(value)
		if r.class != "spam" && r.class != "ham" {
			return refuse("Message-class is neither spam nor ham")
		}
	case "set":
		r.setLocal = hasLocal(value)
	case "remove":
		r.removeLocal = hasLocal(value)
	}
	return nil
}

func hasLocal(list string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(name), "local") {
			return true
		}
	}
	return false
}

// check reports fields that contradict one another.
func (r *request) check() error {
	switch {
	case r.zlib && r.length < 0:
		return unavailable("Compress requires Content-length header")
	case r.setLocal && r.removeLocal:
		return refuse("Unable to set local and remove local in the same operation.")
	case r.setLocal && r.class == "":
		return refuse("Set without Message-class")
	}
	return nil
}

func unavailable(text string) error {
	return &refusal{exUnavailable, "Service Unavailable: " + text}
}

// readLine returns a line without its end, and takes its length from room.
func readLine(r *bufio.Reader, room *int) (string, error) {
	line, err := r.ReadSlice('\n')
	*room -= len(line)
	switch {
	case errors.Is(err, bufio.ErrBufferFull), *room < 0:
		return "", refuse("too many headers")
	case errors.Is(err, io.EOF):
		return "", refuse("EOF during headers")
	case err != nil:
		return "", err
	}
	return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
}
