package nats

import (
	"context"
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
// yielded as a [MessageError], and the next ones follow; after any other error nothing
// follows. Without a stream it yields nothing.
func ReadAlerts(ctx context.Context, conn *natsgo.Conn, model string, since time.Time) iter.Seq2[stream.Alert, error] {
	return func(yield func(stream.Alert, error) bool) {
		alerts := stored{stream: AlertStream, subjects: []string{AlertSubject("*", model)}, since: since, what: "alerts"}
		err := alerts.each(ctx, conn, func(m jetstream.Msg, sequence uint64) bool {
			a, err := stream.DecodeAlert(m.Data())
			if err != nil {
				a, err = stream.Alert{}, &MessageError{Sequence: sequence, Err: err}
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

// AlertsEnd returns the sequence of the newest message of the stream of alerts, 0 without a
// stream. Where it has not changed, ReadAlerts finds what it found before.
func AlertsEnd(ctx context.Context, conn *natsgo.Conn) (uint64, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return 0, err
	}
	state, err := streamState(ctx, js, AlertStream, "alerts")
	if err != nil {
		return 0, fmt.Errorf("ask for the stream %s: %w", AlertStream, err)
	}
	return state.LastSeq, nil
}
