package learner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/stream"
)

// StepBack implements follow.Handler. The log ends before the saved model's position, or holds
// other records there: a power failure took its end, or it was restored from a backup. The
// learner goes on from the newest kept version that the log still has, and saves from there
// under an epoch of its own. Without such a version it returns an error that says what to do.
func (w *worker) StepBack(ctx context.Context, bounds stream.Bounds, why error, at follow.RecordAt) error {
	store := w.l.cfg.Store
	var versions []state.VersionInfo
	err := retry(ctx, w.log, "list the kept versions", func() (err error) {
		versions, err = store.Versions(ctx)
		return err
	})
	if err != nil && !errors.Is(err, state.ErrNone) {
		return err
	}
	before := w.position.Next
	events := w.model.Events()
	for i := range versions {
		v := &versions[i]
		p := v.Position
		if v.Lost || p.Next >= before || p.Next <= bounds.First || p.Next > bounds.End {
			continue
		}
		last, ok, err := at(ctx, p.Next-1)
		if err != nil {
			return err
		}
		if !ok || !follow.Absorbed(p, &last) {
			continue
		}
		from := origin{version: v.Version}
		err = retry(ctx, w.log, "load an older version", func() (err error) {
			from.head, err = store.LoadVersion(ctx, v.Version)
			return err
		})
		if err == nil {
			err = w.l.restoreInto(&from)
		}
		if err != nil {
			w.log.Warn("a version that the log still has cannot be used: trying the one before",
				"version", v.Version, "error", err)
			continue
		}
		w.backlog = backlog{}
		w.unsaved, w.sinceCopy, w.unsavedSince = false, time.Time{}, time.Time{}
		w.begin(from)
		w.l.steppedBack(p.Next)
		w.awaits, w.backTo = 0, v.Version
		if w.status.LostRecords = before - bounds.End; w.status.LostRecords <= 0 { // other records stand in their place
			w.status.LostRecords = before - p.Next
		}
		w.log.Error("the log has lost records that the saved model had learnt: going on from an older version",
			"reason", why, "log_ends_at", bounds.End, "saved_next_offset", before, "lost_records", w.status.LostRecords,
			"version", v.Version,
			"labels_lost_at_most", events-w.model.Events(), "given_since", v.Saved.Format(time.RFC3339))
		if v.Replaced {
			w.log.Error("that version was replaced by another model, whose versions the log does not have: "+
				"what that was made without is learnt again", "version", v.Version)
		}
		return nil
	}
	return fmt.Errorf("no kept version of the model follows from this log: " +
		"restore the log or the model from a backup of one time, " +
		"or name another model, which learns this log from its beginning")
}
