package score

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/nats"
)

// An up that starts listens a moment before it says which password it has.
const (
	passwordWait = 2 * time.Second
	passwordPoll = 20 * time.Millisecond
)

// connect connects as the user of cfg, or if it names none as the one that may ask the
// `hamlet up` of this user. It waits up to passwordWait for that up to say so.
func connect(ctx context.Context, cfg nats.Config, timeout time.Duration) (*natsgo.Conn, error) {
	deadline := time.Now().Add(min(timeout, passwordWait))
	for {
		known := settings.KnownAsker(cfg)
		conn, err := nats.Connect(known)
		if err == nil || !errors.Is(err, natsgo.ErrAuthorization) || !settings.Anonymous(known) {
			return conn, err
		}
		refused := fmt.Errorf("%w. The `hamlet up` of another user? "+
			"Then that user's `hamlet env` prints a name and password", err)
		if time.Now().After(deadline) {
			return nil, refused
		}
		select {
		case <-time.After(passwordPoll):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, refused // not that the time is up: the wait was for this
			}
			return nil, ctx.Err()
		}
	}
}

// An asker asks the scorers of a model, and waits for what is not there yet.
type asker struct {
	*patience
	conn   *natsgo.Conn
	client *nats.Client
}

// dial connects to the servers. It waits for a server that is not there yet. The caller closes the
// connection.
func dial(ctx context.Context, access settings.NATSAccess, servers, model string, waiting *patience) (*asker, error) {
	cfg, err := access.Config(servers, "hamlet-score", nil)
	if err != nil {
		return nil, err
	}
	cfg.Timeout = min(time.Until(waiting.until), 2*time.Second) // of one attempt, which nothing interrupts
	var conn *natsgo.Conn
	err = waiting.try(ctx, func(ctx context.Context) (err error) {
		conn, err = connect(ctx, cfg, time.Until(waiting.until))
		return err
	})
	if errors.Is(err, natsgo.ErrNoServers) {
		return nil, fmt.Errorf("%w (`hamlet up` starts a scorer with its own server "+
			"and prints the address for --server)", err)
	}
	if err != nil {
		return nil, err
	}
	client, err := nats.NewClient(conn, model)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &asker{waiting, conn, client}, nil
}

// ask has question ask until an answer comes, fails for good, or the time is up.
func (a *asker) ask(ctx context.Context, question func(context.Context) error) error {
	return a.try(ctx, func(ctx context.Context) error { return whileConnected(ctx, a.conn, question) })
}
