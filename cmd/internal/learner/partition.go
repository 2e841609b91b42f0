package learner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hamlet/algos/model"
	"hamlet/cmd/internal/convert"
	"hamlet/cmd/internal/example"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// schema is the version of the layout of a checkpoint's model bytes.
const schema = 1

// A partitionModel is one partition's model at work: a kafka.Handler. One
// goroutine drives it.
type partitionModel struct {
	l         *Learner
	partition int
	log       *slog.Logger
	epoch     int64
	model     *model.Model
	position  state.Position
	known     bool // position is from a checkpoint or a record, not the log's beginning

	unsaved  bool
	lastSave time.Time // of the attempt
	lastLook time.Time // whether what was saved is still there
	failing  bool      // the last save failed, and it was said
	status   Status
	doubts   doubtLog
	refused  int            // dead letters since the partition was taken
	letters  []kafka.Record // dead letters and receipts that are not acknowledged yet
	incoming []incoming     // scratch
	bytes    []byte         // scratch

	alerts      []stream.Alert              // not acknowledged yet
	alertsAt    time.Time                   // no attempt to publish them before
	alertPauses *backoff.ExponentialBackOff // nil while they go out
	alertPause  time.Duration               // the last of them
}

// An incoming is a record on its way to the model.
type incoming struct {
	event   stream.Event
	example model.Example
	raw     bool
	err     error
}

func (p *partitionModel) resumed(c *state.Checkpoint, version int64) {
	p.position, p.known = c.Position, true
	p.status.Version, p.status.SHA256 = version, c.ModelSHA256()
	p.status.SavedEnd, p.status.Saved = c.Position.Next, c.Saved
	p.log.Info("going on from a checkpoint", "epoch", p.epoch, "version", version,
		"events", c.Events, "next_offset", c.Position.Next)
}

// Position implements kafka.Handler.
func (p *partitionModel) Position() (int64, bool) { return p.position.Next, p.known }

// Follows implements kafka.Handler.
func (p *partitionModel) Follows(last kafka.Record) bool {
	return p.position.Follows(last.Key, last.Value, chained(last.Headers)...)
}

// Handle implements kafka.Handler: it applies a batch in order, publishes its
// dead letters and saves when it is time.
func (p *partitionModel) Handle(ctx context.Context, batch []kafka.Record) error {
	return p.orGone(p.handle(ctx, batch))
}

// Idle implements kafka.Handler.
func (p *partitionModel) Idle(ctx context.Context) error { return p.orGone(p.idle(ctx)) }

// orGone takes the partition from the status and the metrics if err is one: after
// an error the consumer drops a handler as it is, without Close.
func (p *partitionModel) orGone(err error) error {
	if err != nil {
		p.l.dropStatus(p.partition)
	}
	return err
}

func (p *partitionModel) handle(ctx context.Context, batch []kafka.Record) error {
	if p.lastSave.IsZero() {
		p.lastSave = time.Now()
	}
	p.decode(batch)
	for i := range batch {
		p.apply(&batch[i], &p.incoming[i])
	}
	p.status.End = batch[len(batch)-1].HighWatermark
	p.publishStatus()
	if err := p.publishLetters(ctx); err != nil {
		return err
	}
	return p.idle(ctx)
}

func (p *partitionModel) idle(ctx context.Context) error {
	if err := p.publishAlerts(ctx); err != nil {
		return err
	}
	return p.saveIfDue(ctx)
}

// Close implements kafka.Handler: it saves what has been learnt, trying until
// ctx ends.
func (p *partitionModel) Close(ctx context.Context) error {
	defer p.l.dropStatus(p.partition)
	if err := p.publishLetters(ctx); err != nil {
		return err
	}
	if err := p.insistOnAlerts(ctx); err != nil {
		return p.unsavedError(err)
	}
	if !p.unsaved {
		return nil
	}
	_, err := insist(ctx, p.log, "save at the end", func() (struct{}, error) { return struct{}{}, p.saveOrRetake(ctx) })
	if errors.Is(err, state.ErrStale) {
		p.log.Warn("another learner holds the partition: nothing was saved, and nothing is lost", "error", err)
		return nil
	}
	if err != nil {
		return p.unsavedError(err)
	}
	return nil
}

func (p *partitionModel) unsavedError(err error) error {
	return fmt.Errorf("the events learnt since offset %d were not saved and will be learnt again: %w", p.status.SavedEnd, err)
}

// decode reads a batch's records on all processors. What comes out is a pure
// function of each record.
func (p *partitionModel) decode(batch []kafka.Record) {
	if cap(p.incoming) < len(batch) {
		p.incoming = make([]incoming, len(batch))
	}
	p.incoming = p.incoming[:len(batch)]
	const grain = 16 // records that are worth a goroutine
	workers := min(runtime.GOMAXPROCS(0), (len(batch)+grain-1)/grain)
	if workers <= 1 {
		for i := range batch {
			p.incoming[i] = read(&batch[i])
		}
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(batch); i += workers {
				p.incoming[i] = read(&batch[i])
			}
		})
	}
	wg.Wait()
}

func read(r *kafka.Record) (in incoming) {
	in.event, in.err = stream.DecodeRecord(r.Headers, r.Value)
	if in.err != nil {
		return in
	}
	var reading example.Reading
	in.example, reading, in.err = example.ReadEvent(&in.event)
	in.raw = reading.Raw
	return in
}

// apply brings one record to the model and counts what became of it.
func (p *partitionModel) apply(r *kafka.Record, in *incoming) {
	applied := Applied{Partition: p.partition, Offset: r.Offset, Event: &in.event, Raw: in.raw}
	err := in.err
	if err == nil {
		applied.Truth = truth(r, in.event.Label)
		applied.Effect, err = p.applyEvent(r, in)
	}
	switch {
	case err != nil:
		applied.Outcome, applied.Reason = DeadLettered, strings.ReplaceAll(err.Error(), "\n", "; ")
		p.letters = append(p.letters, deadLetter(r, applied.Reason))
		if p.refused++; p.refused <= 10 || p.refused%1000 == 0 { // a bad feed must not fill the log
			reason := applied.Reason[:min(len(applied.Reason), 200)] // the whole stands in the letter
			p.log.Warn("dead letter", "offset", r.Offset, "reason", reason, "so_far", p.refused)
		}
	case applied.Effect.Duplicate:
		applied.Outcome = Duplicate
	case applied.Effect.Receipt != nil:
		applied.Outcome = Unlearned
		if in.event.Action == stream.Relearn {
			applied.Outcome = Relearned
		}
	}
	p.position, p.known, p.unsaved = p.position.Advance(r.Offset, r.Key, r.Value, chained(r.Headers)...), true, true
	first := p.l.firstTime(p.partition, r.Offset)
	p.heard(&applied.Effect, first)
	if !first {
		return // read again after a reload: it is counted already
	}
	p.l.cfg.Metrics.applied(&applied)
	if applied.Outcome == Learned || applied.Outcome == Relearned {
		p.doubts.note(p.log, time.Now(), applied.Event.Source, applied.Effect.Phi)
	}
	if p.l.cfg.Observe != nil {
		p.l.cfg.Observe(applied)
	}
}

// applyEvent applies an event; of a withdrawal it writes the receipt.
func (p *partitionModel) applyEvent(r *kafka.Record, in *incoming) (model.Effect, error) {
	if in.example.Action == model.Learn {
		return p.model.Apply(&in.example)
	}
	before, err := p.modelSHA256()
	if err != nil {
		return model.Effect{}, err
	}
	effect, err := p.model.Apply(&in.example)
	if err != nil || effect.Receipt == nil {
		return effect, err
	}
	after, err := p.modelSHA256()
	if err != nil {
		return effect, err
	}
	e, took := &in.event, effect.Receipt
	receipt := stream.Receipt{
		ID: e.ID, Of: e.Of, Source: e.Source, Tenant: e.Tenant, Action: e.Action.String(),
		Model: p.l.cfg.Name, Partition: r.Partition, Offset: r.Offset, Event: p.model.Events(),
		Withdrawn: convert.Label(took.Spam).String(), Trust: took.Trust, Since: took.Since,
		Curvature: took.Site.H, Shift: took.Site.Eta, KL: took.Site.KL, LogDetV: took.Site.LogDetV,
		Counted: took.Counted, Traces: stream.ReceiptTraces,
		Before: hex.EncodeToString(before[:]), After: hex.EncodeToString(after[:]),
	}
	if e.Action == stream.Relearn {
		receipt.Learnt = e.Label.String()
	}
	value, err := receipt.AppendJSON(nil)
	if err != nil {
		return effect, err
	}
	p.letters = append(p.letters, kafka.Record{
		Topic: stream.ReceiptTopic, Key: []byte(e.Tenant), Value: value,
		Headers: []kafka.Header{{Key: "content-type", Value: []byte(stream.ContentTypeJSON)}},
	})
	p.log.Info("withdrawn", "action", receipt.Action, "event", receipt.Event, "offset", r.Offset,
		"kl", receipt.KL, "delta_log_det_v", receipt.LogDetV, "counted", receipt.Counted)
	return effect, nil
}

func (p *partitionModel) modelSHA256() ([sha256.Size]byte, error) {
	var err error
	if p.bytes, err = p.model.AppendBinary(p.bytes[:0]); err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(p.bytes), nil
}

// chained returns a record's headers as the chain of positions takes them.
func chained(headers []kafka.Header) []state.Header {
	chain := make([]state.Header, len(headers))
	for i, h := range headers {
		chain[i] = state.Header{Key: h.Key, Value: h.Value}
	}
	return chain
}

func truth(r *kafka.Record, label stream.Label) stream.Label {
	if text, ok := stream.FindHeader(r.Headers, stream.HeaderTrueLabel); ok {
		if l, err := stream.ParseLabel(text); err == nil && l != stream.Unlabelled {
			return l
		}
	}
	return label
}

func deadLetter(r *kafka.Record, reason string) kafka.Record {
	d := stream.DeadLetter{Reason: reason, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time}
	return kafka.Record{
		Topic: stream.DeadLetterTopic, Key: r.Key, Value: r.Value, Headers: d.AppendHeaders(r.Headers),
	} // its time is now: by the record's, which may be months old, retention would take it at once
}

// publishLetters returns when dead letters and receipts are acknowledged. A dead
// letter that is too large with its new headers is cut.
func (p *partitionModel) publishLetters(ctx context.Context) error {
	if len(p.letters) == 0 {
		return nil
	}
	err := p.l.cfg.DeadLetters.Publish(ctx, p.letters...)
	if errors.Is(err, kafka.ErrTooLarge) {
		for i := range p.letters {
			if err = p.publishLetter(ctx, p.letters[i]); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("publish dead letters and receipts: %w", err)
	}
	p.letters = p.letters[:0]
	return nil
}

func (p *partitionModel) publishLetter(ctx context.Context, letter kafka.Record) error {
	err := p.l.cfg.DeadLetters.Publish(ctx, letter)
	if !errors.Is(err, kafka.ErrTooLarge) {
		return err
	}
	d, err := stream.ParseDeadLetter(letter.Headers)
	if err != nil {
		return err
	}
	d.Truncated = len(letter.Key) + len(letter.Value)
	letter.Key = letter.Key[:min(len(letter.Key), 1<<10)]
	letter.Value = letter.Value[:min(len(letter.Value), 64<<10)]
	letter.Headers = d.AppendHeaders(nil)
	return p.l.cfg.DeadLetters.Publish(ctx, letter)
}

// saveIfDue saves when SaveEvery has passed since the last time, and no alert
// waits to be acknowledged. Without the state the learner goes on learning and
// tries again: the log holds what is not saved.
func (p *partitionModel) saveIfDue(ctx context.Context) error {
	// Looks and saves that hang must not outlast, together, what the group grants a
	// partition that it takes away.
	attempt, cancel := context.WithTimeout(ctx, min(p.l.cfg.Consumer.Drain, 10*time.Second))
	defer cancel()
	if !p.unsaved && p.lost(attempt) {
		p.unsaved = true
	}
	if !p.unsaved || len(p.alerts) > 0 || time.Since(p.lastSave) < p.l.cfg.SaveEvery {
		return nil
	}
	p.lastSave = time.Now()
	err := p.saveOrRetake(attempt)
	switch {
	case err == nil:
		if p.failing {
			p.failing = false
			p.log.Info("the state can be reached again", "next_offset", p.position.Next)
		}
		return nil
	case errors.Is(err, state.ErrStale):
		p.log.Warn("lost the partition's state to another learner: reloading", "error", err)
		return fmt.Errorf("%w: %w", kafka.ErrReload, err)
	case errors.Is(err, state.ErrTransient):
		p.l.cfg.Metrics.saveFailed()
		if !p.failing {
			p.failing = true
			p.log.Warn("not saved: learning goes on, saving is tried again", "error", err)
		}
		return nil
	}
	return err
}

func (p *partitionModel) save(ctx context.Context) error {
	start := time.Now()
	var err error
	if p.bytes, err = p.model.AppendBinary(p.bytes[:0]); err != nil {
		return err
	}
	config, err := json.Marshal(p.model.Config())
	if err != nil {
		return err
	}
	c := &state.Checkpoint{
		Schema: schema, Numerics: p.model.Numerics(), Config: config, Epoch: p.epoch,
		Events: p.model.Events(), Position: p.position, Model: p.bytes, Saved: time.Now().UTC(),
	}
	version, err := p.l.cfg.Store.Save(ctx, p.partition, c)
	if err != nil {
		return err
	}
	p.unsaved = false
	p.status.Version, p.status.SHA256 = version, c.ModelSHA256()
	p.status.SavedEnd, p.status.Saved = c.Position.Next, c.Saved
	p.publishStatus()
	p.l.cfg.Metrics.saved(time.Since(start), len(p.bytes))
	p.log.Debug("saved", "version", version, "events", c.Events, "next_offset", c.Position.Next)
	return nil
}

func (p *partitionModel) publishStatus() {
	p.status.Next, p.status.Events, p.status.Epsilon = p.position.Next, p.model.Events(), p.model.Epsilon()
	p.status.Alarms, p.status.Reading, p.status.WindowBytes = p.model.Alarms(), p.model.Diagnosis(), p.model.WindowBytes()
	p.status.PendingAlerts = len(p.alerts)
	p.l.setStatus(p.partition, p.status)
}
