package simulate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"hamlet/cmd/internal/operate/backup"
	operate "hamlet/cmd/internal/operate/model"
	"hamlet/state"
	"hamlet/stream"
)

// isShadowed reports whether there is a second model.
func (w *World) isShadowed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shadowed
}

// shadow starts the learners of a second model, once. Half of them go on from a version of the first
// one; the others are of another configuration, and begin with the log.
func (w *World) shadow(i Incident) {
	w.mu.Lock()
	before := w.shadowed
	w.shadowed = true
	w.fromVersion = !before && random(w.plan.Seed, "shadow").IntN(2) == 0 || before && w.fromVersion
	fromVersion := w.fromVersion
	w.mu.Unlock()
	if before {
		return
	}
	again := false
	if fromVersion && !w.command(i, "shadow", func(ctx context.Context, o operator) error {
		_, c, err := operate.Load(ctx, o.store(stream.DefaultName), stream.DefaultName, 0)
		if err != nil {
			return err
		}
		if err := operate.WriteFile(w.file(), c); err != nil {
			return err
		}
		if c, err = operate.ReadFile(w.file()); err != nil {
			return err
		}
		r := backup.Restore{As: candidate, Replace: again}
		again = true
		return r.Put(ctx, o.store(candidate), c, &backup.InFile{Position: c.Position.Next})
	}) {
		w.tell("operator", "has no version for the second model: it begins with the log")
	}
	for _, name := range shadows {
		w.supervise(name, w.runShadow)
	}
	w.did(Shadow)
}

// A stopped is the store of a machine that is stopped. It implements [backup.Place].
type stopped struct{ operator }

// Store implements [backup.Place].
func (s stopped) Store(model string) (state.Store, error) { return s.store(model), nil }

// Path implements [backup.Place].
func (stopped) Path() string { return "the store" }

// restores takes a backup under traffic. Later the learners stop, the store is lost or older, and the
// log may be lost too. Then it restores the backup and starts the learners.
func (w *World) restores(i Incident) {
	w.mu.Lock()
	w.backups++
	dir := filepath.Join(w.vault.path, fmt.Sprint("backup ", w.backups)) // two may be taken at the same moment
	w.mu.Unlock()
	var taken *backup.Index
	if !w.command(i, "backup", func(ctx context.Context, o operator) (err error) {
		taken, err = backup.Take(ctx, dir, o.opener)
		return err
	}) {
		return
	}
	_ = sleep(w.ctx, i.For)
	i.N = 4 * i.N
	names := slices.Concat(learners, shadows)
	newLog := i.Kind == NewLog
	if newLog {
		names = append(names, ingests...)
	}
	select { // one operator at a time has the store to himself
	case w.restoring <- struct{}{}:
		defer func() { <-w.restoring }()
	case <-w.ctx.Done():
		return
	}
	defer w.hold(names...)()
	replace, had := false, false // had: there was a second model
	if newLog {
		_, err := os.Stat(filepath.Join(w.vault.current(), candidate))
		had = err == nil
		if err := w.loseLog(i); err != nil {
			w.violate("%v", err)
			return
		}
	} else if replace = random(w.plan.Seed, i.At.String()).IntN(3) == 0; replace {
		w.otherStore()
		if err := w.vault.setBack(time.Now().Add(-i.For - 2*time.Second)); err != nil {
			w.violate("%v", err)
		}
	} else {
		w.emptyStore()
	}
	ok := w.command(i, "restore", func(ctx context.Context, o operator) error {
		if newLog { // what was restored in part is in the way
			w.emptyStore()
		}
		c := backup.Restore{
			Folder: dir, Names: backup.Names{EventsOf: []string{candidate + "=" + stream.DefaultName}},
			Replace: replace, NewLog: newLog,
		}
		replaced := replace
		replace = !newLog
		w.mu.Lock()
		losses := w.losses
		w.mu.Unlock()
		if _, err := c.Into(ctx, stopped{o}, o.logs()); err != nil {
			return err
		}
		w.checkRestored(taken, newLog, replaced, losses)
		return nil
	})
	if ok {
		w.did(i.Kind)
	} else {
		w.tell("operator", "cannot restore the backup: the learners begin with the log")
		w.emptyStore()
	}
	if newLog {
		w.rebase(had)
	}
}

func (w *World) emptyStore() {
	w.otherStore()
	if err := w.vault.replace(""); err != nil {
		w.violate("the store cannot be emptied: %v", err)
	}
}

// loseLog puts an empty log in the place of the log.
func (w *World) loseLog(i Incident) error {
	records, err := all(&w.events)
	if err != nil {
		return err
	}
	w.lose(records)
	return w.replaceLog(i, nil)
}

// lose notes that a medium has lost records.
func (w *World) lose(records []stream.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range records {
		w.lost[identity(&records[i])] = true
	}
}

// rebase notes that the models begin with what the store has now, and with an empty log. had says whether there
// was a second model in the store that was lost.
func (w *World) rebase(had bool) {
	w.vault.mu.RLock()
	defer w.vault.mu.RUnlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bases++
	to := filepath.Join(w.vault.path, fmt.Sprint("base-", w.bases))
	if err := copyStore(to, w.vault.current()); err != nil {
		w.violations = append(w.violations, err.Error())
	}
	w.base = &Beginning{store: to, sums: w.begin.sums}
	if _, err := os.Stat(filepath.Join(to, candidate)); err != nil && had {
		w.anew = true
	}
}
