package settings

import (
	"hamlet/cmd/internal/process/cli"
	"hamlet/stream/nats"
)

// Alerts are the flags for what becomes of alerts.
type Alerts struct {
	PublishAlerts bool `help:"Publish alerts to JetStream." default:"true" negatable:"" group:"NATS"`
	AlertReplicas int  `help:"Replicas of the stream HAMLET_ALERTS, if new." default:"1" placeholder:"N" group:"NATS" rare:"up"`
}

// Check reports a flag outside its range.
func (f Alerts) Check() error {
	return cli.Range("--alert-replicas", f.AlertReplicas, 1, nats.MostReplicas)
}
