package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hamlet/state"
)

// lookShare is how many times SaveEvery passes between two looks at what was saved.
const lookShare = 10

// lost looks from time to time whether the state still holds what was saved last,
// or anything later. A store that was emptied or set back must not stay so until
// the next event comes, which may be days away: nobody could score meanwhile. Nor
// does a scorer know of a partition that is not listed any more. Saving mends it,
// or finds that the model must be loaded anew.
func (p *partitionModel) lost(ctx context.Context) bool {
	if p.status.Version == 0 || time.Since(p.lastLook) < lookShare*p.l.cfg.SaveEvery {
		return false
	}
	p.lastLook = time.Now()
	head, err := p.l.cfg.Store.Heading(ctx, p.partition, state.Head)
	switch {
	case errors.Is(err, state.ErrNone):
		p.log.Warn("the state has lost the model: saving it again", "version", p.status.Version)
		return true
	case err != nil: // a save would say so
		return false
	case head.Version < p.status.Version:
		p.log.Warn("the state has been set back: saving again", "version", p.status.Version, "found", head.Version)
		return true
	}
	listed, err := p.l.cfg.Store.Partitions(ctx)
	if err != nil || slices.Contains(listed, p.partition) {
		return false
	}
	p.log.Warn("the state does not list the partition any more: saving again", "version", p.status.Version)
	return true
}

// saveOrRetake saves. If the store has lost the state, the model that is in memory
// is all there is of it, but for the log, whose beginning may be gone: the
// partition is taken anew and the model goes on under that epoch, unless another
// learner has come further since. As the model is a function of the log, that is
// no other model than one that is learnt anew from all of it.
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
