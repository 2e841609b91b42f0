// Package incidents is `hamlet alarms` and the console's pages about what is wrong and what was:
// the incidents of a model, from the stream of alerts ([Read]), and the life of one of them. An
// operator acknowledges an incident there, and goes on from it to pin a version of before and to
// withdraw what a source has taught.
package incidents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/nats"
)

// A Command holds the flags of `hamlet alarms`, for kong to fill.
type Command struct {
	Open  bool   `help:"Only incidents that are open: suspected or raised, and not over."`
	Since string `help:"Only incidents that changed from then on: 24h (a day ago), or a time such as 2026-11-20T10:00:00Z." env:"-" placeholder:"WHEN"`
	Limit int    `help:"Show the newest N; 0 shows all." default:"50" placeholder:"N"`
	JSON  bool   `name:"json" help:"Print one JSON object an incident."`
	settings.ModelName

	Server string `help:"URLs of NATS, comma-separated. HAMLET_NATS sets it too." default:"nats://127.0.0.1:4222" env:"HAMLET_SERVER,HAMLET_NATS" group:"NATS"`
	settings.NATSAccess
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet alarms                     the last 50 incidents, the newest last
  hamlet alarms --open              what is wrong now
  hamlet alarms --since 24h --json  for programs: each with its alerts

An incident begins with a suspicion: something changed, and it is not known yet what. It is
then named: label-noise, covariate, concept, or source with the name of who is accused. A
name is cleared when its signs have gone away, and a suspicion that comes to nothing is
withdrawn. What is certain is named at once.

Each step stands with the model's event count. An incident's name is made of the model, the
partition and the event that opened it. Learners keep the steps in NATS' stream
HAMLET_ALERTS for 90 days. To read takes the right of an operator
(deploy/nats/hamlet.conf); the one who runs up has it.`
}

// Run prints the incidents that the flags ask for, the newest last.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	since, err := cli.Since(c.Since, time.Now())
	if err := errors.Join(err, cli.NotNegative("--limit", c.Limit)); err != nil {
		return err
	}
	cfg, err := settings.NATS{NATS: c.Server, NATSAccess: c.NATSAccess}.Config("hamlet-alarms", nil)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	conn, err := nats.Connect(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	all, damaged, err := Read(ctx, conn, c.Model)
	if err != nil {
		return err
	}
	if damaged > 0 {
		fmt.Fprintf(stdio.Err, "%d alerts cannot be read\n", damaged)
	}
	// An incident may begin before --since.
	shown := newest(all, c.Limit, func(i *Incident) bool { return (!c.Open || i.Open()) && !i.Last().Time.Before(since) })
	if c.JSON {
		return writeJSON(stdio.Out, shown)
	}
	return writeTable(stdio.Out, shown)
}
