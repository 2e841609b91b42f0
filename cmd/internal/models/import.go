package models

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
the file's partitions become the newest versions of that model. Its learner goes on from
there at its next save. The file must have come as far in the log. What was replaced is
kept for 30 days, for hamlet model pin. A pin ends.

It writes as a learner does: it needs the right of the learner's user of Redis.`
}

func (c *put) run(ctx context.Context, s *Session) error {
	store, err := s.store(c.As)
	if err != nil {
		return err
	}
	all, err := readFile(c.File)
	if err != nil {
		return err
	}
	if len(all) > 1 || all[0].partition != 0 {
		return fmt.Errorf("%s: %w: learn the log again, made with \"hamlet log merge\"", c.File, state.ErrPartitions)
	}
	for i := range all {
		if err := all[i].fits(); err != nil {
			return fmt.Errorf("%s, partition %d: %w", c.File, all[i].partition, err)
		}
	}
	existing, err := store.Partitions(ctx)
	if err != nil {
		return err
	}
	if len(existing) > 0 && !c.Replace {
		return cli.Usagef("redis keeps a model %s already: give another name, or --replace", c.As)
	}
	done, err := importAll(ctx, store, all, existing)
	if err != nil {
		return err
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

// importAll saves the model of a file. Nothing is written if it is refused.
func importAll(ctx context.Context, store *redis.Store, all []loaded, existing []int) ([]moved, error) {
	before := map[int]int64{}
	for _, p := range existing {
		versions, err := store.Versions(ctx)
		if err != nil {
			return nil, err
		}
		if len(versions) == 0 {
			return nil, fmt.Errorf("partition %d has versions, and none can be read", p)
		}
		i := slices.IndexFunc(all, func(l loaded) bool { return l.partition == p })
		if i < 0 {
			if !bytes.Equal(versions[0].Config, all[0].Config) {
				return nil, fmt.Errorf("partition %d is not in the file, and has another configuration: import all partitions, or give another name", p)
			}
			continue
		}
		if err := sameLayout(p, len(versions[0].Order) > 0, len(all[i].Order) > 0); err != nil {
			return nil, err
		}
		if head := versions[0]; all[i].Position.Next < head.Next {
			return nil, fmt.Errorf("partition %d has learnt up to offset %d, and the file only to %d: events between would be lost; import it under another name",
				p, head.Next, all[i].Position.Next)
		}
		before[p] = versions[0].Version
	}
	var done []moved
	for i := range all {
		m, err := save(ctx, store, &all[i], before[all[i].partition])
		if errors.Is(err, state.ErrStale) {
			err = fmt.Errorf("its learner has saved meanwhile: %w", err)
		}
		if err != nil {
			return done, fmt.Errorf("import partition %d, after %d of %d: %w", all[i].partition, len(done), len(all), err)
		}
		done = append(done, m)
	}
	if len(existing) == 0 {
		return done, nil
	}
	return done, store.Unpin(ctx)
}

// sameLayout returns an error if a file's partition cannot take the place of one in Redis.
func sameLayout(partition int, here, file bool) error {
	if here == file {
		return nil
	}
	const ordered, alone = "a model of all partitions, in the order of a log", "a model of this partition alone"
	was, is := ordered, alone
	if file {
		was, is = is, was
	}
	return fmt.Errorf("partition %d is %s, and the file has %s: import it under another name", partition, was, is)
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

func (c *put) print(s *Session, done []moved) error {
	if s.JSON {
		return s.json(struct {
			Model      string  `json:"model"`
			File       string  `json:"file"`
			Partitions []moved `json:"partitions"`
		}{c.As, c.File, done})
	}
	var b strings.Builder
	for _, m := range done {
		fmt.Fprintf(&b, "%s, %s: version %d, %d events up to offset %s, sha256 %s", c.As, partitionName(m.Partition, m.Offsets), m.Version, m.Events, m.Offsets.Position(m.Position), m.SHA256)
		if m.Before != 0 {
			fmt.Fprintf(&b, "; version %d, which it replaces, is kept for 30 days", m.Before)
		}
		b.WriteByte('\n')
	}
	return s.print(b.String())
}
