// Package rspamd speaks rspamd's protocol, so that whatever asks an rspamd can ask hamlet
// instead: rspamc, Exim (variant=rspamd), Haraka, rspamd's own proxy. It has two doors.
//
// The scan door takes HTTP, and on the same port the older line protocol:
//
//	POST /checkv2           a message; the answer is rspamd's JSON
//	GET  /ping              pong
//	CHECK RSPAMC/1.3        a message; the answer is lines, and the connection ends
//
// The controller door has a password, in the header Password. It also scans.
//
//	POST /learnspam, /learnham   a message to learn; refused where clients may not teach
//	GET  /stat                   counts
//
// # What the answer says
//
// The score is required_score + the verdict's margin, in nats, and required_score is 15:
//
//	score = 15 + min(logit p − logit spam-at, logit lo)
//
// So it is 15 or more exactly where the verdict is spam. All of it is the score of one
// symbol, HAMLET_SPAM, HAMLET_UNSURE or HAMLET_HAM. Its options are p, the interval and,
// where the gateway shows words, the words that counted most.
//
//	verdict  action
//	spam     add header; with a tag for the subject: rewrite subject, and subject has it
//	unsure   no action
//	ham      no action
//
// The action is never reject. A client that wants to reject compares the score itself,
// Exim for instance with a condition on $spam_score_int.
//
// The milter block has the fields to add (X-Hamlet and its kin) and those to remove,
// which came from outside. The line protocol has them as X-Milter-Add and X-Milter-Del.
//
// # Whose mail it is
//
// Deliver-To names the recipient, else all Rcpt do, else User. The operator's file maps
// them to tenants. With several tenants the most lenient verdict decides action and
// score; X-Hamlet shows the first recipient's. With more than 16 tenants the first one's
// verdict is the only one, and nothing is learnt.
//
// # When there is no verdict
//
// The answer is 200: is_skipped, score 0, no action, and the symbol HAMLET_UNAVAILABLE
// whose option is the reason. So every client delivers the message. Only what is no
// request of the protocol gets an error: rspamd's JSON {"error": …} with a status of 400
// or more.
//
// # Limits
//
// Bodies may be compressed with zstd, with a window of at most 8 MiB, which counts in the
// gateway's memory. Encrypted requests
// (HTTPCrypt), compression by a dictionary, and requests that name a file of the server
// (File, Path, Shm) are refused. A request's header has at most 64 KiB. In the line
// protocol 4 MiB more may be lines Rcpt, which are skipped. A connection by HTTP is closed
// without an answer if there is no memory for its header.
package rspamd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"hamlet/cmd/internal/door/gateway"
)

// Required is the score that means spam: rspamd's own default for reject.
const Required = 15

const (
	maxHeader     = 64 << 10 // bytes of a request's header
	maxRecipients = 10_000
	maxTenants    = 16       // of one message; beyond them only the first is asked for
	maxBody       = 64 << 20 // bytes of a body that are read before the connection is cut

	startTimeout  = 30 * time.Second // for the first line and the header to arrive
	idleTimeout   = 5 * time.Minute  // between requests of a connection
	answerTimeout = 30 * time.Second // for the client to take an answer
)

// A Server serves the connections of one door.
type Server struct {
	door   *gateway.Door
	counts *Counts
	mux    http.Handler
	lines  bool         // the line protocol is spoken here too
	pace   gateway.Pace // of bodies
}

// New returns the server of a scan door.
func New(d *gateway.Door, counts *Counts) *Server {
	s := newServer(d, counts)
	s.lines = true
	mux := http.NewServeMux()
	s.routes(mux)
	s.mux = mux
	return s
}

func newServer(d *gateway.Door, counts *Counts) *Server {
	return &Server{door: d, counts: counts, pace: gateway.Pace{}.OrDefault()}
}

// routes are the requests that both doors answer. As in rspamd, the method does not count.
func (s *Server) routes(mux *http.ServeMux) {
	mux.HandleFunc("/checkv2", s.scanHTTP)
	mux.HandleFunc("/ping", func(w http.ResponseWriter, r *http.Request) {
		s.reply(w, http.StatusOK, "text/plain", []byte("pong\r\n"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.garbage(w, http.StatusNotFound, errors.New("invalid command"))
	})
}

// Handle serves one connection. Its first word tells which protocol it speaks.
func (s *Server) Handle(ctx context.Context, conn net.Conn) {
	s.counts.connections.Add(1)
	in := bufio.NewReaderSize(conn, 4<<10)
	word, err := firstWord(ctx, conn, in)
	if err != nil || ctx.Err() != nil {
		if in.Buffered() > 0 && ctx.Err() == nil {
			s.door.Garbage(err)
		}
		return
	}
	if s.lines && isLineCommand(word) {
		s.serveLines(ctx, conn, in)
		return
	}
	s.serveHTTP(ctx, conn, in)
}

// firstWord looks at the first word of a connection without taking it.
func firstWord(ctx context.Context, conn net.Conn, in *bufio.Reader) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	const longest = 16
	for n := 1; n <= longest; {
		if _, err := in.Peek(n); err != nil {
			return "", err
		}
		b, _ := in.Peek(min(in.Buffered(), longest))
		if i := bytes.IndexAny(b, " \r\n"); i >= 0 {
			return string(b[:i]), nil
		}
		n = len(b) + 1
	}
	return "", errors.New("the first word is too long")
}
