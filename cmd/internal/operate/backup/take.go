package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/machine"
	"hamlet/state"
	"hamlet/stream"
)

// A taking copies models from Redis to a folder.
type taking struct {
	to       folder
	all      bool // all versions, and not only the newest and the pinned one
	show     func(doing string)
	chunks   int   // that the versions name
	written  int   // chunks that the folder lacked
	bytes    int64 // of them
	versions int
	left     []error         // of versions and promotions that are not whole
	lost     map[string]lost // by model
	old      []error         // of models that only hamlet 0.1.0 reads, which are left out
}

// A lost says which versions are left out, because the log has lost what they learnt. A restore
// could not put them beside the others: they are further in the log than those that came later.
type lost struct {
	versions []int64 // ascending
	pinned   int64   // the one of them that an operator pinned
}

// An Opener opens the store of a model.
type Opener func(model string) (state.Store, error)

// Take copies all models of a place to a directory, as `hamlet backup` does, and compares no log. The
// error says which versions or models are left out of a backup that was written.
func Take(ctx context.Context, dir string, open Opener) (*Index, error) {
	unlock, err := machine.LockMade(dir)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = unlock() }()
	t := &taking{to: folder{dir}, lost: map[string]lost{}, show: func(string) {}}
	x, err := t.take(ctx, nil, open, slog.New(slog.DiscardHandler))
	return x, errors.Join(slices.Concat(t.left, t.old, []error{err})...)
}

// take copies models, and writes the index that makes them a backup.
func (t *taking) take(ctx context.Context, names []string, open Opener, log *slog.Logger) (*Index, error) {
	earlier, err := t.to.list()
	if err != nil {
		return nil, err
	}
	x, err := t.models(ctx, names, open)
	if err != nil {
		return nil, fmt.Errorf("nothing is added to %s: %w", t.to.path, err)
	}
	if after := takenAfter(earlier, x.Taken); after.After(x.Taken) {
		log.Warn("the newest backup of the directory is of the future: this one is named after it; see to the clock",
			"newest", earlier[0])
		x.Taken = after
	}
	if err := t.to.finish(x); err != nil {
		return nil, fmt.Errorf("write the backup: %w", err)
	}
	return x, nil
}

// models copies the models of these names, or all models. A model that only hamlet 0.1.0 reads is left
// out, unless it is named.
func (t *taking) models(ctx context.Context, names []string, open Opener) (*Index, error) {
	named := len(names) > 0
	x := &Index{Format: format, Taken: time.Now().UTC(), Program: program(), Missing: missing}
	names = slices.Clone(names)
	if !named {
		store, err := open(stream.DefaultName)
		if err != nil {
			return nil, err
		}
		names, err = store.Models(ctx)
		if err := errors.Join(err, store.Close()); err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, errors.New("the store keeps no model yet: a learner saves one with its first event")
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		store, err := open(name)
		if err != nil {
			return nil, err
		}
		m, err := t.model(ctx, store, name)
		err = errors.Join(err, store.Close())
		switch {
		case errors.Is(err, state.ErrPartitions) && !named:
			err = fmt.Errorf("%w; to back up the others alone, name each with --model; %s", advice.Add(err), model.OldKeys(name))
			t.old = append(t.old, err)
		case err != nil:
			return nil, err
		default:
			x.Models = append(x.Models, m)
		}
	}
	if len(x.Models) == 0 {
		return nil, errors.Join(t.old...)
	}
	return x, nil
}

func (t *taking) model(ctx context.Context, store state.Store, name string) (Model, error) {
	m := Model{Name: name}
	if err := store.Layout(ctx); err != nil {
		return m, err
	}
	promotion, err := store.Promotion(ctx)
	switch {
	case err == nil:
		if m.Promotion, err = promotion.AppendBinary(nil); err != nil {
			return m, err
		}
	case errors.Is(err, state.ErrCorrupt):
		t.left = append(t.left, err)
	case !errors.Is(err, state.ErrNone):
		return m, err
	}
	p, err := t.newest(ctx, store, name)
	if errors.Is(err, state.ErrNone) {
		err = model.None(name)
	}
	m.Partitions = []Partition{p}
	return m, err
}

// newest copies the newest version and the pinned one, or all. While it reads, newer
// versions may push the newest one out: then it begins again.
func (t *taking) newest(ctx context.Context, store state.Store, model string) (Partition, error) {
	const tries = 5
	for try := 1; ; try++ {
		p := Partition{Versions: []Version{}}
		kept, err := store.Versions(ctx)
		kept = t.withoutLost(model, kept)
		if err == nil && len(kept) == 0 {
			err = fmt.Errorf("model %s has versions, and none can be read that the log has not lost", model)
		}
		if err != nil {
			return p, err
		}
		left := t.left
		for i, info := range slices.Backward(kept) { // the oldest first
			newest := i == 0
			if !newest && !info.Pinned && !t.all {
				continue
			}
			v, err := t.version(ctx, store, model, info)
			switch {
			case err == nil:
				p.Versions = append(p.Versions, v)
				if info.Pinned {
					p.Pinned = info.Version
				}
			case errors.Is(err, state.ErrCorrupt):
				t.left = append(t.left, fmt.Errorf("model %s: %w", model, err))
			case !errors.Is(err, state.ErrNone): // else it is not kept any more
				return p, err
			}
		}
		if n := len(p.Versions); n > 0 && p.newest().Version == kept[0].Version {
			t.versions += n
			return p, nil
		}
		// A version is pushed out in the middle of being read, or the newest is damaged.
		now, err := store.Heading(ctx, state.Head)
		if err != nil {
			return p, err
		}
		if now.Version == kept[0].Version || try == tries {
			return t.earlier(ctx, store, model, p, kept)
		}
		t.left = left
	}
}

// withoutLost returns the versions that are not lost, and notes those of the lost that would else be
// in the backup.
func (t *taking) withoutLost(model string, all []state.VersionInfo) (kept []state.VersionInfo) {
	var l lost
	for i := range all {
		switch v := &all[i]; {
		case !v.Lost:
			kept = append(kept, *v)
		case v.Pinned:
			l.versions, l.pinned = append(l.versions, v.Version), v.Version
		case t.all:
			l.versions = append(l.versions, v.Version)
		}
	}
	slices.Sort(l.versions)
	t.lost[model] = l
	return kept
}

// earlier adds the newest version that is whole, where the newest of all is not.
func (t *taking) earlier(ctx context.Context, store state.Store, model string, p Partition,
	kept []state.VersionInfo) (Partition, error) {
	for _, info := range kept[1:] {
		if n := len(p.Versions); n > 0 && p.newest().Version >= info.Version {
			break
		}
		v, err := t.version(ctx, store, model, info)
		if err == nil {
			p.Versions = append(p.Versions, v)
			break
		}
		if !errors.Is(err, state.ErrCorrupt) && !errors.Is(err, state.ErrNone) {
			return p, err
		}
	}
	if len(p.Versions) == 0 {
		return p, fmt.Errorf("model %s: no version is whole: %w", model, errors.Join(t.left...))
	}
	t.versions += len(p.Versions)
	return p, nil
}

func (t *taking) version(ctx context.Context, store state.Store, model string, info state.VersionInfo) (
	Version, error) {
	t.show(fmt.Sprintf("%s, version %d", model, info.Version))
	c, err := store.LoadVersion(ctx, info.Version)
	if err != nil {
		return Version{}, err
	}
	m, chunks := state.Split(c)
	for i := range chunks {
		written, err := t.to.writeChunk(&chunks[i])
		if err != nil {
			return Version{}, err
		}
		t.chunks++
		if written {
			t.written++
			t.bytes += int64(len(chunks[i].Data))
		}
	}
	return describe(info.Version, info.Replaced, m)
}
