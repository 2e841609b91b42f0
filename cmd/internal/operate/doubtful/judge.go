package doubtful

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A Judge says of doubtful labels whether they are right.
type Judge struct {
	Logs  stream.Logs
	Topic string // of the model's events

	// Kept returns mail that was kept, by its identity. Its error wraps nats.ErrNotArchived where there
	// is none. nil: none is.
	Kept func(ctx context.Context, identity string) (nats.ArchivedMail, error)

	To review.Teacher
}

// sayTime bounds the time for one label.
const sayTime = 15 * time.Second

// Say confirms a doubtful label, or turns it around, by the word of a source. It returns when the
// learner's log has that.
func (j *Judge) Say(ctx context.Context, item *Item, right bool, source string) error {
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	tenant, body, err := j.message(ctx, item)
	if err != nil {
		return err
	}
	if err := j.To.Publish(ctx, Events(item, tenant, body, right, source, time.Now())...); err != nil {
		return fmt.Errorf("send the label of %s: %w", item.ID, err)
	}
	return nil
}

// Events returns the corrections that say whether the doubtful label of a message is right. They may take
// the place of any source's label, and the model believes them: φ = 1.
//
// A correction to the label that a message has changes nothing, and the model would go on doubting it. So
// a label is confirmed by two: the message gets the other label, which withdraws the doubted one, and
// then the right one in the place of that.
//
// Another event with the same label would not do. The model doubts that one as well, and its source.
func Events(item *Item, tenant string, body stream.Body, right bool, source string, now time.Time) []stream.Event {
	labels := []stream.Label{item.Other()}
	if right {
		labels = append(labels, item.Label)
	}
	var events []stream.Event
	for _, label := range labels {
		events = append(events, stream.Event{
			ID: item.ID + "/" + label.String() + "/" + rand.Text(), Time: now.UTC(), Source: source, Tenant: tenant,
			Action: stream.Correct, Of: item.ID, Label: label, Body: body,
		})
	}
	return events
}

// ErrNoMessage says that neither the log nor the kept mail has the message of a label.
var ErrNoMessage = errors.New("its message is gone, and a correction needs it")

// message returns the tenant and the body of a doubtful label: that of its event in the log, or else of
// the kept mail.
func (j *Judge) message(ctx context.Context, item *Item) (tenant string, body stream.Body, err error) {
	e, gone := j.event(ctx, item)
	if gone == nil {
		return e.Tenant, e.Body, nil
	}
	if j.Kept != nil {
		m, err := j.Kept(ctx, item.ID)
		if err == nil {
			return m.Tenant, stream.Body{Kind: stream.Mail, Mail: m.Message}, nil
		}
		if !errors.Is(err, nats.ErrNotArchived) {
			gone = errors.Join(gone, err)
		}
	}
	return "", stream.Body{}, fmt.Errorf("the label of %s: %w", item.ID, gone)
}

// event returns the event of a doubtful label.
func (j *Judge) event(ctx context.Context, item *Item) (*stream.Event, error) {
	if j.Logs == nil {
		return nil, fmt.Errorf("%w: no log is at hand", ErrNoMessage)
	}
	log, err := j.Logs.Open(j.Topic)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	offset := item.Doubt.Offset
	records, err := follow.Some(ctx, follow.Topic(log, j.Logs), offset, offset+1, stream.MaxEventSize)
	switch {
	case errors.Is(err, stream.ErrGone):
		return nil, fmt.Errorf("%w: topic %s has lost offset %d to its age", ErrNoMessage, j.Topic, offset)
	case err != nil:
		return nil, err
	case len(records) == 1:
		in, err := example.Read(records[0].Headers, records[0].Value)
		if err == nil && in.Standing == nil && cmp.Or(in.Example.Identity, in.Example.Of) == item.ID {
			return &in.Event, nil
		}
	}
	return nil, fmt.Errorf("%w: topic %s has something else at offset %d", ErrNoMessage, j.Topic, offset)
}
