package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/process/wholefile"
	"hamlet/state"
	"hamlet/stream"
)

const (
	retainEvery = 15 * time.Minute
	verifyEvery = 24 * time.Hour

	// segments is into how many parts of the retention a log is divided at least: a record is
	// deleted that much of the retention later at the latest.
	segments = 20
)

// Tend deletes what is older than the logs' retention, and reads closed segments through once a day,
// until ctx ends. While the time is doubted nothing is old: see doubts.
func (d *Dir) Tend(ctx context.Context) {
	verified := time.Now()
	began, doubts := verified, &doubts{path: filepath.Join(d.path, lookedName), log: d.cfg.Log}
	retain := func() {
		now := time.Now()
		d.retain(ctx, doubts.believed(now.Round(0), now.Sub(began)))
	}
	retain()
	clock.Every(ctx, retainEvery, func() {
		retain()
		if time.Since(verified) > verifyEvery {
			verified = time.Now()
			d.verify(ctx)
		}
	})
}

// names returns the names of the logs that are there.
func (d *Dir) names() (names []string, err error) {
	entries, err := os.ReadDir(d.folder(""))
	for _, e := range entries {
		if e.IsDir() && checkName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// retain deletes what is too old, or more than Config.MaxBytes. At the zero time nothing is too old.
func (d *Dir) retain(ctx context.Context, now time.Time) {
	names, err := d.names()
	if err != nil {
		d.cfg.Log.Error("retention", "error", err)
	}
	for _, name := range names {
		if err := d.retainLog(ctx, name, now); err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("old records could not be deleted", "log", name, "error", err)
		}
	}
}

func (d *Dir) retainLog(ctx context.Context, name string, now time.Time) error {
	keep, _, err := d.Retention(ctx, name)
	if err != nil {
		return err
	}
	if now.IsZero() {
		keep = 0
	}
	before := time.Time{}
	if keep > 0 {
		before = now.Add(-keep)
	} else if d.cfg.MaxBytes <= 0 {
		return nil
	}
	l, err := d.log(name)
	if err != nil {
		return err
	}
	var rolled error // a full disk, which what is deleted may mend
	if keep > 0 {
		rolled = l.Roll(ctx, now.Add(-keep/segments))
	}
	was, err := l.Bounds(ctx)
	if err != nil {
		return err
	}
	upTo := was.End
	learnt, oldest, isEvents, err := d.learnt(ctx, name)
	if err != nil {
		return err
	}
	if isEvents { // what no model has learnt stays
		upTo = learnt
	}
	first, err := l.Retain(before, d.cfg.MaxBytes, upTo)
	if err == nil && first > was.First {
		d.cfg.Log.Info("old records are deleted", "log", name, "up_to_offset", first-1, "retention", keep)
		if isEvents && oldest < first {
			d.cfg.Log.Warn("the log has not all that a kept version needs to go on from: that version can still answer, "+
				"but not be learnt on from", "log", name, "needs_offset", oldest, "log_begins_at", first)
		}
	}
	return errors.Join(err, rolled)
}

// learnt returns how far the model of an events log has learnt it, and how far the oldest of its kept
// versions has. Without a model both are 0.
func (d *Dir) learnt(ctx context.Context, name string) (next, oldest int64, isEvents bool, err error) {
	model, isEvents := strings.CutPrefix(name, stream.EventsTopic(""))
	if !isEvents {
		return 0, 0, false, nil
	}
	d.mu.Lock()
	learnt := d.learntBy[model]
	d.mu.Unlock()
	store, err := learnt, error(nil)
	if store == nil {
		store, err = d.Store(model)
	}
	if err != nil {
		return 0, 0, true, nil // no model has such a name
	}
	versions, err := store.Versions(ctx)
	if errors.Is(err, state.ErrNone) {
		return 0, 0, true, nil
	}
	versions = slices.DeleteFunc(versions, func(v state.VersionInfo) bool { return v.Lost })
	if err != nil || len(versions) == 0 {
		return 0, 0, true, err
	}
	return versions[0].Position.Next, versions[len(versions)-1].Position.Next, true, nil
}

// verify reads all logs through.
func (d *Dir) verify(ctx context.Context) {
	names, err := d.names()
	if err != nil {
		d.cfg.Log.Error("read the logs through", "error", err)
	}
	for _, name := range names {
		l, err := d.log(name)
		if err != nil {
			d.cfg.Log.Error("a log cannot be opened", "log", name, "error", err)
			continue
		}
		damaged, err := l.Verify(ctx)
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.Error("a log could not be read through", "log", name, "error", err)
		}
		for _, bad := range damaged {
			d.cfg.Log.Error("damage was found when the log was read through", "log", name, "error", bad)
		}
	}
}

const retentionName = "retention"

// Retention implements [stream.Logs].
func (d *Dir) Retention(_ context.Context, name string) (keep time.Duration, bounded bool, err error) {
	if err := checkName(name); err != nil {
		return 0, false, err
	}
	d.mu.Lock()
	keep, unsaid := d.keeps[name]
	d.mu.Unlock()
	if unsaid {
		return keep, d.cfg.MaxBytes > 0, nil
	}
	b, err := os.ReadFile(filepath.Join(d.folder(name), retentionName))
	if errors.Is(err, fs.ErrNotExist) {
		return DefaultRetention, d.cfg.MaxBytes > 0, nil
	}
	if err == nil {
		keep, err = time.ParseDuration(string(bytes.TrimSpace(b)))
	}
	if err != nil {
		return 0, false, fmt.Errorf("retention of log %s: %w", name, err)
	}
	return keep, d.cfg.MaxBytes > 0, nil
}

// setRetention writes how long a log keeps a record.
func (d *Dir) setRetention(name string, keep time.Duration) error {
	text := []byte(max(keep, -time.Second).String() + "\n")
	path := filepath.Join(d.folder(name), retentionName)
	if b, err := os.ReadFile(path); err == nil && bytes.Equal(b, text) {
		return nil
	}
	return wholefile.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
