package score

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// An InfoCommand holds the flags of `hamlet info`, for kong to fill.
type InfoCommand struct {
	JSON bool `name:"json" help:"Print one JSON object: model, events, saved, numerics, stale, pinned, pin_lost, promoted, sources, spam_at, ham_at, rule, incidents."`
	settings.ModelName

	Server string `help:"URLs of NATS, comma-separated. HAMLET_NATS sets it too." default:"nats://127.0.0.1:4222" env:"HAMLET_SERVER,HAMLET_NATS" group:"NATS"`
	settings.NATSAccess
	Timeout time.Duration `help:"How long to wait for an answer, and for a server, a scorer and a model that are not there yet." default:"10s" group:"NATS"`
}

// Help is what kong prints below the flags.
func (InfoCommand) Help() string {
	return `Examples:

  hamlet info                              the model of the running hamlet
  hamlet info --server nats://mx1:4222     of a scorer elsewhere
  hamlet info --json | jq -e '.stale or .pinned or .pin_lost | not'

Of several scorers one answers. A model is stale if the scorer cannot read what
Redis holds: it goes on with the last good one. It is pinned if an operator said so
with hamlet model pin: what was learnt since does not count in answers.

Sources that are left out are those of the learner's --without-source: the served
model has none of their labels.

With --lose-at-most a line says what is promised, or what is missing for that. The
rules of single tenants are told by hamlet score, and in the scorer's metrics.

The alarms are the incidents that were open when the served model was saved. hamlet
alarms shows how each began, and those that are over.`
}

// Run asks a scorer and prints what it says.
func (c *InfoCommand) Run(ctx context.Context, stdio cli.IO) error {
	if c.Timeout <= 0 {
		return cli.Usagef("--timeout: %v is not above zero", c.Timeout)
	}
	waiting := &patience{until: time.Now().Add(c.Timeout), stderr: stdio.Err}
	scorers, err := dial(ctx, c.NATSAccess, c.Server, c.Model, waiting)
	if err != nil {
		return err
	}
	defer scorers.conn.Close()
	var info stream.Info
	err = scorers.ask(ctx, func(ctx context.Context) (err error) {
		info, err = scorers.client.Info(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(stdio.Out, info)
	}
	return printInfo(stdio.Out, info)
}

func printInfo(w io.Writer, info stream.Info) error {
	positions := strings.Trim(fmt.Sprint(info.Model.Positions), "[]")
	age := (time.Duration(info.Model.AgeMS) * time.Millisecond).Round(100 * time.Millisecond)
	pinned, stale := "no: the newest version is served", "no"
	switch {
	case info.Pinned:
		pinned = "yes: what was learnt since does not count, until `hamlet model unpin`"
	case info.PinLost:
		pinned = "lost: the store has lost the pinned version, and the newest is served; see `hamlet model versions`"
	}
	if info.Stale {
		stale = "yes: the store cannot be read in full, this is the last good model"
	}
	promoted := ""
	if p := info.Promoted; p != nil {
		promoted = fmt.Sprintf(", promoted in the place of %s at %s", p.For, cli.Stamp(p.Since))
	}
	table := report.NewTable("model", info.Model.Name+promoted)
	table.Add("sha256", info.Model.SHA256)
	table.Add("events", info.Events)
	table.Add("positions", positions)
	table.Add("saved", fmt.Sprintf("%s, %v ago", cli.Stamp(info.Saved), age))
	table.Add("numerics", info.Numerics)
	table.Add("stale", stale)
	table.Add("pinned", pinned)
	if info.Rule != nil {
		table.Add("verdicts", ruleText(info.Rule))
	}
	table.Add("sources", sourcesOf(info.Sources))
	table.Add("alarms", alarms(info.Incidents))
	return cli.Print(w, table.String())
}

// sourcesOf says how many sources give labels, and whether some are not as others.
func sourcesOf(n stream.Sources) string {
	text := strconv.Itoa(n.Known)
	for _, of := range []struct {
		n    int
		what string
	}{{n.Doubted, "doubted"}, {n.Anchors, "anchors"}, {n.Muted, "muted"}, {n.LeftOut, "left out"}} {
		if of.n > 0 {
			text += fmt.Sprintf(", %d %s", of.n, of.what)
		}
	}
	if n.Doubted > 0 {
		text += "; see `hamlet sources`"
	}
	return text
}

// alarms returns the open incidents in words.
func alarms(open []stream.OpenIncident) string {
	if len(open) == 0 {
		return "none"
	}
	var all []string
	for _, i := range open {
		what := i.Kind
		if i.State == stream.AlertSuspected {
			what = "something changed, not yet known what"
		}
		if i.Accused != "" {
			what += " against " + cli.Cell(i.Accused)
		}
		all = append(all, fmt.Sprintf("%s (%s, incident %s)", what, i.Body, i.Incident))
	}
	return strings.Join(all, "; ")
}
