package settings

import (
	"context"
	"errors"
	"log/slog"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/cli"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// Alerts are the flags for what becomes of alerts.
type Alerts struct {
	PublishAlerts bool `help:"Publish each change of an alarm to JetStream, in the stream HAMLET_ALERTS; otherwise they are logged and counted only." default:"true" negatable:"" group:"NATS"`
	AlertReplicas int  `help:"Replicas of the stream HAMLET_ALERTS, if it is to be created." default:"1" placeholder:"N" group:"NATS"`
}

// maxReplicas is JetStream's own bound.
const maxReplicas = 5

// Check reports a flag outside its range.
func (f Alerts) Check() error {
	if f.AlertReplicas < 1 || f.AlertReplicas > maxReplicas {
		return cli.Usagef("--alert-replicas: %d is not in 1…%d", f.AlertReplicas, maxReplicas)
	}
	return nil
}

// prepareTimeout is how long a start waits for JetStream.
const prepareTimeout = 5 * time.Second

// Publisher returns the publisher of alerts on conn, or nil where none is wanted.
// That JetStream is off, or may not be used, is an error; that nobody answers is a
// warning, since alerts wait for NATS.
func (f Alerts) Publisher(ctx context.Context, conn *natsgo.Conn, log *slog.Logger) (*nats.Alerts, error) {
	if !f.PublishAlerts {
		return nil, nil
	}
	a, err := nats.NewAlerts(conn, nats.AlertsConfig{Replicas: f.AlertReplicas, Log: log})
	if err != nil {
		return nil, err
	}
	start, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	switch err := a.Prepare(start); {
	case err == nil:
	case errors.Is(err, stream.ErrAlerts):
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		log.Warn("alerts wait for NATS, and saves for alerts", "error", err)
	}
	return a, nil
}
