package review

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"hamlet/cmd/internal/door/doors"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A Teacher brings events to the learner. Publish returns when they are safe.
type Teacher interface {
	Publish(ctx context.Context, events ...stream.Event) error
}

// A LogTeacher opens the log for each label: people give few.
type LogTeacher struct {
	Logs  stream.Logs
	Topic string
	Ask   ingest.Asking // which labels were asked for
}

// teachTime bounds the time for one label: its giver waits.
const teachTime = 15 * time.Second

// Publish is that of a [Teacher].
func (t LogTeacher) Publish(ctx context.Context, events ...stream.Event) error {
	ctx, cancel := context.WithTimeout(ctx, teachTime)
	defer cancel()
	log, err := t.Logs.Open(t.Topic)
	if err != nil {
		return err
	}
	defer log.Close()
	return doors.Teacher{Events: log, Ask: t.Ask}.Publish(ctx, events...)
}

// Event returns the label of a kept message as the learner takes it: a correction, as `hamlet
// learn` sends it. The same label again changes nothing, another one takes its place, and
// labels of other sources stay.
func Event(m *nats.ArchivedMail, label stream.Label, source string, now time.Time) stream.Event {
	return stream.Event{
		ID: m.Identity + "/" + label.String() + "/" + rand.Text(), Time: now.UTC(), Source: source, Tenant: m.Tenant,
		Action: stream.Correct, Of: m.Identity, OwnOnly: true, Label: label,
		Body: stream.Body{Kind: stream.Mail, Mail: m.Message},
	}
}

// Teach sends the label of a kept message to the learner.
func Teach(ctx context.Context, to Teacher, m *nats.ArchivedMail, label stream.Label, source string) error {
	e := Event(m, label, source, time.Now())
	if err := to.Publish(ctx, e); err != nil {
		return fmt.Errorf("send the label of %s: %w", m.Identity, err)
	}
	return nil
}
