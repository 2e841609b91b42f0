package learner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/interleave"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

const (
	// lookEvery is how often the events topic is asked for new partitions, and for their ends.
	lookEvery = 5 * time.Second

	// Rounds are proposed when fewer than minAhead records are on their way to the model,
	// until there are maxAhead. The rest of what was read is for later rounds to choose from.
	minAhead = 256
	maxAhead = 512
)

// startProposing starts propose.
func (o *orderedModel) startProposing(began time.Time) {
	ctx, cancel := context.WithCancel(o.running)
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.propose(ctx, began)
	}()
	o.stopProposing = func() { cancel(); <-done }
}

// catchUp returns when the model has applied what is in the order log now, or when ctx ends.
// What comes next is not known till then.
func (o *orderedModel) catchUp(ctx context.Context, began time.Time) error {
	_, end, err := kafka.Offsets(ctx, o.l.cfg.Consumer.Config, o.l.cfg.Order.Topic)
	if err != nil {
		return err
	}
	from := o.applied.Load()
	for o.applied.Load() < end[0] {
		select {
		case <-o.wake:
		case <-ctx.Done():
			return nil
		}
	}
	for _, f := range o.current() {
		f.again() // what an earlier active learner proposed, this one too, may be lost
	}
	o.log.Info("caught up with the order log: ordering what comes next", "next_offset", end[0], "records", max(0, end[0]-from), "took", time.Since(began))
	return nil
}

// propose appends to the order log what comes next, while the learner is active. It begins
// when the model has applied what was in the log before.
//
// Records travel on before they are learnt. Each is of the partition's next offsets, so
// none comes too early, and one that somebody else's overtakes is cut or passed over.
func (o *orderedModel) propose(ctx context.Context, began time.Time) {
	if err := o.catchUp(ctx, began); err != nil && ctx.Err() == nil {
		o.stop(fmt.Errorf("order log: %w", err))
		return
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	waits := time.NewTicker(maxAllowance / 4)
	defer waits.Stop()
	due := true
	var queues []interleave.Queue
	for ctx.Err() == nil {
		var records []order.Record
		var err error
		if due || o.changed() {
			records, err = o.changes(ctx, due)
			due = false
		}
		var waiting bool
		if err == nil {
			var next []order.Record
			next, waiting = o.rounds(&queues)
			records = append(records, next...)
		}
		if err == nil && len(records) > 0 {
			err = o.append(ctx, records)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.stop(fmt.Errorf("order log: %w", err))
			return
		case len(records) > 0:
			continue
		}
		over := waits.C
		if !waiting {
			over = nil
		}
		select {
		case <-o.wake:
		case <-over:
		case <-look.C:
			due = true
		case <-ctx.Done():
		}
	}
}

// rounds returns the ranges that come next, unless enough are on their way. waiting means
// that a partition is waited for. queues are those of the call before.
func (o *orderedModel) rounds(queues *[]interleave.Queue) (records []order.Record, waiting bool) {
	now := time.Now()
	feeders := o.current()
	for len(*queues) < len(feeders) {
		*queues = append(*queues, interleave.Queue{})
	}
	ahead := 0
	for _, f := range feeders {
		f.restart(now)
		ahead += f.onTheWay()
	}
	if ahead >= minAhead {
		return nil, false
	}
	for i, f := range feeders {
		q := &(*queues)[i]
		f.queue(q, now)
		waiting = waiting || q.Short()
	}
	for ahead < maxAhead {
		runs := interleave.Round(*queues, int(o.learnt.Load())+ahead)
		if len(runs) == 0 {
			break
		}
		for _, run := range runs {
			if r, ok := feeders[run.Partition].propose(run.Records); ok {
				records = append(records, r)
			}
			q := &(*queues)[run.Partition]
			q.Times = slices.Delete(q.Times, 0, run.Records)
			ahead += run.Records
		}
	}
	return records, waiting
}

// changed reports whether a gap is to be proposed, or a partition's end is to be found.
func (o *orderedModel) changed() bool {
	return slices.ContainsFunc(o.current(), func(f *feeder) bool { _, lost := f.gap(); return lost || !f.endKnown() })
}

// changes returns the beginning, gaps that the operator accepts, and if joins is true the
// partitions that join.
func (o *orderedModel) changes(ctx context.Context, joins bool) (records []order.Record, err error) {
	events := &o.l.cfg.Consumer
	first, end, err := kafka.Offsets(ctx, events.Config, events.Topic)
	if err != nil {
		return nil, err
	}
	feeders := o.current()
	if len(feeders) == 0 {
		at := make([]state.Position, len(first))
		for _, p := range slices.Sorted(maps.Keys(first)) {
			at[p].Next = first[p]
			if first[p] > 0 && !events.AcceptLostBeginning {
				return nil, fmt.Errorf("%w: partition %d begins at offset %d; to begin a new model with what is left, start once with --accept-lost-beginning", kafka.ErrNoBeginning, p, first[p])
			}
		}
		return []order.Record{sequencer.Beginning(o.l.cfg.Order.Writer, o.writerEpoch, at, [32]byte{})}, nil
	}
	for p, f := range feeders {
		f.noteEnd(end[p])
		if err := f.refused(); err != nil {
			return nil, fmt.Errorf("%w; or write into the order log that the model goes on without them: hamlet order accept-gap %d --model %s",
				err, p, strings.TrimPrefix(o.l.cfg.Order.Topic, order.Topic("")))
		}
		if from, lost := f.gap(); lost && from < first[p] {
			records = append(records, order.Record{Kind: order.Gap, Partition: p, From: from, To: first[p]})
			f.noteGap()
		}
	}
	for p := len(feeders); joins && p < len(first); p++ {
		records = append(records, order.Record{Kind: order.Join, Partition: p})
	}
	return records, nil
}

// append appends records to the order log and waits until they are there.
func (o *orderedModel) append(ctx context.Context, records []order.Record) error {
	appended := make([]kafka.Record, len(records))
	for i := range records {
		r := &records[i]
		r.Writer, r.Epoch = o.l.cfg.Order.Writer, o.writerEpoch
		value, err := r.AppendProto(nil)
		if err != nil {
			return err
		}
		appended[i] = kafka.Record{Topic: o.l.cfg.Order.Topic, Value: value}
	}
	if err := o.l.cfg.Order.Append.Publish(ctx, appended...); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}
