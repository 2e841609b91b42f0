package spamd

import (
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// A Server answers spamd's clients. It may be used concurrently.
type Server struct {
	door *gateway.Door
	pace gateway.Pace // of a request, and of its answer
}

// New returns the server of the door d.
func New(d *gateway.Door) *Server { return &Server{door: d, pace: gateway.Pace{}.OrDefault()} }

// Handle serves one connection, which the caller closes. A request that has begun is
// finished when ctx ends.
func (s *Server) Handle(ctx context.Context, conn net.Conn) {
	w := newWire(conn, s.pace)
	if !w.await(ctx) {
		return
	}
	s.serve(context.WithoutCancel(ctx), w)
	w.finish()
}

// serve answers one request. An answer that the client does not take is nobody's loss.
func (s *Server) serve(ctx context.Context, w *wire) {
	req, err := readRequest(w.r)
	if err != nil {
		s.refuse(w, err)
		return
	}
	switch req.command {
	case skip:
		return
	case ping:
		_ = w.write([]byte("SPAMD/1.5 0 PONG\r\n"))
		return
	case tell:
		if !s.door.CanLearn() { // before the message comes, as spamd does
			s.tell(ctx, w, req, s.door.NewBody(), nil)
			return
		}
	}
	body := s.door.NewBody()
	defer body.Release()
	lost, err := s.receive(w, req, body)
	switch {
	case err != nil:
		body.Release()
		s.refuse(w, err)
	case req.command == tell:
		s.tell(ctx, w, req, body, lost)
	case lost != nil:
		s.answer(w, req, nil, body, lost)
	default:
		s.answer(w, req, s.score(ctx, req, body), body, nil)
	}
}

// score returns the verdict, or nil: the message passes unmarked.
func (s *Server) score(ctx context.Context, req *request, body *gateway.Body) *stream.Verdict {
	explain := req.command == report || req.command == reportIfSpam
	verdicts, err := s.door.Score(ctx, []string{s.door.Tenants.OfUser(req.user)}, body.Bytes(), explain)
	if err != nil {
		return nil // the gateway has counted it
	}
	return &verdicts[0]
}

// receive reads the message into body. The error lost is ErrTooLarge or ErrMemory: the
// message is forgotten, and counted. The other one is about the request.
func (s *Server) receive(w *wire, req *request, body *gateway.Body) (lost, err error) {
	sent := &bodyReader{r: w.r, left: req.length}
	switch {
	case req.zlib:
		lost, err = s.inflate(sent, body)
	case req.length < 0:
		_, err = body.ReadFrom(w.r)
		lost = body.Err()
	default:
		_, err = body.ReadFrom(sent)
		lost = body.Err()
	}
	switch {
	case lost != nil:
		return lost, nil
	case err != nil || req.length < 0:
		return nil, err
	case sent.more:
		return nil, refuse("Content-Length mismatch: Expected %d bytes, got more", req.length)
	case sent.left > 0:
		return nil, refuse("Content-Length mismatch: Expected %d bytes, got %d bytes", req.length, req.length-sent.left)
	}
	return nil, nil
}

// inflateMemory bounds what a decoder of zlib holds: its window of 32 KiB, its tables and
// the buffer between it and the body.
const inflateMemory = 96 << 10

// inflate writes what a compressed body holds. It stops where the message becomes too
// large, however much would follow. Its errors are those of receive.
func (s *Server) inflate(sent *bodyReader, body *gateway.Body) (lost, err error) {
	if !s.door.Acquire(inflateMemory) {
		s.door.PassedBroken(gateway.ErrMemory)
		return gateway.ErrMemory, nil
	}
	defer s.door.Return(inflateMemory)
	z, err := zlib.NewReader(sent)
	if err == nil {
		// Not Body.ReadFrom, which would read a bomb to its end.
		_, err = io.Copy(struct{ io.Writer }{body}, z)
	}
	switch {
	case body.Err() != nil:
		return body.Err(), nil
	case isTimeout(err):
		return nil, err
	case err != nil:
		return nil, unavailable("zlib: the body cannot be read")
	}
	_, err = io.Copy(io.Discard, sent) // what follows the end of the zlib stream
	return nil, err
}

// tell brings a label to the learner. The message is lost, or in body; it is not read if
// clients may not teach.
func (s *Server) tell(ctx context.Context, w *wire, req *request, body *gateway.Body, lost error) {
	lesson, done := gateway.LearnHam, "DidSet: local\r\n"
	switch {
	case req.removeLocal:
		lesson, done = gateway.Forget, "DidRemove: local\r\n"
	case !req.setLocal:
		done = "" // nothing is asked for that we could do
	case req.class == "spam":
		lesson = gateway.LearnSpam
	}
	err := lost
	if err == nil && (done != "" || !s.door.CanLearn()) {
		err = s.door.Learn(ctx, s.door.Tenants.OfUser(req.user), body.Bytes(), lesson)
	}
	body.Release()
	switch {
	case err == nil:
		_ = w.write([]byte("SPAMD/1.1 0 EX_OK\r\n" + done + "\r\n"))
	case errors.Is(err, gateway.ErrNotAllowed):
		s.answerRefusal(w, &refusal{exUnavailable,
			"Service Unavailable: TELL commands are not enabled, set the " + s.door.Hints.Learn + " switch."})
	case errors.Is(err, gateway.ErrTooLarge):
		s.answerRefusal(w, &refusal{exDataErr, "Not learnt: " + gateway.ErrTooLarge.Error()})
	case errors.Is(err, mail.ErrEmpty):
		s.answerRefusal(w, &refusal{exDataErr, "Not learnt: " + mail.ErrEmpty.Error()})
	default: // ErrMemory, or the learner's log, whose errors are not the client's business
		s.answerRefusal(w, &refusal{exTempFail, "Not learnt: try again later"})
	}
}

// refuse answers a request that could not be read, and counts it.
func (s *Server) refuse(w *wire, err error) {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
	case isTimeout(err):
		refused = &refusal{exTimeout, "Timeout: (half a request, and then nothing)"}
	default: // the client is gone
		s.door.Garbage(fmt.Errorf("read a request: %w", err))
		return
	}
	s.door.Garbage(refused)
	s.answerRefusal(w, refused)
}

func (s *Server) answerRefusal(w *wire, r *refusal) {
	_ = w.write(fmt.Appendf(nil, "SPAMD/1.0 %d %s\r\n", r.code, r.text))
}
