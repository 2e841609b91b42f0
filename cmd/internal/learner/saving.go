package learner

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hamlet/state"
	"hamlet/stream/kafka"
)

// checkEvery is how many times SaveEvery passes on a quiet stream until the model is
// saved again. A store that holds it writes nothing; one that lost something gets it
// back. Without that scorers could lack the model until the next event, for days.
const checkEvery = 10

// quietWait is how long a turn without records waits for the running save, so that
// Status soon shows what is saved. A record that comes meanwhile waits as long.
const quietWait = 200 * time.Millisecond

// A saving is one save. It runs in a goroutine of its own beside learning, from a copy
// of the model. A partition has at
// most one. The copy is the partition's saveBytes: one encoded model, whose memory the
// next save uses again. Taking it stops learning for 15 ms at the default 28 MiB
// (BenchmarkCopy, 2026-11-22); hashing and writing it does not.
//
//	none ──start──> running ──done──> settled by the partition's goroutine ──> none
//	                   └──abandon──> cancelled; its result is ignored
//
// A store bounds its requests by itself, so a saving ends if the store does not answer,
// and lasts as long as a slow store needs.
//
// A saving may go on after its partition was given to another learner. That changes
// nothing: the other learner took the partition with a newer epoch, and the store
// refuses what is saved under the epoch before.
type saving struct {
	store     Store
	log       *slog.Logger
	partition int
	cancel    context.CancelFunc
	begun     time.Time
	copied    *state.Checkpoint // what to write
	again     bool              // it was saved before

	// The result. Its goroutine writes it before done is closed; others read it after.
	done    chan struct{}
	epoch   int64 // the last that was taken
	lost    bool  // see partitionModel
	version int64
	sha256  [sha256.Size]byte
	took    time.Duration
	err     error
}

func (s *saving) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// saveIfDue takes in the result of a save that has ended. It starts one when SaveEvery
// has passed since the last began and no alert is pending: alerts and predictions are published
// before the save of their events. Without the store learning goes on: the log
// holds what is not saved.
func (p *partitionModel) saveIfDue(ctx context.Context, quiet bool) error {
	defer p.showLag()
	if err := p.settle(ctx, quiet); err != nil || p.running != nil {
		return err
	}
	now := time.Now()
	switch {
	case p.unsaved && len(p.outbox.pending) == 0 && now.Sub(p.lastSave) >= p.l.cfg.SaveEvery:
		switch err := p.confirm(ctx); {
		case errors.Is(err, kafka.ErrUnconfirmed):
			p.log.Debug("not saved yet", "error", err)
			return nil
		case err != nil:
			return err
		}
		if err := p.publishPredictions(ctx); err != nil {
			return err
		}
		if err := p.startSave(ctx); err != nil {
			return err
		}
	case !p.unsaved && p.status.Version != 0 && now.Sub(p.lastSave) >= checkEvery*p.l.cfg.SaveEvery:
		if err := p.startSave(ctx); err != nil {
			return err
		}
		p.running.again = true
	}
	if quiet {
		return p.settle(ctx, quiet)
	}
	return nil
}

// startSave copies the model and starts to save the copy.
func (p *partitionModel) startSave(ctx context.Context) error {
	p.lastSave = time.Now()
	c, err := p.copyModel()
	if err != nil {
		return err
	}
	p.unsaved, p.sinceCopy = false, time.Time{}
	p.start(ctx, &saving{copied: c})
	return nil
}

// copyModel returns a checkpoint of the model as it is. Its bytes are p.saveBytes: no
// save may be running.
func (p *partitionModel) copyModel() (*state.Checkpoint, error) {
	var err error
	if p.saveBytes, err = p.model.AppendBinary(p.saveBytes[:0]); err != nil {
		return nil, err
	}
	config, err := json.Marshal(p.model.Config())
	if err != nil {
		return nil, err
	}
	var place []byte
	if p.place != nil {
		if place, err = p.place(); err != nil {
			return nil, err
		}
	}
	return &state.Checkpoint{
		Order: place, Schema: schema, Numerics: p.model.Numerics(), Config: config, Epoch: p.epoch,
		Events: p.model.Events(), Position: p.position, Model: p.saveBytes, Saved: time.Now().UTC(),
	}, nil
}

func (p *partitionModel) start(ctx context.Context, s *saving) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx)) // it outlasts the turn that starts it
	s.store, s.log, s.partition, s.epoch, s.lost = p.l.cfg.Store, p.log, p.partition, p.epoch, p.lost
	s.begun, s.done = time.Now(), make(chan struct{})
	p.running = s
	p.l.savings.Go(func() {
		defer close(s.done)
		defer s.cancel()
		s.run(ctx)
	})
}

// abandon cancels the running save, whose result nobody wants. It ends with its request
// in flight; Run waits for it. It keeps the copy: the next save makes another.
func (p *partitionModel) abandon() {
	if p.running != nil {
		p.running.cancel()
		p.running, p.saveBytes = nil, nil
	}
}

// settle takes in the result of the running save if it has ended. On a quiet stream it
// waits a little for the end.
func (p *partitionModel) settle(ctx context.Context, quiet bool) error {
	if p.running == nil {
		return nil
	}
	if !p.running.ended() {
		if !quiet {
			return nil
		}
		patience := time.NewTimer(quietWait)
		defer patience.Stop()
		select {
		case <-p.running.done:
		case <-patience.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return p.result(p.takeIn())
}

// takeIn notes what the save that has ended did, and returns its error.
func (p *partitionModel) takeIn() error {
	s := p.running
	p.running, p.epoch, p.lost = nil, s.epoch, s.lost
	if s.err != nil {
		p.unsaved = true
		return s.err
	}
	if s.again && s.version != p.status.Version {
		p.log.Warn("the state had lost what was saved: it was saved again", "version_before", p.status.Version, "version", s.version)
	}
	p.noteSaved(s.copied, s.version, s.sha256)
	p.unsavedSince = p.sinceCopy
	p.publishStatus()
	p.l.cfg.Metrics.saved(s.took, len(s.copied.Model))
	p.l.cfg.Metrics.standings.show(p.partition, p.model.Sources())
	p.log.Debug("saved", "version", s.version, "events", s.copied.Events, "next_offset", s.copied.Position.Next, "took", s.took)
	if p.failing {
		p.failing = false
		p.log.Info("the state can be reached again", "next_offset", s.copied.Position.Next)
	}
	return nil
}

// result decides what a save's error means for the partition. One that may pass is no
// error.
func (p *partitionModel) result(err error) error {
	switch {
	case errors.Is(err, state.ErrStale) && p.place != nil: // the model in memory is still good
		return err
	case errors.Is(err, state.ErrStale):
		p.log.Warn("lost the partition's state to another learner: reloading", "error", err)
		return fmt.Errorf("%w: %w", kafka.ErrReload, err)
	case errors.Is(err, state.ErrTransient):
		p.l.cfg.Metrics.failedSave.Inc()
		if !p.failing {
			p.failing = true
			p.log.Warn("not saved: learning goes on, saving is tried again", "error", err)
		}
		return nil
	}
	return err
}

// saveAtEnd saves what is not saved, with ctx's time to begin an attempt. Where the
// learner stops, an attempt that has begun may finish: it lasts as long as a store of
// the measured speed needs. Where Kafka takes the partition away, it ends with ctx,
// because the other learners wait.
func (p *partitionModel) saveAtEnd(ctx context.Context) error {
	attempt := ctx
	if p.l.stopping() {
		attempt = context.WithoutCancel(ctx)
	}
	if p.running != nil {
		select {
		case <-p.running.done:
		case <-attempt.Done():
			p.abandon()
			return context.Cause(attempt)
		}
		if err := p.takeIn(); err != nil && !errors.Is(err, state.ErrTransient) {
			return err
		}
	}
	if !p.unsaved {
		return nil
	}
	return retry(ctx, p.log, "save at the end", func() error {
		if err := p.startSave(attempt); err != nil {
			return err
		}
		select {
		case <-p.running.done:
			return p.takeIn()
		case <-attempt.Done():
			p.abandon()
			return context.Cause(attempt)
		}
	})
}

func (s *saving) run(ctx context.Context) {
	s.sha256 = s.copied.ModelSHA256()
	s.version, s.err = s.saveOrRetake(ctx)
	s.took = time.Since(s.begun)
}

// saveOrRetake saves. If the store lost its data, the model in memory may be all
// that is left, because the log's beginning may be gone too. The partition is taken
// again and the model saved under the new epoch. The store refuses that if another
// learner has read further since. Its model has the same bytes as learning the whole log
// again.
func (s *saving) saveOrRetake(ctx context.Context) (version int64, err error) {
	c := s.copied
	if !s.lost {
		version, err = s.store.Save(ctx, c)
		if !errors.Is(err, state.ErrLost) {
			return version, err
		}
		s.lost = true
	}
	epoch, err := s.store.Take(ctx)
	if err != nil {
		return 0, err
	}
	s.log.Warn("the store has lost the partition's state: saving the model that is in memory",
		"epoch_before", s.epoch, "epoch", epoch, "events", c.Events, "next_offset", c.Position.Next)
	s.lost, s.epoch, c.Epoch = false, epoch, epoch
	return s.store.Save(ctx, c)
}

// noteSaved notes in the status what the store holds.
func (p *partitionModel) noteSaved(c *state.Checkpoint, version int64, sha [sha256.Size]byte) {
	p.status.Version, p.status.SHA256 = version, sha
	p.status.SavedEnd, p.status.SavedEvents, p.status.Saved = c.Position.Next, c.Events, c.Saved
}

// noteUnsaved notes that a record was applied at now.
func (p *partitionModel) noteUnsaved(now func() time.Time) {
	p.unsaved = true
	if p.sinceCopy.IsZero() {
		p.sinceCopy = now()
	}
	if p.unsavedSince.IsZero() {
		p.unsavedSince = p.sinceCopy
	}
}

// showLag shows for how long the oldest record that is not saved has been learnt.
func (p *partitionModel) showLag() {
	behind := time.Duration(0)
	if !p.unsavedSince.IsZero() {
		behind = time.Since(p.unsavedSince)
	}
	p.l.cfg.Metrics.behind(p.partition, behind)
}
