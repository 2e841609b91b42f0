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
		alerts := stored{stream: AlertStream, subjects: []string{AlertSubject("*", model)}, since: since, what: "alerts"}
		err := alerts.each(ctx, conn, func(m jetstream.Msg, sequence uint64) bool {
			a, err := stream.DecodeAlert(m.Data())
			if err != nil {
				a, err = stream.Alert{}, &AlertError{Sequence: sequence, Err: err}
			}
			// What has an incident stands under the incidents' subject too.
			again := a.Incident != 0 && m.Subject() != IncidentSubject(model)
			return again || yield(a, err)
		})
		if err != nil {
			yield(stream.Alert{}, fmt.Errorf("read the alerts %s: %w", AlertStream, err))
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

// AlertsEnd returns the sequence of the newest message of the stream of alerts, 0 without a
// stream. Where it has not changed, ReadAlerts finds what it found before.
func AlertsEnd(ctx context.Context, conn *natsgo.Conn) (uint64, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	before := conn.LastError()
	s, err := js.Stream(ctx, AlertStream)
	switch {
	case err == nil:
		return s.CachedInfo().State.LastSeq, nil
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return 0, nil
	}
	if now := conn.LastError(); readingDenied(AlertStream, now, before) {
		return 0, fmt.Errorf("the user may not read alerts: %w; the operator of deploy/nats/hamlet.conf may", now)
	}
	return 0, fmt.Errorf("ask for the stream %s: %w", AlertStream, err)
}
