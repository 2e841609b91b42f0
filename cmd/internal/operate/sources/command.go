// Package sources is `hamlet sources` and the console's pages about who gives labels: how many,
// how often wrong, and how far each is believed. An operator says there how far a source shall
// be, and withdraws what it has taught after seeing what that would do.
//
// What is listed is what the learner has saved: [Read], a [Table]. What an operator says goes to
// the events topic (stream.Standing): the learner reads it there.
package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
)

// A Command holds the commands below `hamlet sources` and their flags, for kong to fill.
type Command struct {
	List list `cmd:"" default:"withargs" help:"List the sources of labels, as the learners have saved them. The default."`
	Set  set  `cmd:"" help:"Say how the labels of a source count from here on."`

	JSON bool `name:"json" help:"Print one JSON object."`
	settings.ModelName
	settings.Machine
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet sources                            who has given labels, and what they count
  hamlet sources set user-reports muted     its labels teach nothing from here on
  hamlet sources set abuse-desk anchor      it is believed, and others are compared with it
  hamlet sources set user-reports ordinary  as it was`
}

type list struct {
	Limit int `help:"Show the N with most labels; 0 shows all." default:"50" placeholder:"N" env:"-"`
	settings.Redis
}

// Help is what kong prints below the flags.
func (list) Help() string {
	return `Examples:

  hamlet sources                          beside a running hamlet up
  hamlet sources --redis redis:6379       elsewhere
  hamlet sources --json | jq '.sources[] | select(.weight < 0.5).source'
  hamlet sources set user-reports muted   see hamlet sources set --help

The flip rate is how often labels of the source contradict the model that the others have
made, with its 90 % interval; labels of which the model is unsure count little. The weight
is how much its next label counts: 1 in full, 0 not at all. A late source was first heard
when the others were well known, and a new one has given fewer than 50 labels. "Accused"
is the model's event at which a label of the source last contradicted the others so much
that the source was suspected. A source that has been silent for longest makes room
in a table of 4,096.

Labels of mail and text, and of vectors, are summed; rate and weight are means by labels.
--json has both.`
}

// patience bounds a command: its questions are small, and a model has some 30 MB.
const patience = time.Minute

// Run runs the command that kong chose, such as "set <name> <role>".
func (c *Command) Run(ctx context.Context, chosen cli.Subcommand, stdio cli.IO) error {
	log := slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer c.Machine.Close()
	if string(chosen) == "set <source> <role>" {
		return c.set(ctx, log, stdio.Out)
	}
	if err := cli.NotNegative("--limit", c.List.Limit); err != nil {
		return err
	}
	store, err := c.Machine.Store(ctx, c.List.Redis, c.Model, log)
	if err != nil {
		return err
	}
	table, err := Read(ctx, store, c.Model)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if c.List.Limit > 0 {
		table.cut(c.List.Limit)
	}
	if c.JSON {
		return cli.PrintJSON(stdio.Out, table)
	}
	return table.print(stdio.Out)
}

// Read returns the sources that the newest model knows. The error is state.ErrNone if none was
// saved.
func Read(ctx context.Context, store state.Store, name string) (*Table, error) {
	m, checkpoint, err := model.RestoreHead(ctx, store)
	if errors.Is(err, state.ErrNone) {
		return nil, fmt.Errorf("no model %s was saved: %w", name, state.ErrNone)
	}
	if err != nil {
		return nil, err
	}
	return newTable(name, checkpoint.Saved, m), nil
}
