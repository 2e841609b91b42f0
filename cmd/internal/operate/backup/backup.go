// Package backup is `hamlet backup`, `hamlet verify` and `hamlet restore`: it copies the
// models that a store keeps to a directory and back.
//
// A model is a pure function of its log. So a backup is a checkpoint and its position: a
// learner that begins at a restored checkpoint reads the log from there, and makes the same
// bytes as one that never stopped. The log itself is in Kafka, and no part of a backup. Each
// command that is told Kafka compares the position with the log, as a learner does.
//
// See folder for the layout of the directory, and [Index] for what stands in it.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/version"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/state"
	"hamlet/stream"
)

// missing is what a backup does not have.
var missing = []string{
	"the events, which are in the log",
	"alerts, journal, audit, waiting answers and kept mail, which are in NATS",
	"configuration files, users, tokens and passwords",
}

// Names are the models that a command is about.
type Names struct {
	Model    []string `help:"Only this model; may repeat." placeholder:"NAME" env:"-"`
	EventsOf []string `help:"The model NAME learns the events of OTHER, as a shadow does." placeholder:"NAME=OTHER" env:"-"`
}

func (n *Names) check() error {
	for _, name := range n.Model {
		if err := (settings.ModelName{Model: name}).Validate(); err != nil {
			return &cli.UsageError{Err: err}
		}
	}
	for i, text := range n.EventsOf {
		name, other, both := strings.Cut(text, "=")
		if !both && len(n.Model) == 1 {
			name, other = n.Model[0], text
			n.EventsOf[i] = name + "=" + other
		}
		for _, name := range []string{name, other} {
			if err := (settings.ModelName{Model: name}).Validate(); err != nil {
				return cli.Usagef("--events-of: %q is not NAME=OTHER, two models", text)
			}
		}
	}
	return nil
}

// events returns the model whose topic a model learns.
func (n *Names) events(model string) string {
	for _, text := range n.EventsOf {
		if name, other, _ := strings.Cut(text, "="); name == model {
			return other
		}
	}
	return model
}

// A Command is `hamlet backup`, for kong to fill.
type Command struct {
	Folder string `arg:"" name:"dir" help:"The directory of backups; made if it is missing. FILE.tar is a file of one model."`
	Names
	AllVersions bool `help:"All versions that are kept, not only the newest and the pinned one."`
	Keep        int  `help:"Then delete all backups of DIR but the newest N; 0: none." default:"0" placeholder:"N"`
	JSON        bool `name:"json" help:"Print one JSON object."`
	settings.Machine
	settings.Redis
	settings.Kafka
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  sudo -u hamlet hamlet backup /backup      beside a running hamlet up
  hamlet backup /backup --redis r:6379 --kafka k:9092 --keep 14
  hamlet verify /backup
  hamlet restore /backup --redis new:6379 --kafka k:9092
  hamlet backup --model spam spam.tar       one model, in one file

Learners and scorers go on meanwhile. Each checkpoint is copied as a whole: the model
and its position in the log. A second backup into DIR adds only what has changed. One
that is interrupted leaves the others as they were.

After a restore the learner reads the log from that position, and the model becomes what
it would have been. So the log must still be there: the command says from which offset
on, and with Kafka until when. Take backups more often than events are deleted.

A version that the log has lost (hamlet model versions marks it) is left out, pinned or not.
Without --model, so is a model that hamlet 0.1.0 learnt from several partitions. The command
then copies the others, deletes no earlier backup, and ends with status 1.

Not in it: the events (Kafka); alerts, journal, audit and kept mail
(NATS); configuration, users, tokens, passwords. Copy the folder of hamlet up --data while
it is stopped: that has all of them.

It only reads the store, Redis or the folder of hamlet up. In Redis the right of the operator's
user is enough, and of the scorer's with --model. A backup is a statistic of mail: only its owner may read it.`
}

// A Result is what `hamlet backup --json` prints.
type Result struct {
	Backup   string   `json:"backup"` // name of the file in DIR
	Taken    string   `json:"taken"`
	Versions int      `json:"versions"`
	Chunks   int      `json:"chunks"`     // that they name
	New      int      `json:"new_chunks"` // that DIR lacked
	Bytes    int64    `json:"bytes"`      // of these
	Deleted  int      `json:"deleted"`    // earlier backups
	Models   []Copied `json:"models"`     // the newest version of each
	Missing  []string `json:"not_included"`
}

// A Copied is the newest version of a model that a backup has.
type Copied struct {
	Model     string `json:"model"`
	Partition int    `json:"partition"` // always 0
	Version
	Lost    []int64 `json:"lost,omitempty"`     // versions that are left out: the log has lost what they learnt
	LostPin int64   `json:"lost_pin,omitempty"` // the one of them that is pinned
	Logs    []Log   `json:"logs,omitempty"`     // one, where the log was compared
}

// Run takes a backup.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	if isFile(c.Folder) {
		return c.toFile(ctx, stdio)
	}
	if err := errors.Join(c.check(), cli.NotNegative("--keep", c.Keep)); err != nil {
		return err
	}
	if err := ours(c.Folder); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	defer c.Machine.Close()
	logs, err := c.logs(ctx, log)
	if err != nil {
		return err
	}
	unlock, err := machine.LockMade(c.Folder)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = unlock() }()

	to := folder{c.Folder}
	line := progress.NewLine(stdio.Err)
	defer line.Clear()
	show := func(doing string) { line.Draw("copying " + doing) }
	t := &taking{to: to, all: c.AllVersions, lost: map[string]lost{}, show: show}
	x, err := t.take(ctx, c.Model, func(model string) (state.Store, error) {
		return c.Machine.Store(ctx, c.Redis, model, log)
	}, log)
	if err != nil {
		return err
	}
	result := &Result{Backup: x.name, Taken: cli.Stamp(x.Taken), Versions: t.versions, Chunks: t.chunks, New: t.written,
		Bytes: t.bytes, Missing: missing}
	var failed []error
	keep := c.Keep
	if len(t.old) > 0 { // an earlier backup may be the last that has the model
		keep = 0
	}
	if result.Deleted, err = to.prune(keep, x.name); err != nil {
		failed = append(failed, fmt.Errorf("the backup is whole, delete what is not needed any more: %w", err))
	}
	for _, m := range x.Models {
		lost := t.lost[m.Name]
		copied := Copied{Model: m.Name, Version: *m.Partitions[0].newest(), Lost: lost.versions, LostPin: lost.pinned}
		if logs != nil {
			l, err := goesOn(ctx, logs, c.events(m.Name), copied.manifest.Position)
			if err == nil {
				copied.Logs = []Log{l}
			} else {
				failed = append(failed, fmt.Errorf("the backup is whole, compare model %s with its log: %w", m.Name, err))
			}
		}
		result.Models = append(result.Models, copied)
	}
	for _, err := range t.left {
		failed = append(failed, fmt.Errorf("a version is not in the backup: %w", err))
	}
	for _, err := range t.old {
		failed = append(failed, fmt.Errorf("a model is not in the backup, and no earlier one is deleted: %w", err))
	}
	line.Clear()
	return errors.Join(append([]error{c.print(result, stdio.Out)}, failed...)...)
}

func (c *Command) print(r *Result, w io.Writer) error {
	if c.JSON {
		return cli.PrintJSON(w, r)
	}
	var b strings.Builder
	asked := false
	for i := range r.Models {
		m := &r.Models[i]
		fmt.Fprintf(&b, "%s, %s\n", m.Model, m.line())
		for _, number := range m.Lost {
			fmt.Fprintf(&b, "  version %d is left out: the log has lost what it learnt\n", number)
		}
		if m.LostPin != 0 {
			fmt.Fprintf(&b, "  version %d is pinned: after a restore of this backup answers come from the newest\n", m.LostPin)
		}
		for j := range m.Logs {
			asked = true
			fmt.Fprintf(&b, "  %s\n", &m.Logs[j])
		}
	}
	fmt.Fprintf(&b, "backup %s: %d versions, %d chunks, of which %d are new, %s written",
		r.Backup, r.Versions, r.Chunks, r.New, cli.Megabytes(r.Bytes))
	if r.Deleted > 0 {
		fmt.Fprintf(&b, "; %d earlier backups deleted", r.Deleted)
	}
	b.WriteString("\nnot in it: " + strings.Join(r.Missing, "; ") + "\n")
	if !asked {
		b.WriteString("the log is needed from these offsets on: with --kafka this command says until when it is kept\n")
	}
	return cli.Print(w, b.String())
}

func (v *Version) line() string {
	return fmt.Sprintf("version %d: %d events up to offset %d, %s, numerics %s, sha256 %s",
		v.Version, v.Events, v.Position, cli.Megabytes(v.Bytes), v.Numerics, v.SHA256)
}

// logs returns where the log is that a backup is compared with, and asks whether it is reached: the Kafka
// that is named, or the machine whose models are copied. It is nil where Redis is named alone.
func (c *Command) logs(ctx context.Context, log *slog.Logger) (stream.Logs, error) {
	if len(c.Kafka.Kafka) == 0 && c.Redis.Redis != "" {
		return nil, nil
	}
	logs, err := c.Machine.LogsIfAny(ctx, c.Kafka, "hamlet-backup", log)
	if err != nil || logs == nil {
		return nil, err
	}
	return logs, logs.Ping(ctx)
}

// program is the version of this program, without that of Go.
func program() string {
	first, _, _ := strings.Cut(version.Of("hamlet"), "\n")
	return first
}
