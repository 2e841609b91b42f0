package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
)

// This file has what the commands do with one model in one file: see [model.WriteFile].

// isFile reports whether a path is a model's file, and no directory of backups: it is a file, or is
// not there and ends in .tar.
func isFile(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(path, ".tar")
	}
	return info.Mode().IsRegular()
}

// InFile is what the commands print of a model's file with --json.
type InFile struct {
	File       string    `json:"file"`
	Model      string    `json:"model,omitempty"`   // from where it came, or where it went
	Version    int64     `json:"version,omitempty"` // there
	Before     int64     `json:"before,omitempty"`  // the version that it replaced
	Events     uint64    `json:"events"`
	Position   int64     `json:"position"`
	Saved      time.Time `json:"saved"`
	Bytes      int       `json:"bytes"`
	Numerics   string    `json:"numerics"`
	SHA256     string    `json:"sha256"`
	Restorable bool      `json:"restorable"`      // by this program
	Error      string    `json:"error,omitempty"` // why not
}

func inFile(file string, c *state.Checkpoint) *InFile {
	sum := c.ModelSHA256
	return &InFile{File: file, Events: c.Events, Position: c.Position.Next, Saved: c.Saved, Bytes: len(c.Model),
		Numerics: c.Numerics, SHA256: hex.EncodeToString(sum[:]), Restorable: true}
}

func (f *InFile) line() string {
	return fmt.Sprintf("%d events up to offset %d, %s, numerics %s, sha256 %s",
		f.Events, f.Position, cli.Megabytes(int64(f.Bytes)), f.Numerics, f.SHA256)
}

func (f *InFile) print(stdio cli.IO, asJSON bool, text string) error {
	if asJSON {
		return cli.PrintJSON(stdio.Out, f)
	}
	return cli.Print(stdio.Out, text+"\n")
}

func (c *Command) toFile(ctx context.Context, stdio cli.IO) error {
	if len(c.Model) != 1 {
		return cli.Usagef("%s is a file, which has one model: name it with --model, or name a directory", c.Folder)
	}
	if c.AllVersions || c.Keep != 0 || len(c.EventsOf) > 0 {
		return cli.Usagef("%s is a file: --all-versions, --keep and --events-of are about a directory of backups", c.Folder)
	}
	if _, err := os.Stat(c.Folder); err == nil && !strings.HasSuffix(c.Folder, ".tar") {
		if _, err := model.ReadFile(c.Folder); err != nil {
			return cli.Usagef("%s is there and is no model's file: name another, or a directory", c.Folder)
		}
	}
	name, version, err := model.Refer(c.Model[0])
	if err != nil {
		return err
	}
	if name == "" {
		return cli.Usagef("--model: %q is neither MODEL nor MODEL@VERSION", c.Model[0])
	}
	defer c.Machine.Close()
	store, err := c.Machine.Store(ctx, c.Redis, name,
		slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	version, checkpoint, err := model.Load(ctx, store, name, version)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if err := model.WriteFile(c.Folder, checkpoint); err != nil {
		return fmt.Errorf("write model %s to %s: %w", c.Model[0], c.Folder, err)
	}
	f := inFile(c.Folder, checkpoint)
	f.Model, f.Version = name, version
	return f.print(stdio, c.JSON, fmt.Sprintf("%s, version %d: %s", name, version, f.line()))
}

// file says how the model of a file is.
func (c *Verify) file(stdio cli.IO) error {
	if c.Backup != "" {
		return cli.Usagef("%s is a file: --backup is about a directory of backups", c.Folder)
	}
	checkpoint, err := model.ReadFile(c.Folder)
	if err != nil {
		return err
	}
	f, how := inFile(c.Folder, checkpoint), "whole"
	if err := model.Fits(checkpoint); errors.Is(err, model.ErrOther) {
		f.Restorable, f.Error, how = false, err.Error(), "whole, and not for this program: "+err.Error()
	} else if err != nil {
		return fmt.Errorf("%s: %w", c.Folder, err)
	}
	return f.print(stdio, c.JSON, fmt.Sprintf("%s, %s: %s", c.Folder, f.line(), how))
}

// fromFile makes the model of a file the newest version of a model. Learners may run.
func (c *Restore) fromFile(ctx context.Context, stdio cli.IO) error {
	switch {
	case c.As == "":
		return cli.Usagef("%s is a file, which has no name of a model: say it with --as", c.Folder)
	case (settings.ModelName{Model: c.As}).Validate() != nil:
		return cli.Usagef("--as: %q is not a name of a model: 1 to 64 of a–z, 0–9 and -", c.As)
	case len(c.Model) > 0 || len(c.EventsOf) > 0 || c.Backup != "" || c.NewLog:
		return cli.Usagef("%s is a file: --model, --events-of, --backup and --new-log are about a directory of backups",
			c.Folder)
	case c.Data != "" && c.Redis.Redis != "":
		return cli.Usagef("--data is in place of --redis")
	}
	checkpoint, err := model.ReadFile(c.Folder)
	if err != nil {
		return err
	}
	if err := model.Fits(checkpoint); err != nil {
		return fmt.Errorf("%s: %w", c.Folder, err)
	}
	to := settings.Machine{Data: c.Data}
	defer to.Close()
	store, err := to.Store(ctx, c.Redis, c.As,
		slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	f := inFile(c.Folder, checkpoint)
	f.Model = c.As
	if err := errors.Join(c.Put(ctx, store, checkpoint, f), store.Close()); err != nil {
		return err
	}
	text := fmt.Sprintf("%s, version %d: %s", c.As, f.Version, f.line())
	if f.Before != 0 {
		text += fmt.Sprintf("; version %d, which it replaces, is kept for 30 days", f.Before)
	}
	return f.print(stdio, c.JSON, text)
}

// Put makes a checkpoint the newest version of the model As. The version before, if there is one, is
// kept as one that was replaced, and a pin ends. f says where the checkpoint is in the log, and gets the
// versions.
func (c *Restore) Put(ctx context.Context, store state.Store, checkpoint *state.Checkpoint, f *InFile) error {
	if err := store.Layout(ctx); err != nil {
		return err
	}
	versions, err := store.Versions(ctx)
	existing := !errors.Is(err, state.ErrNone)
	switch {
	case existing && err != nil:
		return err
	case existing && !c.Replace:
		return cli.Usagef("a model %s is kept already: give another name, or --replace", c.As)
	case existing && len(versions) == 0:
		return fmt.Errorf("model %s has versions, and none can be read", c.As)
	case existing && f.Position < versions[0].Position.Next:
		return fmt.Errorf("model %s has learnt up to offset %d, and the file only to %d: events between would be lost; "+
			"restore it under another name",
			c.As, versions[0].Position.Next, f.Position)
	case existing:
		f.Before = versions[0].Version
		if err := store.MarkReplaced(ctx, f.Before); err != nil {
			return err
		}
	}
	lease, err := store.Seize(ctx, "restore")
	if err != nil {
		return err
	}
	defer store.Release(context.WithoutCancel(ctx), lease) // else a learner waits until it lapses
	checkpoint.Epoch, checkpoint.Writer, checkpoint.Saved = lease.Epoch, lease.Writer, time.Now().UTC()
	if f.Version, err = store.Save(ctx, checkpoint); errors.Is(err, state.ErrStale) {
		err = fmt.Errorf("its learner has saved meanwhile: %w", err)
	}
	if err == nil && existing {
		err = store.Unpin(ctx)
	}
	return err
}
