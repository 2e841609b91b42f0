// Package model is `hamlet model` and the console's page Model: which models and versions are
// kept, how right the answers were since each, what a version has learnt and how two differ; and
// from which of them scorers answer.
//
// A model is named as MODEL or MODEL@VERSION, and then it is in the store, or as a file: one of
// `hamlet backup --model M FILE`, or one of `hamlet eval --save`.
//
// A pin holds for what scorers answer. The learner goes on learning and saving, and a
// pinned version is kept until it is unpinned. Promote lets another model answer in the place of
// a model, and back: no state is copied. Package backup has what moves models.
//
// What a version has learnt is in its bytes. The pages read them only where somebody asks, and
// remember what was found.
package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
)

// A Command holds the commands below `hamlet model` and their flags, for kong to fill.
type Command struct {
	List    list    `cmd:"" help:"List the models of the store: Redis, or the folder of hamlet up."`
	Show    show    `cmd:"" help:"Show a model: configuration, versions, sources, alarms."`
	Diff    diff    `cmd:"" help:"Show how two models differ: settings, weights, sources."`
	Compare compare `cmd:"" help:"Say which of two models predicts better, as their learners go on."`

	Export cli.Gone `cmd:"" hidden:"" passthrough:"" instead:"hamlet backup --model MODEL FILE.tar writes one model to a file"`
	Import cli.Gone `cmd:"" hidden:"" passthrough:"" instead:"hamlet restore FILE --as NAME puts the model of a file in its place"`
	Verify cli.Gone `cmd:"" hidden:"" passthrough:"" instead:"hamlet verify FILE reads a model's file; hamlet backup --model MODEL FILE.tar writes one"`

	Versions versions `cmd:"" help:"List the versions that are kept, and which is served."`
	Pin      pin      `cmd:"" help:"Answer from a version until unpin."`
	Rollback rollback `cmd:"" help:"Pin the version before the one that is served."`
	Unpin    unpin    `cmd:"" help:"Answer from the newest version again."`
	Promote  promote  `cmd:"" help:"Let another model answer in the place of this one, or go back."`
	Replace  cli.Gone `cmd:"" hidden:"" passthrough:"" instead:"hamlet model promote NAME has it answer in the place of this one; its learner runs with --shadow"`

	JSON bool `name:"json" help:"Print one JSON object."`
	settings.ModelName
	settings.Machine
	settings.Redis
}

type versions struct{}

// Help is what kong prints below the flags.
func (versions) Help() string {
	return `Examples:

  hamlet model versions                       beside a running hamlet up
  hamlet model versions --redis redis:6379    elsewhere
  hamlet model versions --json | jq '.partitions[].served'

A learner saves a version every few seconds. The last three are kept, and the
first of each of thirty days, in files of seven (--keep-versions, --keep-daily). The
head is the newest. Scorers answer from the one that is served: the head, unless
one is pinned. The log no longer has what a lost one learnt: it can be pinned, and a
rollback passes over it.`
}

type pin struct {
	Version int64 `arg:"" name:"version" help:"A number that hamlet model versions prints."`
}

// Help is what kong prints below the flags.
func (pin) Help() string {
	return `Examples:

  hamlet model versions                  which are kept
  hamlet model pin 1208                  answer from version 1208
  hamlet model unpin                     answer from the newest again

Scorers follow within their --poll-interval. Learning goes on, and the pinned version
is kept until unpin. Repair the labels in the meantime, with unlearn and relearn events.`
}

type rollback struct{}

// Help is what kong prints below the flags.
func (rollback) Help() string {
	return `Example:

  hamlet model rollback && hamlet info

Pins the version before the one that is served; repeat it to go back further. Learning
goes on, and answers come from the pinned version until hamlet model unpin. Versions
are often seconds apart: hamlet model versions shows them, and those of earlier days.
It passes over versions that are lost.`
}

type unpin struct{}

// Help is what kong prints below the flags.
func (unpin) Help() string {
	return `Example:

  hamlet model unpin

Scorers answer from the newest version again. What was learnt in the meantime is in it.
Without a pin nothing changes.`
}

// Bounds of a command. A comparison may read predictions of a month, and a promotion may wait:
// they have none.
const (
	patience  = 20 * time.Second // for small questions
	modelTime = 10 * time.Minute // a model has some 30 MB
)

// A session is a command under way.
type session struct {
	*Command
	out    io.Writer
	log    *slog.Logger
	stores map[string]state.Store // by model; opened by store
}

// Run runs the command that kong chose, such as "pin <version>".
func (c *Command) Run(ctx context.Context, chosen cli.Subcommand, stdio cli.IO) (err error) {
	name, _, _ := strings.Cut(string(chosen), " ")
	switch {
	case name == "":
		return cli.Usagef("say what to do: hamlet model list, show, diff, compare, versions, pin VERSION, rollback, " +
			"unpin or promote CANDIDATE")
	case name == "pin" && c.Pin.Version <= 0:
		return cli.Usagef("version %d: versions are numbered from 1", c.Pin.Version)
	}
	s := &session{Command: c, out: stdio.Out, stores: map[string]state.Store{},
		log: slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	defer c.Machine.Close()
	defer func() {
		for _, store := range s.stores {
			err = errors.Join(err, store.Close())
		}
	}()
	within := func(limit time.Duration, run func(context.Context, *session) error) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return run(ctx, s)
	}
	switch name {
	case "list":
		return within(modelTime, c.List.run)
	case "show":
		return within(modelTime, c.Show.run)
	case "diff":
		return within(modelTime, c.Diff.run)
	case "compare":
		return c.Compare.run(ctx, s)
	case "promote":
		return s.promote(ctx)
	}
	return within(patience, func(ctx context.Context, s *session) error { return s.pin(ctx, name) })
}

func (s *session) store(ctx context.Context, name string) (state.Store, error) {
	if store := s.stores[name]; store != nil {
		return store, nil
	}
	if err := validName(name); err != nil {
		return nil, err
	}
	store, err := s.Machine.Store(ctx, s.Redis, name, s.log)
	if err != nil {
		return nil, err
	}
	s.stores[name] = store
	return store, nil
}

// validName returns an error of usage unless name is one of a model.
func validName(name string) error {
	if err := (settings.ModelName{Model: name}).Validate(); err != nil {
		return cli.Usagef("%q is not a name of a model: 1 to 64 of a–z, 0–9 and -", name)
	}
	return nil
}

func (s *session) json(v any) error { return cli.PrintJSON(s.out, v) }

func (s *session) print(text string) error { return cli.Print(s.out, text) }

// pin lists the versions, or changes which of them is served.
func (s *session) pin(ctx context.Context, command string) error {
	store, err := s.store(ctx, s.Model)
	if err != nil {
		return err
	}
	before, err := Read(ctx, store, s.Model)
	if err != nil {
		return err
	}
	var plan Plan
	switch command {
	case "versions":
		return s.printVersions(before)
	case "pin":
		plan, err = before.Pin(s.Pin.Version)
	case "rollback":
		plan, err = before.Rollback()
	case "unpin":
		plan = before.Unpin()
	default:
		panic("no command " + command)
	}
	if err != nil {
		return err
	}
	if err := plan.Do(ctx, store); err != nil {
		return err
	}
	after, err := Read(ctx, store, s.Model)
	if err != nil {
		return fmt.Errorf("%s is done, but what is served now cannot be read: %w", command, err)
	}
	return s.printChange(before, after)
}
