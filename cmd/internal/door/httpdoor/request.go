package httpdoor

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
)

// Bounds of a batch and of the pieces in which it is asked. A piece is one request on
// NATS, which carries 1 MiB: an event goes alone where it is larger than maxPiece. A piece
// has one deadline, and an explanation takes much longer than a score.
const (
	maxBatch          = 1000
	maxPiece          = 512 << 10 // bytes
	maxPieceEvents    = 64
	maxPieceExplained = 8
)

// pieceEvents returns how many events a piece may have.
func pieceEvents(explain bool) int {
	if explain {
		return maxPieceExplained
	}
	return maxPieceEvents
}

// A request is a decoded JSON body: one event, or the events of a batch. They are valid,
// and their mails are reduced.
type request struct {
	events []stream.Event
	batch  bool // an array, which is answered by an array
}

// decode reads a JSON body. The error is a *refusal.
func decode(from caller, data []byte) (request, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte{'['}) {
		e, err := stream.DecodeJSONOf(from.tenant, data)
		if err != nil {
			return request{}, wrong(err)
		}
		if err := prepare(from, &e); err != nil {
			return request{}, err
		}
		return request{events: []stream.Event{e}}, nil
	}
	events, err := stream.DecodeJSONList(from.tenant, data, maxBatch)
	if err != nil {
		return request{}, wrong(err)
	}
	for i := range events {
		if err := prepare(from, &events[i]); err != nil {
			err.reason = fmt.Sprintf("[%d]: %s", i, err.reason)
			return request{}, err
		}
	}
	return request{events: events, batch: true}, nil
}

// prepare reduces e's mail and checks e.
func prepare(from caller, e *stream.Event) *refusal {
	if err := from.may(e.Tenant); err != nil {
		return &refusal{err.code, "tenant: " + err.reason}
	}
	if e.Body.Kind == stream.Mail {
		reduced, err := mail.Reduce(e.Body.Mail)
		if err != nil {
			return wrong(err)
		}
		e.Body.Mail = reduced
	}
	if len(e.Body.Text) > maxText {
		return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("text: larger than %d bytes", maxText)}
	}
	if err := e.ValidateRequest(); err != nil {
		return wrong(err)
	}
	return nil
}

// wrong returns the refusal of a request that cannot be scored.
func wrong(err error) *refusal {
	code := http.StatusBadRequest
	if errors.Is(err, mail.ErrTooLarge) {
		code = http.StatusRequestEntityTooLarge
	}
	return &refusal{code, strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// A piece is a part of a request as the scoring service is asked.
type piece struct {
	first, events int    // which of the request's events
	body          []byte // valid until the next piece
}

// pieces encodes the events in order. A batch gives arrays of at most most events.
func (q *request) pieces(most int) iter.Seq2[piece, error] {
	return func(yield func(piece, error) bool) {
		if !q.batch {
			body, err := q.events[0].AppendJSON(nil)
			yield(piece{0, 1, body}, err)
			return
		}
		array, first := []byte{'['}, 0
		for i := range q.events {
			before := len(array)
			if i > first {
				array = append(array, ',')
			}
			start := len(array)
			var err error
			if array, err = q.events[i].AppendJSON(array); err != nil {
				yield(piece{}, err)
				return
			}
			if i == first || len(array) < maxPiece && i-first < most {
				continue
			}
			next := bytes.Clone(array[start:]) // it opens the next piece
			if !yield(piece{first, i - first, append(array[:before], ']')}, nil) {
				return
			}
			array, first = append(append(array[:0], '['), next...), i
		}
		if first < len(q.events) {
			yield(piece{first, len(q.events) - first, append(array, ']')}, nil)
		}
	}
}

// of says which events of a batch an error is about.
func (p piece) of(err error) error {
	var e *questions.Refusal
	if p.first == 0 || !errors.As(err, &e) {
		return err
	}
	return &questions.Refusal{Code: e.Code, Text: fmt.Sprintf("counted from [%d] on: %s", p.first, e.Text)}
}
