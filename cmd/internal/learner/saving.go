package learner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"hamlet/state"
	"hamlet/stream/kafka"
)

// checkEvery is how many times SaveEvery passes between two checks that the store
// still holds what was saved.
const checkEvery = 10

// maxSaveTime bounds one check and save, and so does the consumer's drain. A save that
// hangs must end before the group gives the partition to another learner.
const maxSaveTime = 10 * time.Second

// saveIfDue saves when SaveEvery has passed since the last attempt and no alert is
// pending. Without the store learning goes on: the log holds what is not saved.
func (p *partitionModel) saveIfDue(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, min(p.l.cfg.Consumer.Drain, maxSaveTime))
	defer cancel()
	if !p.unsaved && p.lost(attempt) {
		p.unsaved = true
	}
	if !p.unsaved || len(p.outbox.pending) > 0 || time.Since(p.lastSave) < p.l.cfg.SaveEvery {
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
		p.l.cfg.Metrics.failedSave.Inc()
		if !p.failing {
			p.failing = true
			p.log.Warn("not saved: learning goes on, saving is tried again", "error", err)
		}
		return nil
	}
	return err
}

// lost checks from time to time whether the store still holds what was saved last, or
// anything later. A store may have been emptied or set back. Without a check scorers
// would lack the model until the next event, perhaps for days.
func (p *partitionModel) lost(ctx context.Context) bool {
	if p.status.Version == 0 || time.Since(p.lastCheck) < checkEvery*p.l.cfg.SaveEvery {
		return false
	}
	p.lastCheck = time.Now()
	head, err := p.l.cfg.Store.Heading(ctx, p.partition, state.Head)
	switch {
	case errors.Is(err, state.ErrNone):
		p.log.Warn("the state has lost the model: saving it again", "version", p.status.Version)
		return true
	case err != nil: // the next save reports it
		return false
	case head.Version < p.status.Version:
		p.log.Warn("the state has been set back: saving again", "version", p.status.Version, "found", head.Version)
		return true
	}
	// A scorer serves only partitions that are listed.
	listed, err := p.l.cfg.Store.Partitions(ctx)
	if err != nil || slices.Contains(listed, p.partition) {
		return false
	}
	p.log.Warn("the state does not list the partition any more: saving again", "version", p.status.Version)
	return true
}

// saveOrRetake saves. If the store lost its data, the model in memory may be all
// that is left, because the log's beginning may be gone too. The partition is taken
// again and the model saved under the new epoch, unless another learner has read
// further since. That gives the same bytes as learning the whole log again.
func (p *partitionModel) saveOrRetake(ctx context.Context) error {
	err := p.save(ctx)
	if !errors.Is(err, state.ErrLost) {
		return err
	}
	epoch, takeErr := p.l.cfg.Store.Take(ctx, p.partition)
	if takeErr != nil {
		return takeErr
	}
	head, headErr := p.l.cfg.Store.Heading(ctx, p.partition, state.Head)
	switch {
	case errors.Is(headErr, state.ErrNone):
	case headErr != nil:
		return headErr
	case head.Next > p.position.Next:
		return fmt.Errorf("%w; since then another learner has come to offset %d, this one to %d", err, head.Next, p.position.Next)
	}
	p.log.Warn("the store has lost the partition's state: saving the model that is in memory",
		"epoch_before", p.epoch, "epoch", epoch, "events", p.model.Events(), "next_offset", p.position.Next)
	p.epoch = epoch
	return p.save(ctx)
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
	p.noteSaved(c, version)
	p.publishStatus()
	p.l.cfg.Metrics.saved(time.Since(start), len(p.bytes))
	p.log.Debug("saved", "version", version, "events", c.Events, "next_offset", c.Position.Next)
	return nil
}

// noteSaved notes in the status what the store holds.
func (p *partitionModel) noteSaved(c *state.Checkpoint, version int64) {
	p.status.Version, p.status.SHA256 = version, c.ModelSHA256()
	p.status.SavedEnd, p.status.Saved = c.Position.Next, c.Saved
}
