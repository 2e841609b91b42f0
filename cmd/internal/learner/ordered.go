package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// An Order makes one model learn all partitions of the events topic, in the order of a log.
// Every learner follows that log and holds the model. It learns events only as the order log
// names them. One learner is active: the one to which their consumer group gives the order
// log's partition. It appends to the log which of the events that it has read come next.
//
//	events 0 ─> feeder ─┬─> proposals ─> order log ─> sequencer ─> the model learns
//	events 1 ─> feeder ─┘   (the active)                  └─ takes from the feeders
//
// The active one alone saves the model, under an epoch, and publishes alerts, dead letters and
// receipts. The others are standbys: roles.go says how one becomes active. It goes on with the
// model that it holds, and publishes what it has kept since the last save. What it keeps is
// bounded. Where that was too little, it begins at the saved model, as after a restart.
//
// A learner that lost the partition and does not know it does no harm: what it appends is
// as good, and what it saves is refused. What is published twice has the same ids.
type Order struct {
	Topic  string    // the order log: order.Topic; kafka.EnsureOrder makes it
	Writer string    // names this learner in the order log
	Append Publisher // to it; nil: this learner, a shadow, only follows it
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
		return errors.New("the model was learnt from one partition: name another model, which learns all partitions from their beginning, or start the learner without --models one")
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
			return errors.New("the model has a part for each partition: name another model, which learns all partitions from their beginning, or start the learner without --models one")
		case l.cfg.Order != nil || partition == 0 || !slices.Contains(partitions, 0):
			return nil
		}
		var inOrder []byte
		m, _, err := l.cfg.Store.Manifest(ctx, state.Head)
		if err == nil {
			inOrder = m.Order
		} else if errors.Is(err, state.ErrCorrupt) { // the version before decides
			var c *state.Checkpoint
			if c, _, err = l.cfg.Store.Load(ctx, state.Head); err == nil {
				inOrder = c.Order
			}
		}
		switch {
		case len(inOrder) > 0:
			return errOrdered
		case errors.Is(err, state.ErrNone), errors.Is(err, state.ErrCorrupt): // the learner of partition 0 says so
			return nil
		}
		return err
	})
}

// An orderedModel is the one model of several partitions as the handler of the order log.
// One goroutine calls its methods; the feeders, propose and watch have goroutines of their own.
type orderedModel struct {
	*partitionModel
	state *sequencer.State // of the order log; its Log is the model's position

	running context.Context // of the goroutines; its cause is the first failure of one
	stop    context.CancelCauseFunc
	workers sync.WaitGroup
	wake    chan struct{} // has room for one token: there may be something to propose

	// See roles.go.
	active        bool
	writerEpoch   int64  // the one under which the model was taken: order records name it
	stopProposing func() // ends propose, and does nothing if it does not run
	kept          keeping
	passed        passage
	seen          atomic.Pointer[head] // what watch has found last, and nobody has judged
	judged        int64                // the version that was judged last
	judgedAt      time.Time            // when it was saved
	awaits        int64                // the saved model's place in the order log
	overdueFor    int64                // awaits when the group gave it the order log, and until when it
	overdueAt     time.Time            // may follow to there
	again         time.Time            // no attempt to become active before
	waiting       bool                 // the last attempt did not reach the store, which was logged
	writer        string               // of the last record of the order log

	applied atomic.Int64 // state.Log.Next, for propose
	learnt  atomic.Int64 // the model's events, for propose

	mu      sync.Mutex
	feeders []*feeder // by partition; the handler's goroutine writes it
}

// openOrdered loads the model, and starts to read the events ahead. It is a standby at least
// until the first batch or quiet time: before that the order log has not been compared, and
// nothing may be proposed to another model's, nor the epoch be taken.
func (l *Learner) openOrdered(ctx context.Context) (*orderedModel, error) {
	if l.halt != nil { // a handler that failed was dropped without Close
		l.halt()
	}
	log := l.cfg.Log.With("model", l.cfg.Name)
	from, err := l.load(ctx, log, 0)
	if err != nil {
		return nil, err
	}
	p := &partitionModel{l: l, log: log, outbox: outbox{publisher: l.cfg.Alerts, log: log}, standby: true}
	p.confirm = func(context.Context) error { return nil } // until Follow gives its own
	o := &orderedModel{partitionModel: p, state: &sequencer.State{}, wake: make(chan struct{}, 1), stopProposing: func() {}}
	if from.head != nil {
		if err := o.state.UnmarshalBinary(from.head.Order); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
		if o.state.Log != from.head.Position {
			return nil, fmt.Errorf("checkpoint: %w: it stands at %s of the order log and at %s", state.ErrCorrupt, from.head.Position, o.state.Log)
		}
		o.judged, o.judgedAt = from.version, from.head.Saved
	}
	if from.adopted {
		if o.state.Lineage, err = adoption(o.state, from.model.Config()); err != nil {
			return nil, err
		}
	}
	p.place = func() ([]byte, error) { return o.state.AppendBinary(nil) }
	p.begin(from)
	o.noteApplied()
	o.running, o.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	l.halt = func() { o.halt(nil) }
	for i := range o.state.Places {
		o.feed(i)
	}
	o.workers.Go(o.watch)
	o.showStanding()
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
	// Before the first record, so that a learner which has just loaded the model keeps nothing.
	if err := o.changeRole(ctx); err != nil {
		return err
	}
	for i := range batch {
		if err := o.follow(ctx, &batch[i]); err != nil {
			return err
		}
		if !o.active {
			o.keep()
		} else if err := o.publishLetters(ctx); err != nil {
			return err
		}
		if err := o.turn(ctx, false); err != nil {
			return err
		}
	}
	o.status.End = batch[len(batch)-1].HighWatermark
	o.showStanding()
	return nil
}

// Idle implements kafka.Handler.
func (o *orderedModel) Idle(ctx context.Context) error {
	if err := context.Cause(o.running); err != nil {
		return o.orStop(err)
	}
	return o.orStop(o.turn(ctx, true))
}

// turn changes the role if it is time. The active one publishes and saves.
func (o *orderedModel) turn(ctx context.Context, quiet bool) error {
	was := o.active
	if err := o.changeRole(ctx); err != nil {
		return err
	}
	if o.active {
		err := o.partitionModel.turn(ctx, quiet)
		if errors.Is(err, state.ErrStale) {
			o.fenced(err)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	if quiet || o.active != was {
		o.showStanding()
	}
	return nil
}

// showStanding publishes the status, with the role.
func (o *orderedModel) showStanding() {
	writer := o.writer
	if o.active && o.l.cfg.Order.Append != nil {
		writer = o.l.cfg.Order.Writer
	}
	o.status.Order = &Standing{Active: o.active, Writer: writer, Kept: o.kept.len()}
	o.publishOffsets()
}

// Close implements kafka.Handler.
func (o *orderedModel) Close(ctx context.Context) error {
	o.halt(nil) // each feeder asks once more whether its log is the same
	if err := o.confirmEvents(ctx); err != nil {
		return o.orGone(err) // what would be saved may be partly of another log
	}
	if o.active {
		return o.partitionModel.Close(ctx)
	}
	o.abandon()
	o.l.dropStatus(o.partition)
	return nil
}

// orStop ends the goroutines after an error: the consumer then drops the handler.
func (o *orderedModel) orStop(err error) error {
	if err != nil {
		o.halt(err)
	}
	return o.orGone(err)
}

// halt ends the goroutines. A departure that somebody waits for is over.
func (o *orderedModel) halt(err error) {
	o.stop(cmp.Or(err, context.Canceled))
	o.workers.Wait()
	o.stopProposing()
	o.l.seat.end(nil)
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
	o.position, o.known, o.writer = o.state.Log, true, d.Record.Writer
	o.noteUnsaved(time.Now)
	o.noteApplied()
	o.nudge()
	return nil
}

// noteApplied notes how far the order log is applied.
func (o *orderedModel) noteApplied() {
	o.passed.note(o.state.Log, o.model.Events())
	o.applied.Store(o.state.Log.Next)
	o.learnt.Store(int64(o.model.Events()))
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
	apply := func(i int) {
		o.apply(&records[i].record, &records[i].in)
		f.release(&records[i])
	}
	read := 0 // by the feeder
	for ; read < len(records) && records[read].reading != nil; read++ {
		apply(read)
	}
	o.ahead.each(o.model, len(records)-read, func(i int) *model.Body {
		if b := records[read+i].in.body(); b != nil && b.Reading == nil {
			return b
		}
		return nil
	}, func(i int) { apply(read + i) })
	return nil
}

// feed starts to read a partition at the model's place, in place of the feeder before.
func (o *orderedModel) feed(partition int) {
	at := o.state.Places[partition]
	f := newFeeder(partition, at.Position, at.Gaps, o.l.cfg.Answered != nil, o.nudge)
	o.mu.Lock()
	defer o.mu.Unlock()
	if partition < len(o.feeders) {
		o.feeders[partition].stop()
		o.feeders[partition] = f
	} else {
		o.feeders = append(o.feeders, f)
	}
	running, end := context.WithCancel(o.running)
	f.stop = end
	o.workers.Go(func() {
		defer end()
		if err := f.run(running, o.l.cfg.Consumer); err != nil {
			o.stop(err)
		}
	})
	if runtime.GOMAXPROCS(0) > 1 {
		reader := o.model.NewReader()
		o.workers.Go(func() { f.read(running, reader) })
	}
}

// nudge wakes the proposer.
func (o *orderedModel) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// current returns the feeders.
func (o *orderedModel) current() []*feeder {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.feeders)
}
