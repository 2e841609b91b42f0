// Package example turns what arrives on the wire into what a model takes: a
// stream.Body into a model.Body, a stream.Event into a model.Example. Learner,
// scorer and eval all go through it, so that a message is read in one way
// wherever it is learnt or scored.
package example

import (
	"errors"
	"fmt"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/convert"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// A Reading says how a mail was read. It is the zero value for a text, a
// vector, and a mail that parsed in full.
type Reading struct {
	Raw    bool   // in whole or part as raw text, because it was broken or beyond a limit
	Reason string // why
}

// Body returns b as a model takes it. A mail is parsed, which never fails; a
// text is a message without a head; a vector's numbers must ascend strictly by
// name, as stream.Body asks. The result may share b's memory. It is an error
// only if b is of no known kind.
func Body(b *stream.Body) (model.Body, error) {
	body, _, err := Read(b)
	return body, err
}

// Read is Body that also says how a mail was read.
func Read(b *stream.Body) (model.Body, Reading, error) {
	switch b.Kind {
	case stream.Mail:
		m := mail.Parse(b.Mail)
		return model.Body{Message: message(&m)}, Reading{Raw: m.Raw, Reason: m.Reason}, nil
	case stream.Text:
		return model.Body{Message: &feature.Message{Body: []byte(b.Text), BodyBytes: len(b.Text)}}, Reading{}, nil
	case stream.Vector:
		v := make([]feature.Number, len(b.Vector)) // never nil: an empty vector is a body, too
		for i, n := range b.Vector {
			v[i] = feature.Number{Name: n.Name, Value: n.Value}
		}
		return model.Body{Vector: v}, Reading{}, nil
	}
	return model.Body{}, Reading{}, fmt.Errorf("body of kind %d: neither mail nor text nor vector", b.Kind)
}

// message carries a parsed mail over field by field. Its subject is never nil:
// nil is what tells a plain text from a mail without a subject.
func message(m *mail.Message) *feature.Message {
	subject := m.Subject
	if subject == nil {
		subject = []byte{}
	}
	return &feature.Message{
		Head:        m.Head,
		Subject:     subject,
		Body:        m.Text,
		BodyBytes:   m.BodyBytes,
		HTML:        m.HTML,
		Parts:       m.Parts,
		Attachments: m.Attachments,
	}
}

// ErrUnlabelled is returned by Of for an event without a label: it can be
// scored but not learnt from.
var ErrUnlabelled = errors.New("no label")

// Of returns the example that e is: to learn, to relearn or to unlearn. It does
// not look at the time, on which no model depends.
func Of(e *stream.Event) (model.Example, error) {
	ex, _, err := ReadEvent(e)
	return ex, err
}

// ReadEvent is Of that also says how a mail was read.
func ReadEvent(e *stream.Event) (model.Example, Reading, error) {
	if e.Label != stream.Spam && e.Label != stream.Ham && e.Action != stream.Unlearn {
		return model.Example{}, Reading{}, fmt.Errorf("event %q: %w", e.ID, ErrUnlabelled)
	}
	body, how, err := Read(&e.Body)
	if err != nil {
		return model.Example{}, Reading{}, fmt.Errorf("event %q: %w", e.ID, err)
	}
	return model.Example{
		ID:     e.ID,
		Source: e.Source,
		Tenant: e.Tenant,
		Action: convert.Action(e.Action),
		Of:     e.Of,
		Spam:   e.Label == stream.Spam,
		Body:   body,
	}, how, nil
}
