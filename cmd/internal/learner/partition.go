package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/convert"
	"hamlet/cmd/internal/example"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/predictions"
)

// schema is the version of the layout of a checkpoint's model bytes.
const schema = 1

// A partitionModel is one partition's model as a kafka.Handler. One goroutine uses it.
type partitionModel struct {
	l         *Learner
	partition int
	log       *slog.Logger
	epoch     int64 // the last that this learner took; what is saved carries it

	// lost: the store lost the epoch, and no reply has given a newer one. A Take whose reply
	// was lost may have raised it, so the next save takes the partition again first.
	lost bool

	model    *model.Model
	position state.Position // the records that model has absorbed
	known    bool           // position is from a checkpoint or a record, not the log's beginning

	confirm func(context.Context) error // the consumer's: is all that model has absorbed one log?

	// For saving.go. unsaved: model differs from the copy that was taken last, or that
	// copy was not saved, or the store lost it.
	unsaved      bool
	running      *saving   // the save that has not been settled; nil: none
	saveBytes    []byte    // the copy; running reads it
	lastSave     time.Time // when the last save began; before it, of the first batch
	sinceCopy    time.Time // when the first record after the last copy was applied; zero: none was
	unsavedSince time.Time // when the first record after the last save was applied; zero: none was
	failing      bool      // the last save failed, which was logged

	// What must be acknowledged before the next save.
	outbox    outbox
	letters   []kafka.Record           // dead letters and receipts; empty after each batch
	predicted []predictions.Prediction // fewer than maxPredicted after each turn
	learnt    map[int]int64            // by partition of the events topic: one behind the last record
	moved     bool                     // learnt is not published

	status  Status
	doubts  doubtLog
	refused int // dead letters since the partition was taken

	ahead    ahead
	incoming []incoming // scratch
	bytes    []byte     // scratch of modelSHA256

	// after is the SHA-256 of the model behind the last withdrawal, when applied was
	// afterApplied: the next record need not hash the model again.
	after        string
	afterApplied int
	applied      int // records, since the partition was taken

	// Of an ordered model. standby: nothing is published; what is not letters is withheld.
	standby  bool
	withheld []kept

	// place returns what a checkpoint says of several partitions; nil: the model has one.
	place func() ([]byte, error)
	order []byte // what place returned for the checkpoint that was loaded
}

// An incoming is a decoded record.
type incoming struct {
	event    stream.Event
	standing *stream.Standing // nil: an event
	example  model.Example
	raw      bool
	err      error

	identity string // of a mail, if somebody wants to know
}

func (p *partitionModel) Position(confirm func(context.Context) error) (int64, bool) {
	p.confirm = confirm
	return p.position.Next, p.known
}

func (p *partitionModel) Follows(last kafka.Record) bool {
	return p.position.Follows(last.Key, last.Value, chained(last.Headers)...)
}

// Handle implements kafka.Handler: it applies a batch in order, publishes its dead
// letters, and saves if it is time.
func (p *partitionModel) Handle(ctx context.Context, batch []kafka.Record) error {
	return p.orGone(p.handle(ctx, batch))
}

func (p *partitionModel) Idle(ctx context.Context) error { return p.orGone(p.turn(ctx, true)) }

// orGone removes the partition from the status and the metrics after an error. The
// consumer then drops the handler without Close.
func (p *partitionModel) orGone(err error) error {
	if err != nil {
		p.abandon()
		p.l.dropStatus(p.partition)
	}
	return err
}

func (p *partitionModel) handle(ctx context.Context, batch []kafka.Record) error {
	if p.lastSave.IsZero() {
		p.lastSave = time.Now()
	}
	p.incoming = slices.Grow(p.incoming[:0], len(batch))[:len(batch)]
	p.ahead.each(p.model, len(batch), func(i int) *model.Body {
		p.incoming[i] = read(&batch[i], p.l.cfg.Answered != nil)
		return p.incoming[i].body()
	}, func(i int) {
		r := &batch[i]
		p.apply(r, &p.incoming[i])
		p.position, p.known = p.position.Advance(r.Offset, r.Key, r.Value, chained(r.Headers)...), true
	})
	p.status.End = batch[len(batch)-1].HighWatermark
	p.publishStatus()
	if err := p.publishLetters(ctx); err != nil {
		return err
	}
	return p.turn(ctx, false)
}

// turn publishes alerts and many predictions, and saves if it is time. quiet: there was no record.
func (p *partitionModel) turn(ctx context.Context, quiet bool) error {
	if len(p.predicted) >= maxPredicted {
		if err := p.publishPredictions(ctx); err != nil {
			return err
		}
	}
	if tried, err := p.outbox.publish(ctx); err != nil {
		return err
	} else if tried {
		p.publishStatus()
	}
	return p.saveIfDue(ctx, quiet)
}

// Close implements kafka.Handler: it publishes and saves, trying until ctx ends.
func (p *partitionModel) Close(ctx context.Context) error {
	defer p.l.dropStatus(p.partition)
	defer p.abandon()
	return p.finish(ctx)
}

// finish publishes and saves, trying until ctx ends.
func (p *partitionModel) finish(ctx context.Context) error {
	if err := p.publishLetters(ctx); err != nil {
		return err
	}
	if err := p.publishPredictions(ctx); err != nil {
		return err
	}
	if err := p.outbox.flush(ctx); err != nil {
		return p.unsavedError(err)
	}
	err := p.saveAtEnd(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, state.ErrStale):
		p.log.Warn("another learner holds the partition: nothing was saved, and nothing is lost", "error", err)
		return nil
	}
	return p.unsavedError(err)
}

func (p *partitionModel) unsavedError(err error) error {
	return fmt.Errorf("the events learnt since offset %d were not saved and will be learnt again: %w", p.status.SavedEnd, err)
}

// body returns the body that a model will read, nil without one.
func (in *incoming) body() *model.Body {
	if in.err != nil || in.standing != nil {
		return nil
	}
	return &in.example.Body
}

// decode reads a batch's records into dst, which is as long, on all processors.
func decode(dst []incoming, batch []kafka.Record, identify bool) {
	const grain = 16 // records that are worth a goroutine
	workers := min(runtime.GOMAXPROCS(0), (len(batch)+grain-1)/grain)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(batch); i += workers {
				dst[i] = read(&batch[i], identify)
			}
		})
	}
	wg.Wait()
}

func read(r *kafka.Record, identify bool) (in incoming) {
	if stream.IsStanding(r.Headers) {
		var s stream.Standing
		s, in.err = stream.DecodeStandingRecord(r.Headers, r.Value)
		in.standing = &s
		return in
	}
	in.event, in.err = stream.DecodeRecord(r.Headers, r.Value)
	if in.err != nil {
		return in
	}
	var parsing example.Parsing
	in.example, parsing, in.err = example.Of(&in.event)
	in.raw = parsing.Raw
	if identify && parsing.Mail != nil {
		in.identity = in.example.Identity
		if in.example.Action == model.Correct {
			in.identity = in.example.Of
		}
	}
	return in
}

// apply applies one record and counts its outcome. The caller moves the position.
func (p *partitionModel) apply(r *kafka.Record, in *incoming) {
	applied := Applied{Partition: r.Partition, Offset: r.Offset, Event: &in.event, Raw: in.raw}
	err := in.err
	switch {
	case err != nil:
	case in.standing != nil:
		if err = example.Follow(p.model, in.standing); err == nil {
			applied.Outcome = Followed
		}
	default:
		applied.Truth = truth(r, in.event.Label)
		applied.Effect, err = p.applyEvent(r, in)
	}
	switch {
	case err != nil:
		applied.Outcome, applied.Reason = DeadLettered, strings.ReplaceAll(err.Error(), "\n", "; ")
		if p.l.shadow() {
			break
		}
		p.letters = append(p.letters, deadLetter(r, applied.Reason))
		if p.refused++; p.refused <= 10 || p.refused%1000 == 0 { // a bad feed must not fill the log
			reason := applied.Reason[:min(len(applied.Reason), 200)] // the letter has all of it
			p.log.Warn("dead letter", append(stream.RecordTrace(r.Headers).LogAttrs(), "offset", r.Offset, "reason", reason, "so_far", p.refused)...)
		}
	case applied.Effect.Duplicate:
		applied.Outcome = Duplicate
	case applied.Effect.LeftOut:
		applied.Outcome = LeftOut
	case applied.Effect.Unassumed:
		applied.Outcome = Unassumed
	case in.event.Action == stream.Assume:
		applied.Outcome = Assumed
	case applied.Effect.Receipt != nil:
		applied.Outcome = withdrawalOutcome(in.event.Action, applied.Effect.Receipt.Outcome)
	}
	p.applied++
	p.predict(&applied)
	p.noteUnsaved(time.Now)
	first, unseen := p.l.firstTime(r.Partition, r.Offset, p.standby)
	p.announce(&applied.Effect, first)
	if first {
		p.handOn(r, in, &applied)
	}
	if !unseen {
		return
	}
	if applied.Outcome == Followed {
		p.log.Info("an operator has given a source a role", "source", in.standing.Source, "role", in.standing.Role.String(),
			"event", p.model.Events(), "offset", r.Offset)
	}
	if p.l.cfg.Observe != nil {
		p.l.cfg.Observe(applied)
	}
}

// handOn counts a record and hands on its label. A standby keeps the label.
func (p *partitionModel) handOn(r *kafka.Record, in *incoming, applied *Applied) {
	if !p.standby {
		p.l.cfg.Metrics.applied(applied)
	}
	if trace := stream.RecordTrace(r.Headers); trace != "" && !p.standby {
		p.log.Debug("applied", "trace", trace.ID(), "offset", r.Offset, "outcome", applied.Outcome.String())
	}
	if applied.Outcome.Taught() {
		switch label := (givenLabel{in.identity, in.event.Source, in.event.Label, r.Time}); {
		case in.identity == "":
		case p.standby:
			p.withheld = append(p.withheld, kept{label: &label})
		default:
			p.l.cfg.Answered.Labelled(label.identity, label.source, label.label, label.at)
		}
		if !p.standby && !p.l.silent() {
			p.doubts.note(p.log, time.Now(), applied.Event.Source, applied.Effect.Phi)
		}
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

// applyEvent applies an event. A withdrawal or a correction gets a receipt. That of a
// correction has no SHA-256s of the model: users correct often, and a hash of a model costs
// as much as a save. A shadow writes no receipts.
func (p *partitionModel) applyEvent(r *kafka.Record, in *incoming) (model.Effect, error) {
	if p.l.shadow() {
		return p.model.Apply(&in.example)
	}
	hashed := in.example.Action == model.Relearn || in.example.Action == model.Unlearn
	var before string
	if hashed && p.after != "" && p.afterApplied == p.applied {
		before = p.after
	} else if hashed {
		var err error
		if before, err = p.modelSHA256(); err != nil {
			return model.Effect{}, err
		}
	}
	effect, err := p.model.Apply(&in.example)
	if err != nil || effect.Receipt == nil {
		return effect, err
	}
	receipt := withdrawalReceipt(&in.event, &effect)
	receipt.Model, receipt.Partition, receipt.Offset, receipt.Event = p.l.cfg.Name, r.Partition, r.Offset, p.model.Events()
	if hashed {
		receipt.Before = before
		if receipt.After, err = p.modelSHA256(); err != nil {
			return effect, err
		}
		p.after, p.afterApplied = receipt.After, p.applied+1 // of this record
	}
	return effect, p.addReceipt(&receipt, stream.RecordTrace(r.Headers))
}

// announce takes over an event's changes of alarms and its rebuilds. They are logged
// and counted if this process has not handed them on before, and published in
// any case: an earlier process may have died before it published. Nobody hears the alarms of a
// shadow that is not promoted.
func (p *partitionModel) announce(effect *model.Effect, first bool) {
	alerts := effect.Alerts
	if p.l.silent() {
		alerts = nil
	}
	for i := range alerts {
		a := convert.Alert(&alerts[i])
		a.Model, a.Partition = p.l.cfg.Name, p.partition
		if p.standby {
			p.withheld = append(p.withheld, kept{alert: &a, said: !first})
			continue
		}
		p.outbox.add(a)
		if first {
			p.l.cfg.Announce(&a)
			p.l.cfg.Metrics.alert(&a)
		}
	}
	if !first || p.standby {
		return
	}
	for i := range effect.Rebuilds {
		b := &effect.Rebuilds[i]
		p.l.cfg.Metrics.rebuilt(b)
		if b.Err != nil {
			p.log.Warn("rebuild failed: the ensemble before it goes on", "ensemble", b.Ensemble, "body", b.Body,
				"started", b.Started, "rows", b.Rows, "reason", b.Err)
		} else {
			p.log.Debug("rebuilt", "ensemble", b.Ensemble, "body", b.Body, "started", b.Started, "rows", b.Rows)
		}
	}
}

// chained converts a record's headers for a position's chain.
func chained(headers []kafka.Header) []state.Header {
	chain := make([]state.Header, len(headers))
	for i, h := range headers {
		chain[i] = state.Header{Key: h.Key, Value: h.Value}
	}
	return chain
}

func truth(r *kafka.Record, label stream.Label) stream.Label {
	text, _ := stream.FindHeader(r.Headers, stream.HeaderTrueLabel)
	given, _ := stream.ParseLabel(text)
	return cmp.Or(given, label)
}

func (p *partitionModel) publishStatus() {
	p.status.Next, p.status.Events, p.status.Epsilon = p.position.Next, p.model.Events(), p.model.Epsilon()
	p.status.Alarms, p.status.Reading, p.status.WindowBytes = p.model.Alarms(), p.model.Diagnosis(), p.model.WindowBytes()
	p.status.Gates = p.model.Gates()
	p.status.PendingAlerts = len(p.outbox.pending)
	p.l.setStatus(p.partition, p.status)
}
