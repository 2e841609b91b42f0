// Package alarms is `hamlet alarms`: it shows open and past incidents, from the stream of
// alerts.
package alarms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/settings"
	"hamlet/stream"
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
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) error {
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
	var all incidents
	damaged := 0
	for a, err := range nats.ReadAlerts(ctx, conn, c.Model, time.Time{}) { // an incident may begin before --since
		switch {
		case errors.As(err, new(*nats.AlertError)):
			damaged++
		case err != nil:
			return err
		default:
			all.add(&a)
		}
	}
	if damaged > 0 {
		fmt.Fprintf(stderr, "%d alerts cannot be read\n", damaged)
	}
	shown := all.newest(c.Limit, func(i *incident) bool { return (!c.Open || i.open()) && !i.last().Time.Before(since) })
	if c.JSON {
		return writeJSON(stdout, shown)
	}
	return writeTable(stdout, shown)
}

// An incident is its alerts in the order of their transitions; at least one.
type incident struct{ alerts []stream.Alert }

func (i *incident) last() *stream.Alert { return &i.alerts[len(i.alerts)-1] }

func (i *incident) open() bool {
	s := i.last().State
	return s == stream.AlertSuspected || s == stream.AlertRaised
}

// Incidents are those of one model, in the order in which they were opened.
type incidents struct {
	all  []*incident
	byID map[string]*incident
}

// add joins an alert to its incident. A copy is dropped: the server knows copies for 30 days
// only. An alert of a program without incidents is one alone, unless it clears one.
func (n *incidents) add(a *stream.Alert) {
	if n.byID == nil {
		n.byID = map[string]*incident{}
	}
	id := a.IncidentID()
	if id == "" {
		id = fmt.Sprintf("%d %s %s", a.Partition, a.Kind, a.Body)
	}
	i := n.byID[id]
	switch {
	case i == nil, a.Incident == 0 && !i.open():
		i = &incident{alerts: []stream.Alert{*a}}
		n.byID[id], n.all = i, append(n.all, i)
	case a.Incident == 0 || a.Transition > i.last().Transition:
		i.alerts = append(i.alerts, *a)
	}
}

// newest returns the last limit of the wanted incidents, or all if limit is 0.
func (n *incidents) newest(limit int, wanted func(*incident) bool) (shown []*incident) {
	for _, i := range n.all {
		if wanted(i) {
			shown = append(shown, i)
		}
	}
	if limit > 0 && len(shown) > limit {
		shown = shown[len(shown)-limit:]
	}
	return shown
}
