// Package pinning is `hamlet model`: it lists the versions of a model that Redis keeps,
// and says from which of them scorers answer. Package models has the commands that show and
// move whole models.
//
// A pin holds for what scorers answer. The learner goes on learning and saving, and a
// pinned version is kept until it is unpinned.
//
// Replace makes the state of another model of the same log the newest version of a model. Promote
// lets another model answer in the place of a model, and back: no state is copied.
package pinning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/models"
	"hamlet/cmd/internal/settings"
	"hamlet/state/redis"
)

// A Command holds the commands below `hamlet model` and their flags, for kong to fill.
type Command struct {
	models.Commands

	Versions versions `cmd:"" help:"List the versions that Redis keeps, and which is served."`
	Pin      pin      `cmd:"" help:"Answer from a version until unpin."`
	Rollback rollback `cmd:"" help:"Pin the version before the one that is served."`
	Unpin    unpin    `cmd:"" help:"Answer from the newest version again."`
	Promote  promote  `cmd:"" help:"Let another model answer in the place of this one, or go back."`
	Replace  replace  `cmd:"" help:"Put another model of the same log in the place of this one."`

	JSON bool `name:"json" help:"Print one JSON object."`
	settings.ModelName
	settings.Redis
}

type versions struct{}

// Help is what kong prints below the flags.
func (versions) Help() string {
	return `Examples:

  hamlet model versions                       beside a running hamlet up
  hamlet model versions --redis redis:6379    elsewhere
  hamlet model versions --json | jq '.partitions[].served'

A learner saves a version every few seconds, and Redis keeps the last three and the
first of each of thirty days (--keep-versions and --keep-daily of the learner). The
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

// patience bounds a command: its questions are small.
const patience = 20 * time.Second

// Run runs the command that kong chose, such as "pin <version>".
func (c *Command) Run(ctx context.Context, command string, stdout, stderr io.Writer) error {
	if command == "" {
		return cli.Usagef("say what to do: hamlet model list, show, diff, compare, export, import, verify, versions, pin VERSION, rollback, unpin, promote CANDIDATE or replace --by NAME")
	}
	if command == "pin <version>" && c.Pin.Version <= 0 {
		return cli.Usagef("version %d: versions are numbered from 1", c.Pin.Version)
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if models.Has(command) {
		return c.Commands.Run(ctx, command, &models.Session{Model: c.Model, JSON: c.JSON, Redis: c.Redis, Stdout: stdout, Log: log})
	}
	reach, err := c.Redis.OrRunning()
	if err != nil {
		return err
	}
	cfg, err := reach.Config(c.Model, log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	redis.SetLogger(log)
	store, err := redis.New(cfg)
	if err != nil {
		return err
	}
	if command == "replace" {
		err := c.runReplace(ctx, store, log, stdout)
		return errors.Join(err, store.Close())
	}
	if strings.HasPrefix(command, "promote") {
		err := c.runPromote(ctx, store, log, stdout)
		return errors.Join(err, store.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = c.do(ctx, command, store, stdout)
	return errors.Join(err, store.Close())
}

func (c *Command) do(ctx context.Context, command string, store *redis.Store, stdout io.Writer) error {
	before, err := Read(ctx, store, c.Model)
	if err != nil {
		return err
	}
	var plan Plan
	switch command {
	case "versions":
		return c.print(stdout, before)
	case "pin <version>":
		plan, err = before.Pin(c.Pin.Version)
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
	after, err := Read(ctx, store, c.Model)
	if err != nil {
		return fmt.Errorf("%s is done, but what is served now cannot be read: %w", command, err)
	}
	return c.printChange(stdout, before, after)
}
