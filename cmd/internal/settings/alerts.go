package settings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/alert"
	"hamlet/cmd/internal/cli"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// alertChannels lists the ways in which alerts leave a process. To add one, say a
// webhook:
//
//   - write its publisher in a package below stream, say stream/webhook, with a test
//     that runs alerttest.Run on it; one that calls people leaves out what
//     [stream.NamesKind] does not name, unless a flag asks for suspicions;
//   - add its flags to [Alerts], and their bounds to Check;
//   - add the function that opens it to this list; it returns nil if its channel is
//     not configured;
//   - name its flags in the tables of wrong usage of cmd/internal/program/learner and cmd/hamlet
//     (usage_test.go), in deploy/hamlet.yaml, deploy/ALARMS.md and CHANGELOG.md.
//
// The learner and up publish to all channels that are open.
var alertChannels = []func(ctx context.Context, f Alerts, from AlertSource) (*alert.Channel, error){
	openNATSAlerts,
}

// Alerts are the flags for what becomes of alerts.
type Alerts struct {
	PublishAlerts bool `help:"Publish alerts to JetStream." default:"true" negatable:"" group:"NATS"`
	AlertReplicas int  `help:"Replicas of the stream HAMLET_ALERTS, if new." default:"1" placeholder:"N" group:"NATS" rare:"up"`
}

// maxReplicas is JetStream's own bound.
const maxReplicas = 5

// Check reports a flag outside its range.
func (f Alerts) Check() error {
	return cli.Range("--alert-replicas", f.AlertReplicas, 1, maxReplicas)
}

// An AlertSource is the process that publishes alerts.
type AlertSource struct {
	Name string       // of its connections
	NATS NATS         // its flags
	Conn *natsgo.Conn // its connection to NATS; nil: a channel opens one of its own
	Log  *slog.Logger
}

// Channels opens all channels that are configured; none is no error. The caller
// closes them.
func (f Alerts) Channels(ctx context.Context, from AlertSource) (alert.Channels, error) {
	if !f.PublishAlerts {
		from.Log.Info("alerts are logged and counted, not published, because of --no-publish-alerts")
		return nil, nil
	}
	var channels alert.Channels
	for _, open := range alertChannels {
		c, err := open(ctx, f, from)
		switch {
		case err == nil && c != nil:
			channels = append(channels, *c)
		case err != nil:
			channels.Close()
			if errors.Is(err, stream.ErrAlerts) {
				err = fmt.Errorf("%w; --no-publish-alerts goes without", err)
			}
			return nil, err
		}
	}
	if len(channels) == 0 {
		from.Log.Warn("alerts are logged and counted, not published: name a NATS server with --nats for that")
	}
	return channels, nil
}

// prepareTimeout is how long a start waits for JetStream.
const prepareTimeout = 5 * time.Second

// openNATSAlerts opens the channel to JetStream. It is an error if JetStream is off
// or the user lacks the right to it. A server that does not answer is a warning:
// alerts wait for it.
func openNATSAlerts(ctx context.Context, f Alerts, from AlertSource) (*alert.Channel, error) {
	conn, closeConn := from.Conn, func() {}
	if conn == nil {
		if from.NATS.NATS == "" {
			return nil, nil
		}
		cfg, err := from.NATS.Config(from.Name, from.Log)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		cfg.Wait = true
		if conn, err = nats.Connect(cfg); err != nil {
			return nil, err
		}
		closeConn = conn.Close
	}
	publisher, err := prepareNATSAlerts(ctx, conn, nats.AlertsConfig{Replicas: f.AlertReplicas, Log: from.Log})
	if err != nil {
		closeConn()
		return nil, err
	}
	return &alert.Channel{
		Publish: publisher.Publish,
		Close:   closeConn,
		Hint: fmt.Sprintf("nats sub --server %s 'hamlet.alerts.incident.>'   (kept in the JetStream stream %s)",
			nats.Redact(from.NATS.NATS), nats.AlertStream),
	}, nil
}

func prepareNATSAlerts(ctx context.Context, conn *natsgo.Conn, cfg nats.AlertsConfig) (*nats.Alerts, error) {
	publisher, err := nats.NewAlerts(conn, cfg)
	if err != nil {
		return nil, err
	}
	start, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	switch err := publisher.Prepare(start); {
	case err == nil:
	case errors.Is(err, stream.ErrAlerts):
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		cfg.Log.Warn("alerts wait for NATS, and saves for alerts", "error", err)
	}
	return publisher, nil
}
