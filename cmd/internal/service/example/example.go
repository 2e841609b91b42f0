// Package example turns an event of the wire into an example for a model. Learner,
// scorer and eval all use it, so that each reads a message in the same way.
//
//	in, err := example.Read(record.Headers, record.Value)
//	if err == nil && in.Standing == nil {
//		effect, err = m.Attempt(&in.Example)
//	}
//	// err is the reason of a dead letter, unless it is a *model.PanicError
//
// A panic on the way is a defect of ours. It becomes a *model.Defect, whose text depends on the
// record alone, so that a learner, a replay and an operator's tool all refuse the record. What
// Go cannot recover from, a stack that is exhausted above all, still ends the process.
package example

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example/internal/planted"
	"hamlet/cmd/internal/service/wire"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// A Parsing says how a mail was parsed. It is zero for a text and a vector.
type Parsing struct {
	Raw    bool          // a part was taken as raw text: it was broken or beyond a limit
	Reason string        // why
	Mail   *mail.Message // whose memory the result shares
}

// An Incoming is a record of the log as a model takes it.
type Incoming struct {
	Event    stream.Event
	Standing *stream.Standing // nil: an event
	Example  model.Example    // of the event
	Parsing  Parsing
}

// Read decodes a record of the log. Learner, replays and tools all call it. An error is the
// reason of a dead letter. Event is set if only the rest could not be read.
func Read(headers []stream.Header, value []byte) (in Incoming, err error) {
	defer recovered("decode this record", &err)
	if stream.IsStanding(headers) {
		s, err := stream.DecodeStandingRecord(headers, value)
		return Incoming{Standing: &s}, err
	}
	if in.Event, err = stream.DecodeRecord(headers, value); err != nil {
		return in, err
	}
	in.Example, in.Parsing, err = Of(&in.Event)
	return in, err
}

// recovered is deferred: it turns a panic into err.
func recovered(doing string, err *error) {
	if value := recover(); value != nil {
		*err = model.Recovered(doing, value)
	}
}

// Body returns a tenant's b as a model takes it, and how a mail was parsed. A text is a
// message without a head. The result may share b's memory. The only errors are an unknown
// kind, and a *model.Defect.
func Body(tenant string, b *stream.Body) (_ model.Body, _ Parsing, err error) {
	defer recovered("parse this body", &err)
	switch b.Kind {
	case stream.Mail:
		planted.Parse(b.Mail)
		m := mail.Parse(b.Mail)
		return model.Body{Tenant: tenant, Message: message(&m)}, Parsing{Raw: m.Raw, Reason: m.Reason, Mail: &m}, nil
	case stream.Text:
		return model.Body{Tenant: tenant, Message: &feature.Message{Body: []byte(b.Text), BodyBytes: len(b.Text)}},
			Parsing{}, nil
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
func Of(e *stream.Event) (_ model.Example, _ Parsing, err error) {
	defer recovered("read this event", &err)
	if e.Label != stream.Spam && e.Label != stream.Ham && e.Action != stream.Unlearn {
		return model.Example{}, Parsing{}, fmt.Errorf("event %q: %w", e.ID, ErrUnlabelled)
	}
	body, how, err := Body(e.Tenant, &e.Body)
	if defect := (*model.Defect)(nil); errors.As(err, &defect) {
		return model.Example{}, Parsing{}, err // as a defect elsewhere
	}
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
		ID:           e.ID,
		Source:       e.Source,
		Action:       wire.Action(e.Action),
		Of:           of,
		Identity:     identity,
		OwnOnly:      e.OwnOnly,
		Spam:         e.Label == stream.Spam,
		SampleWeight: e.Sampled.Weight(),
		Body:         body,
	}, how, nil
}

// Follow gives a source the role that an operator has said. Learner, eval and up all use it.
func Follow(m *model.Model, s *stream.Standing) error {
	if err := m.SetRole(s.Source, wire.Role(s.Role)); err != nil {
		return fmt.Errorf("standing %q: %w", s.ID, err)
	}
	return nil
}

// Identity returns the identity of e's body. That of a mail, whose parsed form is m, is
// mail.Identity. That of a text or a vector is a hash of all of it and of the tenant, as long
// as that of a mail.
func Identity(e *stream.Event, m *mail.Message) string {
	if e.Body.Kind == stream.Mail {
		return mail.Identity(e.Tenant, m)
	}
	b := appendPart([]byte{byte(e.Body.Kind)}, e.Tenant)
	b = appendPart(b, e.Body.Text)
	for _, n := range e.Body.Vector {
		b = appendPart(b, n.Name)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.Value))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:sha256.Size/2])
}

func appendPart(b []byte, part string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
}

// Defects logs where defects of ours are: the stack of each place once. The zero value is ready.
type Defects struct {
	mu   sync.Mutex
	seen map[string]bool // by innermost
}

// mostStacks bounds what Defects logs and remembers.
const mostStacks = 100

// Note logs the stack of err if it is a *model.Defect or a *model.PanicError of a place that
// was not logged before. attrs say which record it was. Stacks name no content.
func (d *Defects) Note(log *slog.Logger, err error, attrs ...any) {
	var defect *model.Defect
	if !errors.As(err, &defect) {
		return
	}
	at := innermost(defect.Stack)
	d.mu.Lock()
	known := d.seen[at] || len(d.seen) >= mostStacks
	if !known {
		if d.seen == nil {
			d.seen = map[string]bool{}
		}
		d.seen[at] = true
	}
	d.mu.Unlock()
	if !known {
		log.Error("a defect of hamlet: please report it with this stack",
			append(attrs, "reason", err.Error(), "stack", string(defect.Stack))...)
	}
}

// innermost returns the files and lines of the innermost frames of a stack: the same for every
// panic of one defect.
func innermost(stack []byte) string {
	const frames = 12
	var at []string
	for line := range bytes.Lines(stack) {
		if file, _, ok := strings.Cut(string(line), " +0x"); ok && strings.HasPrefix(file, "\t") && len(at) < frames {
			at = append(at, strings.TrimSpace(file))
		}
	}
	return strings.Join(at, " ")
}
