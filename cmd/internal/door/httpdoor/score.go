package httpdoor

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// What is held beside a body, in bytes of the gateway's budget.
const (
	// decodeFactor times a JSON body is what its decoding keeps at most: the decoder's
	// buffers, values and a vector's numbers. Measured in November 2026, with the garbage
	// collector at 2 %: 5 times for a mail, 11 for a batch of vectors.
	decodeFactor = 12

	// Each verdict of a batch, and each explained one, with its JSON. That has .4 KB, and of
	// 400 explained mails at most 4.3 KB.
	verdictBytes   = 2 << 10
	explainedBytes = 16 << 10
)

// decoders bounds the JSON bodies that are decoded at once: more would only share the
// processors.
var decoders = make(chan struct{}, runtime.GOMAXPROCS(0))

// score answers POST /v1/score, and POST /v1/explain with explain.
func score(explain bool) func(s *server, w http.ResponseWriter, r *http.Request, from caller) error {
	path := scorePath
	if explain {
		path = explainPath
	}
	return func(s *server, w http.ResponseWriter, r *http.Request, from caller) error {
		m, err := mediumOf(r)
		if err != nil {
			return err
		}
		if err := from.mayAsk(m.name); err != nil {
			return err
		}
		body := s.cfg.Door.NewBody()
		defer body.Release()
		if err := s.receive(w, r, body, m.most); err != nil {
			return err
		}
		content := body.Bytes()
		switch m.name {
		case questions.JSON:
			return s.scoreJSON(w, r, path, from, body, explain)
		case questions.Mail:
			content, err = s.cfg.Door.Reduce(r.Context(), content)
		case questions.Text:
			e := stream.Event{Body: stream.Body{Kind: stream.Text, Text: string(content)}}
			err = e.ValidateRequest()
		default:
			panic("httpdoor: content type " + m.name)
		}
		if err != nil {
			return wrong(err)
		}
		verdicts, err := s.ask(r, from, piece{0, 1, content}, m.name, explain)
		if err != nil {
			return err
		}
		body.Release()
		s.answer(w, path, http.StatusOK, &verdicts[0])
		return nil
	}
}

// scoreJSON answers an event or a batch.
func (s *server) scoreJSON(
	w http.ResponseWriter, r *http.Request, path string, from caller, body *gateway.Body, explain bool,
) error {
	if room := int64(max(0, len(body.Bytes())-gateway.FreeBytes)) * decodeFactor; room > 0 {
		if !s.cfg.Door.Acquire(room) {
			return gateway.ErrMemory
		}
		defer s.cfg.Door.Return(room)
	}
	q, err := decodeInTurn(from, body.Bytes())
	if err != nil {
		return err
	}
	body.Release()
	if q.batch {
		each := int64(verdictBytes)
		if explain {
			each = explainedBytes
		}
		if room := each * int64(len(q.events)); room > 0 {
			if !s.cfg.Door.Acquire(room) {
				return gateway.ErrMemory
			}
			defer s.cfg.Door.Return(room)
		}
	}
	verdicts := make([]stream.Verdict, 0, len(q.events))
	for p, err := range q.pieces(pieceEvents(explain)) {
		if err != nil {
			return wrong(err)
		}
		some, err := s.ask(r, from, p, questions.JSON, explain)
		if err != nil {
			return p.of(err)
		}
		verdicts = append(verdicts, some...)
	}
	if q.batch {
		s.answer(w, path, http.StatusOK, verdicts)
	} else {
		s.answer(w, path, http.StatusOK, &verdicts[0])
	}
	return nil
}

// decodeInTurn waits for one of the decoders.
func decodeInTurn(from caller, data []byte) (request, error) {
	decoders <- struct{}{}
	defer func() { <-decoders }()
	return decode(from, data)
}

// ask returns the verdicts of a piece, one for each event. Several events that take too
// long are a large request and no sign of an outage. So their deadline is a client's, which
// ends before the gateway's own, and of which the gateway learns nothing.
func (s *server) ask(
	r *http.Request, from caller, p piece, contentType string, explain bool,
) ([]stream.Verdict, error) {
	ctx := r.Context()
	if explain {
		leave, err := s.explainInTurn(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	if p.events > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Door.Deadline*9/10)
		defer cancel()
	}
	verdicts, err := s.cfg.Door.Ask(ctx, time.Now(), []string{from.tenant}, p.body, contentType, explain)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		return nil, &refusal{http.StatusTooManyRequests,
			"the scoring service did not answer so many events in time: try again, or send fewer"}
	}
	if err == nil && len(verdicts) != p.events {
		err = &refusal{http.StatusInternalServerError,
			fmt.Sprintf("the scoring service gave %d verdicts for %d events", len(verdicts), p.events)}
	}
	return verdicts, err
}

// explainInTurn waits until an explanation may begin, at most the gateway's deadline.
// The caller leaves it.
func (s *server) explainInTurn(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Door.Deadline)
	defer cancel()
	select {
	case s.explaining <- struct{}{}:
		return func() { <-s.explaining }, nil
	case <-ctx.Done():
		return nil, &refusal{http.StatusTooManyRequests, "too many explanations are under way: try again"}
	}
}

// info answers GET /v1/info.
func info(s *server, w http.ResponseWriter, r *http.Request, _ caller) error {
	served, err := s.cfg.Door.Info(r.Context())
	if err != nil {
		return err
	}
	s.answer(w, infoPath, http.StatusOK, &served)
	return nil
}

// events answers POST /v1/events.
func events(s *server, w http.ResponseWriter, r *http.Request, from caller) error {
	switch {
	case r.Header.Get(nats.HeaderTenant) != "":
		return &refusal{http.StatusBadRequest, nats.HeaderTenant + ": an event names its tenant itself"}
	case s.events == nil, !from.teaches() && !s.cfg.Door.CanLearn():
		return &refusal{http.StatusForbidden,
			"labels are not taken with this token: the operator can allow them with " + s.cfg.Door.Hints.Learn}
	case !s.closed():
		return &refusal{http.StatusForbidden,
			"labels are taken only with a token, and there is none: the operator can set " + s.cfg.Door.Hints.Token}
	}
	s.events.ServeHTTP(w, r)
	return nil
}

// openAPI answers GET /openapi.json.
func openAPI(s *server, w http.ResponseWriter, _ *http.Request, _ caller) error {
	s.write(w, documentPath, http.StatusOK, s.document)
	return nil
}
