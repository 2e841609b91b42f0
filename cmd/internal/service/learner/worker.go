package learner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/wire"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/predictions"
)

// Schema is the version of the layout of a checkpoint's model bytes.
const Schema = 1

// A worker holds the model and learns the log's records: it is the follower's handler. One
// goroutine uses it. phase.go says what it is at the moment, taking.go how that changes.
type worker struct {
	l   *Learner
	log *slog.Logger

	phase phase
	lease state.Lease // of phase taking, active and leaving: what is saved carries its epoch

	// Of a standby; see taking.go.
	followed lineage       // whose saves are this model's own
	judged   state.Heading // the save that was judged last; zero: none was
	awaits   int64         // the saved model's position; 0: nothing is saved
	overdue  deadline      // for coming to awaits
	again    time.Time     // no attempt to acquire the lease before this time
	waiting  bool          // the last attempt did not reach the store, which was logged
	adopts   *model.Config // what the model adopts once this learner is active; nil: nothing
	backTo   int64         // the version that it stepped back to because the log has lost records; 0: it has not
	damaged  int64         // the version at the head that was found damaged; 0: none was
	looks    time.Time     // no look for whether it still is before this time
	backlog  backlog

	model    *model.Model
	position state.Position // the records that model has absorbed
	known    bool           // position is from a checkpoint or a record, not the log's beginning

	confirm func(context.Context) error // the follower's check that all records that model has absorbed are of one log

	// For saving.go. unsaved: model differs from the copy that was taken last, or that
	// copy was not saved, or the store lost it.
	unsaved      bool
	running      *saving   // the save that has not been settled; nil: none
	size         int       // bytes of the model as it was saved last
	debt         float64   // bytes that saves wrote beyond what SaveBytes allows
	owed         time.Time // when debt was so
	lastSave     time.Time // when the last save began; before it, of the first batch
	quietSince   time.Time // when the last record was applied
	sinceCopy    time.Time // when the first record after the last copy was applied; zero: none was
	unsavedSince time.Time // when the first record after the last save was applied; zero: none was
	failing      bool      // the last save failed, which was logged

	// What must be acknowledged before the next save. On a standby, what came of the last
	// record, until withhold takes it.
	outbox    outbox
	letters   letters                  // empty after each batch
	predicted []predictions.Prediction // fewer than maxPredicted after each turn
	learnt    int64                    // the offset after the last record
	moved     bool                     // learnt has changed since it was published
	withheld  []unpublished            // alerts and labels of a standby

	status  Status
	doubts  doubtLog
	refused int // dead letters since the model was loaded

	ahead    ahead
	incoming []incoming // scratch

	// after is the SHA-256 of the model after the last withdrawal, and afterApplied is what
	// applied was then. If the next record is a withdrawal too, it does not hash the model again.
	after        string
	afterApplied int
	applied      int // records, since the model was loaded
}

// An incoming is a decoded record.
type incoming struct {
	example.Incoming
	err      error
	identity string // of the message, if somebody wants to know
}

// Position implements follow.Handler.
func (w *worker) Position(confirm func(context.Context) error) (int64, bool) {
	w.confirm = confirm
	return w.position.Next, w.known
}

// Follows implements follow.Handler.
func (w *worker) Follows(last stream.Record) bool {
	return follow.Absorbed(w.position, &last)
}

// Handle implements follow.Handler: it applies a batch in order.
func (w *worker) Handle(ctx context.Context, batch []stream.Record, end int64) error {
	return w.orGone(w.handle(ctx, batch, end))
}

// Idle implements follow.Handler.
func (w *worker) Idle(ctx context.Context) error { return w.orGone(w.turn(ctx, true)) }

// orGone removes the model from the status and the metrics after an error. The follower then
// drops the worker without Close. After follow.ErrReload the learner keeps its lease, because it
// loads the model again.
func (w *worker) orGone(err error) error {
	if err != nil {
		w.abandon()
		if !errors.Is(err, follow.ErrReload) {
			w.l.release()
		}
		w.l.dropStatus()
	}
	return err
}

func (w *worker) handle(ctx context.Context, batch []stream.Record, end int64) error {
	if w.lastSave.IsZero() {
		w.lastSave = time.Now()
	}
	// Before the first record: a learner that has just loaded the model keeps nothing.
	if err := w.changePhase(ctx); err != nil {
		return err
	}
	w.incoming = slices.Grow(w.incoming[:0], len(batch))[:len(batch)]
	var failed error
	w.ahead.each(w.model, len(batch), func(i int) *model.Body {
		w.incoming[i] = read(&batch[i], w.l.cfg.Answered != nil)
		return w.incoming[i].body()
	}, func(i int) {
		if failed == nil {
			failed = w.absorb(&batch[i], &w.incoming[i])
		}
	})
	if failed != nil {
		return failed
	}
	w.status.End = end
	w.publishStatus()
	if w.phase.holds() {
		if err := w.publishLetters(ctx); err != nil {
			return err
		}
	}
	return w.turn(ctx, false)
}

// absorb applies one record and moves the position. A record that makes the model panic is set
// aside. The error then makes the follower load the model again.
func (w *worker) absorb(r *stream.Record, in *incoming) error {
	w.l.turnedNow()
	if err := w.apply(r, in); err != nil {
		return err
	}
	w.position, w.known = follow.Advance(w.position, r), true
	w.noteUnsaved(time.Now)
	if !w.phase.holds() {
		w.withhold()
	}
	return nil
}

// turn changes the phase if it is time. The active learner publishes alerts and many
// predictions, and saves if it is time. quiet: there was no record.
func (w *worker) turn(ctx context.Context, quiet bool) error {
	w.l.turnedNow()
	was := w.phase
	if err := w.changePhase(ctx); err != nil {
		return err
	}
	if w.phase.holds() {
		if err := w.work(ctx, quiet); err != nil {
			return err
		}
	}
	if quiet || w.phase != was {
		w.publishStatus()
	}
	return nil
}

// work is what the active learner does between records.
func (w *worker) work(ctx context.Context, quiet bool) error {
	if len(w.predicted) >= maxPredicted {
		if err := w.publishPredictions(ctx); err != nil {
			return err
		}
	}
	w.l.blocked.Store(w.outbox.state() == outboxFull)
	tried, err := w.outbox.publish(ctx)
	w.l.blocked.Store(false)
	if err != nil {
		return err
	}
	if tried {
		w.publishStatus()
	}
	if err := w.saveIfDue(ctx, quiet); errors.Is(err, state.ErrStale) {
		return w.lost(ctx, err)
	} else if err != nil {
		return err
	}
	if quiet {
		w.forget()
	}
	return nil
}

// Close implements follow.Handler: the active learner publishes and saves, trying until ctx
// ends, and frees the lease.
func (w *worker) Close(ctx context.Context) error {
	defer w.l.dropStatus()
	defer w.abandon()
	if w.phase != active {
		return nil
	}
	w.phase = leaving
	err := w.finish(ctx)
	w.l.release()
	return err
}

// finish publishes and saves, trying until ctx ends.
func (w *worker) finish(ctx context.Context) error {
	if err := w.publishLetters(ctx); err != nil {
		return err
	}
	if err := w.publishPredictions(ctx); err != nil {
		return err
	}
	if err := w.outbox.flush(ctx); err != nil {
		return w.unsavedError(err)
	}
	err := w.saveAtEnd(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, state.ErrStale):
		w.log.Warn("another learner is active: nothing was saved, and nothing is lost", "error", err)
		return nil
	}
	return w.unsavedError(err)
}

func (w *worker) unsavedError(err error) error {
	return fmt.Errorf("the events learnt since offset %d were not saved and will be learnt again: %w",
		w.status.SavedEnd, err)
}

// body returns the body that a model will read, nil without one.
func (in *incoming) body() *model.Body {
	if in.err != nil || in.Standing != nil {
		return nil
	}
	return &in.Example.Body
}

func read(r *stream.Record, identify bool) (in incoming) {
	in.Incoming, in.err = example.Read(r.Headers, r.Value)
	if identify && in.err == nil && in.Standing == nil {
		in.identity = in.Example.Identity
		if in.Example.Action == model.Correct {
			in.identity = in.Example.Of
		}
	}
	return in
}

// apply applies one record and counts its outcome. The caller moves the position. An error means
// that the model must be loaded again.
func (w *worker) apply(r *stream.Record, in *incoming) error {
	applied := Applied{Offset: r.Offset, Event: &in.Event, Raw: in.Parsing.Raw}
	err := in.err
	switch {
	case err != nil:
	case in.Standing != nil:
		if err = example.Follow(w.model, in.Standing); err == nil {
			applied.Outcome = Followed
		}
	default:
		applied.Effect, err = w.applyEvent(r, in)
	}
	w.l.defects.Note(w.log, err, "offset", r.Offset)
	var panicked *model.PanicError
	switch {
	case errors.As(err, &panicked):
		return w.setAside(r, panicked)
	case err != nil:
		applied.Outcome, applied.Reason = DeadLettered, strings.ReplaceAll(err.Error(), "\n", "; ")
		if w.l.shadow() {
			break
		}
		w.letters.dead = append(w.letters.dead, w.deadLetter(r, applied.Reason))
		if w.refused++; w.refused <= 10 || w.refused%1000 == 0 { // a bad feed must not fill the log
			reason := applied.Reason[:min(len(applied.Reason), 200)] // the letter has all of it
			w.log.Warn("dead letter",
				append(stream.RecordTrace(r.Headers).LogAttrs(), "offset", r.Offset, "reason", reason, "so_far", w.refused)...)
		}
	case applied.Effect.Duplicate:
		applied.Outcome = Duplicate
	case applied.Effect.LeftOut:
		applied.Outcome = LeftOut
	case applied.Effect.Unassumed:
		applied.Outcome = Unassumed
	case in.Event.Action == stream.Assume:
		applied.Outcome = Assumed
	case applied.Effect.Receipt != nil:
		applied.Outcome = withdrawalOutcome(in.Event.Action, applied.Effect.Receipt.Outcome)
	}
	w.applied++
	w.predict(&applied)
	first, unseen := w.l.firstTime(r.Offset, w.phase.holds())
	w.announce(&applied.Effect, first)
	if first {
		w.handOn(r, in, &applied)
	}
	if !unseen {
		return nil
	}
	if applied.Outcome == Followed {
		w.log.Info("an operator has given a source a role", "source", in.Standing.Source, "role", in.Standing.Role.String(),
			"event", w.model.Events(), "offset", r.Offset)
	}
	if w.l.cfg.Observe != nil {
		w.l.cfg.Observe(applied)
	}
	return nil
}

// setAside sets aside the event of a record that makes the model panic, and returns
// follow.ErrReload: the model is loaded as it was saved, without the damage. Then the event is a
// dead letter. Every learner and every replay by this program decides the same. Other programs
// read the decision in the configuration of each checkpoint.
func (w *worker) setAside(r *stream.Record, p *model.PanicError) error {
	if slices.Contains(w.l.aside, p.Key) {
		return fmt.Errorf("offset %d: the event was set aside and is learnt all the same: %w", r.Offset, p)
	}
	w.l.aside = append(w.l.aside, p.Key)
	w.log.Error("the model panicked while it learnt an event, which is set aside",
		"offset", r.Offset, "key", p.Key, "reason", p.Error())
	return fmt.Errorf("%w: the model is loaded again without the event at offset %d", follow.ErrReload, r.Offset)
}

// handOn counts a record and hands on its label. A standby keeps the label.
func (w *worker) handOn(r *stream.Record, in *incoming, applied *Applied) {
	holds := w.phase.holds()
	if holds {
		w.l.cfg.Metrics.applied(applied)
	}
	if trace := stream.RecordTrace(r.Headers); trace != "" && holds {
		w.log.Debug("applied", "trace", trace.ID(), "offset", r.Offset, "outcome", applied.Outcome.String())
	}
	switch label, ok := given(w.model, r, in, applied); {
	case !ok:
	case !holds:
		w.withheld = append(w.withheld, unpublished{label: &label})
	default:
		w.l.cfg.Answered.Labelled(label.entry())
	}
	if applied.Outcome.Taught() && holds && !w.l.silent() {
		w.doubts.note(w.log, time.Now(), applied.Event.Source, applied.Effect.Phi)
	}
}

func withdrawalOutcome(action stream.Action, o model.Outcome) Outcome {
	switch {
	case action == stream.Relearn:
		return Relearned
	case action == stream.Unlearn:
		return Unlearned
	case o == model.Replaced || o == model.Outweighed:
		return Corrected
	}
	return Uncorrected
}

// applyEvent applies an event. A withdrawal or a correction gets a receipt. The receipt of a
// correction has no SHA-256s of the model: users correct often, and to hash a model costs as
// much as to save it. A shadow writes no receipts.
func (w *worker) applyEvent(r *stream.Record, in *incoming) (model.Effect, error) {
	if w.l.shadow() {
		return w.model.Attempt(&in.Example)
	}
	hashed := in.Example.Action == model.Relearn || in.Example.Action == model.Unlearn
	var before string
	if hashed && w.after != "" && w.afterApplied == w.applied {
		before = w.after
	} else if hashed {
		var err error
		if before, err = w.modelSHA256(); err != nil {
			return model.Effect{}, err
		}
	}
	effect, err := w.model.Attempt(&in.Example)
	if err != nil || effect.Receipt == nil {
		return effect, err
	}
	receipt := withdrawalReceipt(&in.Event, &effect)
	receipt.Model, receipt.Offset, receipt.Event = w.l.cfg.Name, r.Offset, w.model.Events()
	if hashed {
		receipt.Before = before
		if receipt.After, err = w.modelSHA256(); err != nil {
			return effect, err
		}
		w.after, w.afterApplied = receipt.After, w.applied+1 // of this record
	}
	return effect, w.addReceipt(&receipt, stream.RecordTrace(r.Headers))
}

// announce takes over an event's changes of alarms and its rebuilds. They are logged
// and counted if this process has not handed them on before, and published in
// any case: an earlier process may have died before it published. The alarms of a shadow that is
// not promoted are dropped.
func (w *worker) announce(effect *model.Effect, first bool) {
	alerts := effect.Alerts
	if w.l.silent() {
		alerts = nil
	}
	for i := range alerts {
		a := wire.Alert(&alerts[i])
		a.Model = w.l.cfg.Name
		if !w.phase.holds() {
			w.withheld = append(w.withheld, unpublished{alert: &a, said: !first})
			continue
		}
		w.outbox.add(a)
		if first {
			w.l.cfg.Announce(&a)
			w.l.cfg.Metrics.alert(&a)
		}
	}
	if !first || !w.phase.holds() {
		return
	}
	for i := range effect.Rebuilds {
		b := &effect.Rebuilds[i]
		w.l.cfg.Metrics.rebuilt(b)
		if b.Err != nil {
			w.log.Warn("rebuild failed: the ensemble before it goes on", "ensemble", b.Ensemble, "body", b.Body,
				"started", b.Started, "rows", b.Rows, "reason", b.Err)
		} else {
			w.log.Debug("rebuilt", "ensemble", b.Ensemble, "body", b.Body, "started", b.Started, "rows", b.Rows)
		}
	}
}

// turnedNow notes when the worker's loop went round last.
func (l *Learner) turnedNow() {
	now := time.Now()
	l.turned.Store(&now)
}

func (w *worker) publishStatus() {
	s := &w.status
	s.Active, s.Awaits, s.Backlog = w.phase.holds(), w.awaits, w.backlog.len()
	s.Holder = ""
	if s.Active {
		s.Holder = shown(w.lease.Writer)
	} else if seen := w.l.watch.sight(); !seen.lapsed {
		s.Holder = shown(seen.lease.Writer)
	}
	s.Next, s.Events, s.Epsilon = w.position.Next, w.model.Events(), w.model.Epsilon()
	s.Alarms, s.Reading, s.WindowBytes = w.model.Alarms(), w.model.Diagnosis(), w.model.WindowBytes()
	s.Gates = w.model.Gates()
	s.PendingAlerts = len(w.outbox.pending)
	w.l.setStatus(*s)
}
