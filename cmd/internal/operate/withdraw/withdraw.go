// Package withdraw is `hamlet withdraw`: it withdraws what a source has taught, as far as
// that is still possible, and shows before what it would do.
//
// A model keeps the sites of its last events, and can withdraw these. Of each label of the
// source among them the command writes an unlearn record to the events topic. The learner does
// the rest. The id of such a record is a function of the label's place in the log. So the
// command can be run again after any stop: what is withdrawn already is not withdrawn twice.
//
// The body of an event is in the log alone. The command reads parts of the log several times,
// and holds one fetch, two models, and the offsets of what it found.
//
// Programs use [Make], which plans, and [Plan.Write]. The console shows a plan and writes the
// same one when an operator confirms it; [Plan.Recheck] says before whether it still holds.
package withdraw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/stream"
)

// A Command holds the flags of `hamlet withdraw`, for kong to fill.
type Command struct {
	Source string        `help:"Whose labels to withdraw." required:"" env:"-" placeholder:"NAME"`
	Since  string        `help:"From this event, incident or time on." required:"" env:"-" placeholder:"WHEN"`
	Until  string        `help:"Up to this event, or before this time." env:"-" placeholder:"WHEN"`
	DryRun bool          `help:"Show what it would do, and write nothing." env:"-"`
	Yes    bool          `help:"Write without asking." short:"y" env:"-"`
	Recent int           `help:"Compare the answers to the last N events of other sources." default:"1000" env:"-" placeholder:"N"`
	Wait   time.Duration `help:"Wait so long until the learner has saved the result; 0: do not." default:"1m" env:"-" placeholder:"D"`
	JSON   bool          `name:"json" help:"Print one JSON object."`
	settings.ModelName
	settings.Thresholds
	settings.Machine
	settings.Kafka
	settings.Redis
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet withdraw --source desk --since 5210 --dry-run     from event 5210 on
  hamlet withdraw --source desk --since default.0.5210     from an incident on
  hamlet withdraw --source desk --since 24h --until 2h --yes

--since and --until take an event as alerts show it, the id of an incident, a duration
before now, or a time such as 2026-11-20T10:00:00Z.

It writes an unlearn record for each label of the source that the model can still
withdraw: those among its last 2,500 events of mail and text, and of vectors. A
repeated run changes nothing. Each withdrawal gets a receipt.

First it shows how many those are, and what the model then answers to recent mail.
That is the head alone and the counts of words: ensembles follow when they are rebuilt.
The mail is such as the model has learnt.

What lies beyond the window stays. hamlet model rollback answers from a version of
before. learner --events-of MODEL --shadow --without-source NAME makes a model as if the
source had never taught, and hamlet model promote has it answer in the place of this one.

The source goes on teaching: hamlet sources set NAME muted stops it. The command reads
and writes the events topic, as ingest does with files, and reads the store.`
}

// Limits of --recent and --wait.
const (
	mostRecent = 100_000
	mostWait   = 24 * time.Hour
)

func (c *Command) check() error {
	err := errors.Join(cli.Range("--recent", c.Recent, 0, mostRecent), cli.Range("--wait", c.Wait, 0, mostWait),
		c.Thresholds.Check())
	if c.DryRun && c.Yes {
		err = errors.Join(err, cli.Usagef("--dry-run writes nothing, and --yes writes: give one of them"))
	}
	return err
}

// Run plans the withdrawal, shows the plan, asks, and writes.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	now := time.Now()
	since, err := ParseBound("--since", c.Since, c.Model, now)
	var until Bound
	if err == nil && c.Until != "" {
		until, err = ParseBound("--until", c.Until, c.Model, now)
	}
	if err := errors.Join(err, c.check()); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	defer c.Machine.Close()
	servers, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer servers.Store.Close()
	if dir := c.Machine.Stopped(); dir != "" && !c.DryRun && c.Wait > 0 {
		return fmt.Errorf("nothing is written: no hamlet up runs in %[1]s, so nobody would learn the withdrawals; "+
			"start hamlet up --data %[1]s, then run this command again (--dry-run shows them meanwhile)", dir)
	}
	line := progress.NewLine(stdio.Err)
	plan, err := Make(ctx, servers, &Request{
		Model: c.Model, Source: c.Source, Since: since, Until: until, Recent: c.Recent, SpamAt: c.SpamAt, HamAt: c.HamAt,
	}, shown(line))
	line.Clear()
	if err != nil {
		return err
	}
	out := result{Plan: plan, DryRun: c.DryRun}
	if !c.JSON {
		if err := out.printPlan(stdio.Out); err != nil {
			return err
		}
	}
	if c.DryRun || plan.Withdrawable == 0 {
		return c.end(stdio.Out, &out)
	}
	if err := c.confirm(stdio, plan.Withdrawable); err != nil {
		return err
	}
	out.Written, err = plan.Write(ctx, servers, shown(line))
	line.Clear()
	if err != nil {
		return fmt.Errorf("%d of %d withdrawals are written; run the command again for the others: %w",
			out.Written, plan.Withdrawable, err)
	}
	if c.Wait > 0 {
		if out.Saved, err = plan.Saved(ctx, servers, c.Wait); err != nil {
			return fmt.Errorf("%d withdrawals are written, and whether the learner has saved them is not known: %w",
				out.Written, err)
		}
	}
	return c.end(stdio.Out, &out)
}

// open returns the log and the store: as the flags say, else those of the one `hamlet up` that
// this user runs.
func (c *Command) open(ctx context.Context, log *slog.Logger) (Servers, error) {
	logs, err1 := c.Machine.Logs(ctx, c.Kafka, "hamlet-withdraw", log)
	store, err2 := c.Machine.Store(ctx, c.Redis, c.Model, log)
	return Servers{Kafka: logs, Store: store}, errors.Join(err1, err2)
}

// confirm asks on a terminal. Elsewhere --yes is the answer.
func (c *Command) confirm(stdio cli.IO, n int) error {
	if c.Yes {
		return nil
	}
	if c.JSON || !cli.IsTerminal(stdio.In) {
		return cli.Usagef("nothing is written: say --yes to write %s, or --dry-run to see them alone", count(n, "withdrawal"))
	}
	if _, err := fmt.Fprintf(stdio.Err, "Write %s to topic %s? [y/N] ", count(n, "withdrawal"),
		stream.EventsTopic(c.Model)); err != nil {
		return err
	}
	answer, err := cli.ReadLine(stdio.In)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer != "y" && answer != "yes" && answer != "Y" {
		return errors.New("nothing is written")
	}
	return nil
}

// shown returns a function that shows how far the log has been read.
func shown(line *progress.Line) func(Progress) {
	var last time.Time
	return func(p Progress) {
		if !line.OnTerminal() || time.Since(last) < 200*time.Millisecond {
			return
		}
		last = time.Now()
		line.Draw(fmt.Sprintf("%s: offset %d of %d", p.Doing, p.Offset, p.End))
	}
}
