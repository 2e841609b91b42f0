package models

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/state"
	"hamlet/state/redis"
)

type put struct {
	File    string `arg:"" name:"file" help:"A file of export, or of eval --save."`
	As      string `required:"" help:"Name of the model in Redis." placeholder:"NAME" env:"-"`
	Replace bool   `help:"Replace a model of that name." env:"-"`
}

// Help is what kong prints below the flags.
func (put) Help() string {
	return `Examples:

  hamlet model import spam.tar --as copy
  learner --model copy --events-of spam      goes on where the file ends
  hamlet model import saved --as warm        a file of eval --save

The learner goes on at the position in the file, and refuses another log. A file of eval
--save has no position: its learner reads the log from the beginning.

A model of other numerics is refused, and so is a name that Redis knows. With --replace
that of the file becomes the newest version of that model. Its learner goes on from
there at its next save. The file must have come as far in the log. What was replaced is
kept for 30 days, for hamlet model pin. A pin ends.

It writes as a learner does: it needs the right of the learner's user of Redis.`
}

func (c *put) run(ctx context.Context, s *Session) error {
	store, err := s.store(c.As)
	if err != nil {
		return err
	}
	l, err := readFile(c.File)
	if err != nil {
		return err
	}
	if err := l.fits(); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := store.Layout(ctx); err != nil {
		return err
	}
	versions, err := store.Versions(ctx)
	existing := !errors.Is(err, state.ErrNone)
	switch {
	case existing && err != nil:
		return err
	case existing && !c.Replace:
		return cli.Usagef("redis keeps a model %s already: give another name, or --replace", c.As)
	case existing && len(versions) == 0:
		return fmt.Errorf("model %s has versions, and none can be read", c.As)
	}
	before := int64(0)
	if existing {
		if head := versions[0]; l.Position.Next < head.Position.Next {
			return fmt.Errorf("model %s has learnt up to offset %d, and the file only to %d: events between would be lost; import it under another name",
				c.As, head.Position.Next, l.Position.Next)
		}
		before = versions[0].Version
	}
	done, err := save(ctx, store, l, before)
	if errors.Is(err, state.ErrStale) {
		err = fmt.Errorf("its learner has saved meanwhile: %w", err)
	}
	if err == nil && existing {
		err = store.Unpin(ctx)
	}
	if err != nil {
		return fmt.Errorf("import %s: %w", c.File, err)
	}
	return c.print(s, done)
}

// fits returns an error unless this program's learner can go on with the model.
func (l *loaded) fits() error {
	if here := model.CurrentNumerics(); l.Numerics != here || l.Schema != schema {
		return fmt.Errorf("the model is of numerics %s and layout %d, this program of %s and %d: learn its log again", l.Numerics, l.Schema, here, schema)
	}
	if err := l.decode(); err != nil {
		return err
	}
	return l.encodesAlike()
}

// save makes a checkpoint the newest version. The version before, if it is not 0, is kept as one
// that was replaced.
func save(ctx context.Context, store *redis.Store, l *loaded, before int64) (moved, error) {
	if before != 0 {
		if err := store.MarkReplaced(ctx, before); err != nil {
			return moved{}, err
		}
	}
	lease, err := store.Seize(ctx, "import")
	if err != nil {
		return moved{}, err
	}
	defer store.Release(context.WithoutCancel(ctx), lease) // else a learner waits until it lapses
	l.Epoch, l.Writer, l.Saved = lease.Epoch, lease.Writer, time.Now().UTC()
	if l.version, err = store.Save(ctx, l.Checkpoint); err != nil {
		return moved{}, err
	}
	m := l.moved()
	m.Before = before
	return m, nil
}

func (c *put) print(s *Session, m moved) error {
	if s.JSON {
		return s.json(movedModel{c.As, c.File, []moved{m}})
	}
	replaced := ""
	if m.Before != 0 {
		replaced = fmt.Sprintf("; version %d, which it replaces, is kept for 30 days", m.Before)
	}
	return s.print(fmt.Sprintf("%s: version %d, %d events up to offset %d, sha256 %s%s\n", c.As, m.Version, m.Events, m.Position, m.SHA256, replaced))
}
