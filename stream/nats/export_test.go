package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// Close drains conn: it ends the subscriptions, waits for their handlers, and sends what
// was published. If ctx ends first it closes conn at once, and returns an error.
func Close(ctx context.Context, conn *natsgo.Conn) error {
	closed := conn.StatusChanged(natsgo.CLOSED)
	defer conn.RemoveStatusListener(closed)
	if conn.IsClosed() {
		return nil
	}
	if err := conn.Drain(); err != nil {
		conn.Close()
		if errors.Is(err, natsgo.ErrConnectionClosed) || errors.Is(err, natsgo.ErrConnectionReconnecting) {
			return nil // nobody is there to drain to
		}
		return fmt.Errorf("drain the nats connection: %w", err)
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		conn.Close()
		return fmt.Errorf("drain the nats connection: %w", context.Cause(ctx))
	}
}

// ConnectTelling is Connect whose log says each period why there is no connection.
func ConnectTelling(cfg Config, every time.Duration) (*natsgo.Conn, error) {
	return connect(cfg, every)
}

// FollowJournalEvery is FollowJournal with other pauses.
var FollowJournalEvery = followJournal
