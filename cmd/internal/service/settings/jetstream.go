package settings

import (
	"errors"
	"log/slog"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/stream/nats"
)

// Journal are the flags of the journal of decisions.
type Journal struct {
	Journal         bool          `help:"Keep a line for each answer in the JetStream stream HAMLET_DECISIONS, for hamlet history." default:"true" negatable:"" group:"Journal" rare:"up"`
	JournalAge      time.Duration `help:"Keep decisions so long." default:"${journal_age}" placeholder:"D" group:"Journal" rare:"up"`
	JournalSize     int64         `help:"MiB of decisions to keep at most." default:"${journal_size}" placeholder:"MIB" group:"Journal" rare:"up"`
	JournalReplicas int           `help:"Replicas of that stream, if new." default:"1" placeholder:"N" group:"Journal" rare:"up"`

	LogDecisions bool `help:"Log each answer as well, in the same words." group:"Journal" rare:"up"`
}

// Check reports bounds that no journal may have.
func (f Journal) Check() error {
	if f.JournalAge < time.Minute {
		return cli.Usagef("--journal-age: %v is below a minute; --no-journal keeps nothing", f.JournalAge)
	}
	return errors.Join(cli.Range("--journal-size", int(f.JournalSize), 1, 1<<20),
		cli.Range("--journal-replicas", f.JournalReplicas, 1, nats.MostReplicas))
}

// Config returns the adapter's configuration for a model's decisions.
func (f Journal) Config(model string, log *slog.Logger) nats.JournalConfig {
	return nats.JournalConfig{
		Model: model, Age: f.JournalAge, Bytes: f.JournalSize << 20, Replicas: f.JournalReplicas, Log: log,
	}
}

// Alerts are the flags for what becomes of alerts.
type Alerts struct {
	PublishAlerts bool `help:"Publish alerts to JetStream." default:"true" negatable:"" group:"NATS"`
	AlertReplicas int  `help:"Replicas of the stream HAMLET_ALERTS, if new." default:"1" placeholder:"N" group:"NATS" rare:"up"`
}

// Check reports a flag outside its range.
func (f Alerts) Check() error {
	return cli.Range("--alert-replicas", f.AlertReplicas, 1, nats.MostReplicas)
}
