// Package example turns an event of the wire into an example for a model. Learner,
// scorer and eval all use it, so that each reads a message in the same way.
//
//	ex, _, _, err := example.Of(&event)
//	effect, err := m.Apply(&ex)
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

// A Parsing says how a mail was parsed. It is zero for a text and a vector.
type Parsing struct {
	Raw    bool          // a part was taken as raw text: it was broken or beyond a limit
	Reason string        // why
	Mail   *mail.Message // whose memory the result shares
}

// Body returns a tenant's b as a model takes it, and how a mail was parsed. A text is a
// message without a head. The result may share b's memory. The only error is an unknown
// kind.
func Body(tenant string, b *stream.Body) (model.Body, Parsing, error) {
	switch b.Kind {
	case stream.Mail:
		m := mail.Parse(b.Mail)
		return model.Body{Tenant: tenant, Message: message(&m)}, Parsing{Raw: m.Raw, Reason: m.Reason, Mail: &m}, nil
	case stream.Text:
		return model.Body{Tenant: tenant, Message: &feature.Message{Body: []byte(b.Text), BodyBytes: len(b.Text)}}, Parsing{}, nil
	case stream.Vector:
		v := make([]feature.Number, len(b.Vector)) // never nil: an empty vector is a body
		for i, n := range b.Vector {
			v[i] = feature.Number{Name: n.Name, Value: n.Value}
		}
		return model.Body{Tenant: tenant, Vector: v}, Parsing{}, nil
	}
	return model.Body{}, Parsing{}, fmt.Errorf("body of kind %d: neither mail nor text nor vector", b.Kind)
}

// message converts a parsed mail. Its subject is never nil: nil tells a plain text
// from a mail without a subject.
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

// ErrUnlabelled says that an event has no label to learn.
var ErrUnlabelled = errors.New("no label")

// Of returns e as an example to learn, relearn, unlearn, correct or assume, and how a mail was parsed. It
// ignores the time: no model depends on it.
func Of(e *stream.Event) (model.Example, Parsing, error) {
	if e.Label != stream.Spam && e.Label != stream.Ham && e.Action != stream.Unlearn {
		return model.Example{}, Parsing{}, fmt.Errorf("event %q: %w", e.ID, ErrUnlabelled)
	}
	body, how, err := Body(e.Tenant, &e.Body)
	if err != nil {
		return model.Example{}, Parsing{}, fmt.Errorf("event %q: %w", e.ID, err)
	}
	of, identity := e.Of, ""
	switch {
	case e.Action == stream.Learn || e.Action == stream.Relearn || e.Action == stream.Unlearn:
		identity = Identity(e, how.Mail)
	case of == "":
		of = Identity(e, how.Mail)
	}
	if e.Action == stream.Unlearn && of == "" {
		of = identity
	}
	return model.Example{
		ID:       e.ID,
		Source:   e.Source,
		Action:   convert.Action(e.Action),
		Of:       of,
		Identity: identity,
		OwnOnly:  e.OwnOnly,
		Spam:     e.Label == stream.Spam,
		Body:     body,
	}, how, nil
}

// Follow gives a source the role that an operator has said. Learner, eval and up all use it.
func Follow(m *model.Model, s *stream.Standing) error {
	if err := m.SetRole(s.Source, convert.Role(s.Role)); err != nil {
		return fmt.Errorf("standing %q: %w", s.ID, err)
	}
	return nil
}
