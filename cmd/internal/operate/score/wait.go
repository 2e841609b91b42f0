package score

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

const (
	// askEvery is the pause between two attempts.
	askEvery = 250 * time.Millisecond

	// silence is how long a wait is not mentioned.
	silence = time.Second
)

// awaited names what has to come before err can pass, or returns "" if waiting is of no
// use.
func awaited(err error) string {
	var refused *questions.Refusal
	switch {
	case errors.Is(err, natsgo.ErrNoServers):
		return "a NATS server"
	case errors.Is(err, nats.ErrNoServer), errors.Is(err, natsgo.ErrReconnectBufExceeded),
		errors.Is(err, natsgo.ErrDisconnected):
		return "the NATS server to come back"
	case errors.Is(err, questions.ErrNoAnswerer):
		return "a scorer"
	case errors.As(err, &refused) && refused.Code == questions.Unavailable:
		return "the scorer, which says: " + refused.Text
	}
	return ""
}

// errLost says that no answer can come any more. Asking again may help.
var errLost = fmt.Errorf("%w: the connection was lost after the question", nats.ErrNoServer)

// whileConnected calls ask, and ends it when the connection is lost: an answer to it may be
// lost as well, and a question does no harm twice. Then the error wraps [nats.ErrNoServer].
func whileConnected(ctx context.Context, conn *natsgo.Conn, ask func(context.Context) error) error {
	lost := conn.StatusChanged(natsgo.RECONNECTING, natsgo.CLOSED)
	defer conn.RemoveStatusListener(lost) // it closes lost
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if _, ok := <-lost; ok {
			cancel(errLost)
		}
	}()
	err := ask(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errLost) {
		return errLost
	}
	return err
}

// A patience is the time in which something that starts is waited for.
type patience struct {
	until  time.Time
	stderr io.Writer
	said   string // what the last line said is waited for
}

// try calls attempt until it succeeds, fails for good, or the time is up. Then its error
// is the last that says what was missing.
func (p *patience) try(ctx context.Context, attempt func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, p.until)
	defer cancel()
	began := time.Now()
	var last error
	for {
		err := attempt(ctx)
		if err == nil {
			return nil
		}
		what := awaited(err)
		if what == "" {
			if last != nil && errors.Is(err, context.DeadlineExceeded) {
				return last
			}
			return err
		}
		last = err
		if time.Since(began) >= silence && what != p.said {
			fmt.Fprintf(p.stderr, "waiting until %s for %s\n", p.until.Format(time.TimeOnly), what)
			p.said = what
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return last
			}
			return ctx.Err()
		}
	}
}
