package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// An Order makes one model learn all partitions of the events topic, in the order of a
// log. The learner's consumer group shares out the order log's partition: whoever gets it
// is the active learner. It reads the events ahead and appends which of them come next. It
// learns events only as the order log names them, its own records and those of others.
//
//	events 0 ─> feeder ─┬─> proposals ─> order log ─> sequencer ─> the model learns
//	events 1 ─> feeder ─┘                                 └─ takes from the feeders
//
// A learner that lost the partition and does not know it does no harm: what it appends is
// as good, and what it saves is refused. The next one begins at the saved model and learns
// what the order log says since. What it publishes again has the same ids.
//
// It is not finished, and the flag that asks for it is hidden. What is known to be missing:
//
//   - A learner that waits holds no model: it loads the checkpoint when it takes over.
type Order struct {
	Topic  string    // the order log: order.Topic; kafka.EnsureOrder makes it
	Writer string    // names this learner in the order log
	Append Publisher // to it
}

// consumer returns how the order log is consumed, if the events are consumed by cfg.
func (o *Order) consumer(cfg kafka.ConsumerConfig) kafka.ConsumerConfig {
	cfg.Topic = o.Topic
	cfg.Whole = true
	return cfg
}

// checkLayout returns an error if a checkpoint with this order is of another layout than this
// learner's.
func (l *Learner) checkLayout(order []byte) error {
	ordered := len(order) > 0
	switch {
	case ordered && l.cfg.Order == nil:
		return errOrdered
	case !ordered && l.cfg.Order != nil:
		return errors.New("the model was learnt from one partition: name another model, which learns all partitions anew, or start the learner without --models one")
	}
	return nil
}

var errOrdered = errors.New("the model was learnt from all partitions in the order of a log: start the learner with --models one, or name another model")

// checkOthers returns an error if another partition has a checkpoint of another layout than
// this learner's.
func (l *Learner) checkOthers(ctx context.Context, log *slog.Logger, partition int) error {
	return retry(ctx, log, "look for models of another layout", func() error {
		partitions, err := l.cfg.Store.Partitions(ctx)
		switch {
		case err != nil:
			return err
		case l.cfg.Order != nil && slices.ContainsFunc(partitions, func(p int) bool { return p != partition }):
			return errors.New("the model has a part for each partition: name another model, which learns all partitions anew, or start the learner without --models one")
		case l.cfg.Order != nil || partition == 0 || !slices.Contains(partitions, 0):
			return nil
		}
		m, _, err := l.cfg.Store.Manifest(ctx, 0, state.Head)
		switch {
		case err == nil && len(m.Order) > 0:
			return errOrdered
		case errors.Is(err, state.ErrNone), errors.Is(err, state.ErrCorrupt): // the learner of partition 0 says so
			return nil
		}
		return err
	})
}

// An orderedModel is the one model of several partitions as the handler of the order log.
// One goroutine calls its methods; the feeders and propose have goroutines of their own.
type orderedModel struct {
	*partitionModel
	state *sequencer.State // of the order log; its Log is the model's position

	writerEpoch int64 // the one under which the model was taken: order records name it

	running context.Context // of the goroutines; its cause is the first failure of one
	stop    context.CancelCauseFunc
	workers sync.WaitGroup
	wake    chan struct{} // has room for one token: there may be something to propose

	target   int64         // the order log's end at the start
	caughtUp chan struct{} // closed, and then nil, when the model has applied what was there

	mu      sync.Mutex
	feeders []*feeder // by partition; the handler's goroutine writes it
}

// openOrdered takes the model, and starts to read the events ahead.
func (l *Learner) openOrdered(ctx context.Context) (*orderedModel, error) {
	if l.halt != nil { // a handler that failed was dropped without Close
		l.halt()
	}
	_, end, err := kafka.Offsets(ctx, l.cfg.Consumer.Config, l.cfg.Order.Topic)
	if err != nil {
		return nil, err
	}
	p, err := l.open(ctx, 0)
	if err != nil {
		return nil, err
	}
	o := &orderedModel{partitionModel: p, writerEpoch: p.epoch, state: &sequencer.State{}, wake: make(chan struct{}, 1), caughtUp: make(chan struct{}), target: end[0]}
	if p.known {
		if err := o.state.UnmarshalBinary(p.order); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
		if o.state.Log != p.position {
			return nil, fmt.Errorf("checkpoint: %w: it stands at %s of the order log and at %s", state.ErrCorrupt, p.position, o.state.Log)
		}
	}
	p.place = func() ([]byte, error) { return o.state.AppendBinary(nil) }
	o.running, o.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	for i := range o.state.Places {
		o.feed(i)
	}
	caughtUp := o.caughtUp
	if !p.known {
		o.noteCaughtUp()
	}
	o.workers.Go(func() { o.propose(caughtUp) })
	l.halt = func() { o.halt(nil) }
	return o, nil
}

// Position implements kafka.Handler. A save needs all logs confirmed.
func (o *orderedModel) Position(confirm func(context.Context) error) (int64, bool) {
	return o.partitionModel.Position(func(ctx context.Context) error {
		if err := confirm(ctx); err != nil {
			return err
		}
		return o.confirmEvents(ctx)
	})
}

// Follows implements kafka.Handler. What the model proposes must not get into another
// order log than its own. So the first proposal waits until the log is compared here, or
// until there is a batch or a quiet time.
func (o *orderedModel) Follows(last kafka.Record) bool {
	follows := o.partitionModel.Follows(last)
	if follows {
		o.noteCaughtUp()
	}
	return follows
}

// confirmEvents returns nil if all events that were handed over are of the same logs. Of a
// log that was replaced it says so, whatever the others are.
func (o *orderedModel) confirmEvents(ctx context.Context) error {
	var unconfirmed error
	for _, f := range o.feeders {
		switch err := f.confirmed(ctx); {
		case errors.Is(err, kafka.ErrUnconfirmed):
			unconfirmed = err
		case err != nil:
			return err
		}
	}
	return unconfirmed
}

// Handle implements kafka.Handler: it follows a batch of the order log.
func (o *orderedModel) Handle(ctx context.Context, batch []kafka.Record) error {
	return o.orStop(o.handle(ctx, batch))
}

func (o *orderedModel) handle(ctx context.Context, batch []kafka.Record) error {
	if o.lastSave.IsZero() {
		o.lastSave = time.Now()
	}
	for i := range batch {
		if err := o.follow(ctx, &batch[i]); err != nil {
			return err
		}
		if err := o.publishLetters(ctx); err != nil {
			return err
		}
		if err := o.turn(ctx, false); err != nil {
			return err
		}
	}
	o.status.End = batch[len(batch)-1].HighWatermark
	o.publishStatus()
	return nil
}

// Idle implements kafka.Handler.
func (o *orderedModel) Idle(ctx context.Context) error {
	if err := context.Cause(o.running); err != nil {
		return o.orStop(err)
	}
	o.noteCaughtUp()
	return o.orStop(o.turn(ctx, true))
}

// Close implements kafka.Handler.
func (o *orderedModel) Close(ctx context.Context) error {
	o.halt(nil) // each feeder asks once more whether its log is the same
	if err := o.confirmEvents(ctx); err != nil {
		return o.orGone(err) // what would be saved may be partly of another log
	}
	return o.partitionModel.Close(ctx)
}

// orStop ends the goroutines after an error: the consumer then drops the handler.
func (o *orderedModel) orStop(err error) error {
	if err != nil {
		o.halt(err)
	}
	return o.orGone(err)
}

// halt ends the goroutines.
func (o *orderedModel) halt(err error) {
	o.stop(cmp.Or(err, context.Canceled))
	o.workers.Wait()
}

// follow applies one record of the order log.
func (o *orderedModel) follow(ctx context.Context, r *kafka.Record) error {
	d, err := o.state.Apply(r.Offset, r.Key, r.Value, chained(r.Headers)...)
	if err != nil {
		return err
	}
	switch d.Outcome {
	case sequencer.Stale:
	case sequencer.Beyond:
		if p := d.Record.Partition; d.Record.Kind != order.Join && p < len(o.feeders) {
			o.feeders[p].passOver()
		}
		o.log.Debug("passed over a record of the order log that came too early", "offset", r.Offset, "kind", d.Record.Kind.String(), "writer", d.Record.Writer)
	case sequencer.Began:
		if d.Record.Model != ([32]byte{}) {
			return fmt.Errorf("the order log goes on from a model with SHA-256 %x: restore its checkpoint, or name another model", d.Record.Model)
		}
		for i := range o.state.Places {
			o.feed(i)
		}
		o.log.Info("the order log begins", "partitions", len(o.state.Places), "writer", d.Record.Writer)
	case sequencer.Joined:
		o.feed(d.Record.Partition)
		o.log.Info("a partition joined the model", "joined", d.Record.Partition, "order", r.Offset)
	case sequencer.Jumped:
		o.feed(d.Record.Partition)
		o.log.Warn("going on after records lost to retention", "of", d.Record.Partition, "from", d.Record.From, "to", d.Record.To, "order", r.Offset)
	case sequencer.Taken:
		if err := o.take(ctx, d.Take); err != nil {
			return err
		}
	default:
		panic("learner: unknown outcome of the order log")
	}
	o.position, o.known = o.state.Log, true
	o.noteUnsaved(time.Now)
	o.noteCaughtUp()
	return nil
}

// take learns what the order log says that comes next.
func (o *orderedModel) take(ctx context.Context, t *sequencer.Take) error {
	f := o.feeders[t.Partition]
	records, at, err := f.take(ctx, o.running, t.To)
	if err != nil {
		return fmt.Errorf("wait for offset %d of partition %d: %w", t.To-1, t.Partition, err)
	}
	if err := o.state.FinishAt(t, at); err != nil {
		return err
	}
	o.ahead.each(o.model, len(records), func(i int) *model.Body { return records[i].in.body() },
		func(i int) { o.apply(&records[i].record, &records[i].in) })
	o.nudge()
	return nil
}

// feed starts to read a partition at the model's place, in place of the feeder before.
func (o *orderedModel) feed(partition int) {
	at := o.state.Places[partition]
	f := newFeeder(partition, at.Position, at.Gaps, o.l.cfg.Answered != nil, o.nudge)
	o.mu.Lock()
	defer o.mu.Unlock()
	if partition < len(o.feeders) {
		o.feeders[partition].end()
		o.feeders[partition] = f
	} else {
		o.feeders = append(o.feeders, f)
	}
	running, end := context.WithCancel(o.running)
	f.end = end
	o.workers.Go(func() {
		defer end()
		if err := f.run(running, o.l.cfg.Consumer); err != nil {
			o.stop(err)
		}
	})
}

// nudge wakes the proposer.
func (o *orderedModel) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *orderedModel) noteCaughtUp() {
	if o.caughtUp != nil && o.state.Log.Next >= o.target {
		close(o.caughtUp)
		o.caughtUp = nil
	}
}

// current returns the feeders.
func (o *orderedModel) current() []*feeder {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.feeders)
}
