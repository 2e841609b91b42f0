package nats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// ReadAlerts yields a model's alerts from a time on (zero: all), as far as the stream has
// come when it begins, in the order in which they were published. It yields each transition
// of an incident once, and alerts of programs without incidents. One that cannot be read is
// yielded as an [AlertError], and the next ones follow; after any other error nothing
// follows. Without a stream it yields nothing.
func ReadAlerts(ctx context.Context, conn *natsgo.Conn, model string, since time.Time) iter.Seq2[stream.Alert, error] {
	return func(yield func(stream.Alert, error) bool) {
		if err := readAlerts(ctx, conn, model, since, yield); err != nil {
			yield(stream.Alert{}, fmt.Errorf("read the alerts %s: %w", AlertStream, err))
		}
	}
}

func readAlerts(ctx context.Context, conn *natsgo.Conn, model string, since time.Time, yield func(stream.Alert, error) bool) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	before := conn.LastError()
	s, err := js.Stream(ask, AlertStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil
	case errors.Is(err, natsgo.ErrNoResponders):
		return fmt.Errorf("the server has no JetStream for this user: %w", err)
	case err != nil:
		if last := conn.LastError(); denied(last, before) {
			return fmt.Errorf("the user may not read alerts: %w; the operator of deploy/nats/hamlet.conf may", last)
		}
		return err
	}
	last := s.CachedInfo().State.LastSeq
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{AlertSubject("*", model)}}
	if !since.IsZero() {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &since
	}
	consumer, err := js.OrderedConsumer(ask, AlertStream, cfg)
	if err != nil {
		return err
	}
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, place, err := next(ctx, messages)
		if err != nil {
			return err
		}
		a, err := stream.DecodeAlert(m.Data())
		if err != nil {
			a, err = stream.Alert{}, &AlertError{Sequence: place.Sequence.Stream, Err: err}
		}
		// What has an incident stands under the incidents' subject too.
		if again := a.Incident != 0 && m.Subject() != IncidentSubject(model); !again && !yield(a, err) {
			return nil
		}
		if place.NumPending == 0 || place.Sequence.Stream >= last {
			return nil
		}
	}
}

// An AlertError says that one message of the stream of alerts cannot be read.
type AlertError struct {
	Sequence uint64 // of the message in the stream
	Err      error
}

// Error names the message.
func (e *AlertError) Error() string { return fmt.Sprintf("message %d: %v", e.Sequence, e.Err) }

// Unwrap returns Err.
func (e *AlertError) Unwrap() error { return e.Err }
