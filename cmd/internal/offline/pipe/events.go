package pipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/wire"
	"hamlet/stream"
	"hamlet/stream/mail"
)

const (
	defaultLevel = 0.9
	defaultWords = 5
	ownIDs       = "#" // how ids start that a session gives
)

// An effect is what an event did.
type effect struct {
	ID string `json:"id"`

	// P, LogOdds and the 90 % Interval are the answer before the event was learnt. Only
	// events that learn a body have them.
	P        *float64    `json:"p,omitempty"`
	LogOdds  *float64    `json:"log_odds,omitempty"`
	Interval *[2]float64 `json:"interval,omitempty"`

	Trust     float64           `json:"trust,omitempty"`     // probability that the label is true
	Standing  float64           `json:"standing,omitempty"`  // how much the source's labels count, 0 to 1
	Duplicate bool              `json:"duplicate,omitempty"` // a copy: it changed nothing
	LeftOut   bool              `json:"left_out,omitempty"`  // of a source that the model leaves out
	Outcome   string            `json:"outcome,omitempty"`   // of a withdrawal or a correction: see stream.Receipt
	Withdrawn int               `json:"withdrawn,omitempty"` // how many events were withdrawn
	Alerts    []json.RawMessage `json:"alerts,omitempty"`    // stream.Alert
	Error     string            `json:"error,omitempty"`     // why the model refused it; it changed nothing
}

// learn applies the events in order. One that cannot be read, or that no model of this
// configuration takes, is an error, and none is applied. What can be known only
// when its turn comes, such as a withdrawal that finds nothing, is an error in its effect.
func (s *session) learn(ctx context.Context, q *request) (any, error) {
	examples := make([]model.Example, len(q.Events))
	for i, text := range q.Events {
		e, err := stream.DecodeJSON(text)
		if err == nil && strings.HasPrefix(e.ID, ownIDs) {
			err = fmt.Errorf("id: %q is for events without an id", ownIDs)
		}
		if err == nil {
			if e.ID == "" {
				e.ID = ownIDs
			}
			err = e.Validate()
		}
		if err == nil {
			examples[i], err = s.example(&e)
		}
		if err != nil {
			return nil, at(i, err)
		}
	}
	effects := make([]effect, len(examples))
	for i := range examples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		effects[i] = s.apply(&examples[i])
	}
	return struct {
		Effects []effect `json:"effects"`
	}{effects}, nil
}

// example returns an event as the model takes it.
func (s *session) example(e *stream.Event) (model.Example, error) {
	if err := reduce(e); err != nil {
		return model.Example{}, err
	}
	ex, _, err := example.Of(e)
	if err != nil {
		return ex, err
	}
	return ex, s.model.Check(&ex.Body)
}

func (s *session) apply(ex *model.Example) effect {
	if ex.ID == ownIDs {
		ex.ID = fmt.Sprint(ownIDs, s.model.Events()+1)
	}
	out := effect{ID: ex.ID}
	did, err := s.model.Apply(ex)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	for i := range did.Rebuilds {
		if b := &did.Rebuilds[i]; b.Err != nil {
			s.warn(fmt.Errorf("rebuild %s (%s) from %d rows: %w", b.Ensemble, b.Body, b.Rows, b.Err))
		}
	}
	out.Trust, out.Standing, out.Duplicate, out.LeftOut = did.Phi, did.Standing, did.Duplicate, did.LeftOut
	if did.Receipt != nil {
		out.Outcome, out.Withdrawn = wire.Outcome(did.Receipt.Outcome), did.Receipt.Events
	}
	if (ex.Action == model.Learn || ex.Action == model.Relearn) && !did.Duplicate && !did.LeftOut {
		a := answerOf(did.Prediction, model.Z90)
		out.P, out.LogOdds, out.Interval = &a.P, &a.LogOdds, &a.Interval
	}
	for i := range did.Alerts {
		a := wire.Alert(&did.Alerts[i])
		b, err := a.AppendJSON(nil)
		if err != nil {
			panic(err) // wire.Alert returns none that cannot be written
		}
		out.Alerts = append(out.Alerts, b)
	}
	return out
}

// An answer is about one body. Its names are those of stream.Verdict.
type answer struct {
	P        float64         `json:"p"`
	LogOdds  float64         `json:"log_odds"`
	Interval [2]float64      `json:"interval"`
	Reasons  []stream.Reason `json:"reasons,omitempty"`
	Words    []stream.Word   `json:"words,omitempty"`
}

func answerOf(p model.Prediction, z float64) answer {
	lo, hi := p.Interval(z)
	return answer{P: p.P(), LogOdds: p.LogOdds, Interval: [2]float64{lo, hi}}
}

func (s *session) score(ctx context.Context, q *request) (any, error) {
	return s.ask(ctx, q, func(b *model.Body, z float64) (answer, error) {
		p, err := s.predictor.Predict(b)
		return answerOf(p, z), err
	})
}

func (s *session) explain(ctx context.Context, q *request) (any, error) {
	if q.Words < 0 || q.Words > stream.MaxWords {
		return nil, fmt.Errorf("words: %d is not in 0…%d", q.Words, stream.MaxWords)
	}
	return s.ask(ctx, q, func(b *model.Body, z float64) (answer, error) {
		if q.Words == 0 {
			p, reasons, err := s.predictor.Explain(b)
			out := answerOf(p, z)
			out.Reasons = wire.Reasons(reasons)
			return out, err
		}
		a, err := s.predictor.Attribute(b)
		out := answerOf(a.Prediction, z)
		out.Reasons, out.Words = wire.Reasons(a.Inputs), wire.Words(a.Words, min(q.Words, stream.MaxWords))
		return out, err
	})
}

// ask answers about the events' bodies by one of the model's ways to predict. An event that
// cannot be scored is an error.
func (s *session) ask(ctx context.Context, q *request,
	predict func(b *model.Body, z float64) (answer, error)) (any, error) {
	if !(0 < q.Level && q.Level < 1) {
		return nil, fmt.Errorf("level: %v is not between 0 and 1", q.Level)
	}
	z := model.Z90
	if q.Level != defaultLevel {
		z = math.Sqrt2 * math.Erfinv(q.Level)
	}
	answers := make([]answer, len(q.Events))
	for i, text := range q.Events {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := stream.DecodeJSON(text)
		if err == nil {
			err = errors.Join(e.ValidateRequest(), reduce(&e))
		}
		if err == nil {
			var body model.Body
			if body, _, err = example.Body(e.Tenant, &e.Body); err == nil {
				answers[i], err = predict(&body, z)
			}
		}
		if err != nil {
			return nil, at(i, err)
		}
	}
	return struct {
		Answers []answer `json:"answers"`
	}{answers}, nil
}

// reduce makes a mail what ingest would send on.
func reduce(e *stream.Event) (err error) {
	if e.Body.Kind == stream.Mail {
		e.Body.Mail, err = mail.Reduce(e.Body.Mail)
	}
	return err
}

// at names the event that an error is about.
func at(i int, err error) error { return fmt.Errorf("events[%d]: %w", i, oneLine(err)) }
