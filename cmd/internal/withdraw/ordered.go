package withdraw

import (
	"context"
	"fmt"
	"math/bits"

	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/orderlog"
	"hamlet/cmd/internal/sequencer"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

// An orderedModel is one model of several partitions. Its parts share the saved model.
type orderedModel struct {
	log   orderlog.Config
	state *sequencer.State // of the saved model
	parts []*part
}

// newOrdered returns the model in a checkpoint, and gives it a part for each partition of
// its topic. What is not in the model's order yet is read from the log's beginning on.
func (s Servers) newOrdered(name string, saved *part, first, end map[int]int64) (*orderedModel, error) {
	o := &orderedModel{
		log:   orderlog.Config{Kafka: s.Kafka, Events: saved.topic, Order: order.Topic(name)},
		state: &sequencer.State{},
	}
	if err := o.state.UnmarshalBinary(saved.head.Order); err != nil {
		return nil, fmt.Errorf("the saved model: %w", err)
	}
	if places := len(o.state.Places); places > len(end) {
		return nil, fmt.Errorf("the model has learnt of %d partitions, and topic %s has %d: is this the Kafka of its learner?", places, saved.topic, len(end))
	}
	behind := int64(0)
	for number := range len(end) {
		p := *saved
		p.number, p.ordered, p.first, p.end, p.to = number, o, first[number], end[number], end[number]
		p.position.Next, p.position.Chain, p.position.Before = p.first, [32]byte{}, [32]byte{}
		if number < len(o.state.Places) {
			p.position = o.state.Places[number].Position
		}
		if err := p.check(); err != nil {
			return nil, err
		}
		behind += max(0, p.end-p.position.Next)
		o.parts = append(o.parts, &p)
	}
	if behind > mostBehind {
		return nil, tooFarBehind("the model", behind)
	}
	return o, nil
}

// forget frees the saved model's bytes.
func (o *orderedModel) forget() {
	for _, p := range o.parts {
		p.head.Model = nil
	}
}

// catchUp has m, the saved model, learn what the order log names since, and then what it does
// not name yet, one partition after another.
func (o *orderedModel) catchUp(ctx context.Context, m *model.Model, progress func(p *part, offset int64)) error {
	for _, p := range o.parts {
		next := p.position.Next
		err := p.read(ctx, next-1, next, p.follows)
		if err != nil {
			return err
		}
	}
	s := o.state.Clone()
	err := orderlog.Follow(ctx, o.log, s, func(r *kafka.Record) error {
		if r.Partition < len(o.parts) {
			progress(o.parts[r.Partition], r.Offset)
		}
		in := decoded(r)
		return in.applyTo(m)
	})
	if err != nil {
		return fmt.Errorf("the order log of the model: %w", err)
	}
	for i, p := range o.parts {
		from := p.first
		if i < len(s.Places) {
			from = s.Places[i].Next
		}
		err := p.read(ctx, from, p.end, func(r *record) error {
			progress(p, r.Offset)
			return r.applyTo(m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ofOrdered plans the withdrawal from a model of several partitions. Answers are compared
// before and after all of it.
func (pl *planner) ofOrdered(ctx context.Context, o *orderedModel) (all []*PartitionPlan, err error) {
	before, err := pl.restore(o.parts[0])
	if err != nil {
		return nil, err
	}
	o.forget()
	if err := o.catchUp(ctx, before, pl.progress); err != nil {
		return nil, err
	}
	share := *pl
	share.recent = (pl.recent + len(o.parts) - 1) / len(o.parts)
	for _, p := range o.parts {
		plan := newPlan(p)
		if err := share.find(ctx, plan, before); err != nil {
			return nil, err
		}
		all = append(all, plan)
	}
	after, err := clone(before)
	if err != nil {
		return nil, err
	}
	for _, plan := range all {
		if err := share.try(ctx, plan, before, after); err != nil {
			return nil, err
		}
	}
	for _, plan := range all {
		if err := share.compare(ctx, plan, after); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// resolve calls set with the offset of each partition at which event n lies: what the model
// took before it is below. With after it is what the model took up to it.
func (o *orderedModel) resolve(ctx context.Context, b Bound, after int64, set func(p *part, offset int64)) error {
	if b.partition > 0 {
		return cli.Usagef("%s: one model learns all partitions and counts the events of all: write %d, without a partition", b.name, b.event)
	}
	cfg := o.log
	cfg.End = o.state.Log.Next
	var ranges []orderlog.Range
	total := int64(0)
	err := orderlog.Ranges(ctx, cfg, func(r orderlog.Range) error {
		ranges = append(ranges, r)
		total += r.To - r.From
		return nil
	})
	if err != nil {
		return fmt.Errorf("the order log of the model: %w", err)
	}
	at, err := o.find(ctx, ranges, total, b.event)
	if err != nil {
		return err
	}
	at += after
	offsets := make([]int64, len(o.parts))
	for _, r := range ranges {
		if n := min(at, r.To-r.From); n > 0 {
			offsets[r.Partition] = r.From + n
			at -= n
		}
	}
	for i, p := range o.parts {
		set(p, max(p.first, offsets[i]))
	}
	return nil
}

// find returns how many records the model took before its event number n. The bounds are those
// of part.offsetOf: where they differ, the events between are counted.
func (o *orderedModel) find(ctx context.Context, ranges []orderlog.Range, total int64, n uint64) (int64, error) {
	head := o.parts[0].head
	if n > head.Events {
		return 0, fmt.Errorf("event %d is not learnt and saved yet: the saved model has %d", n, head.Events)
	}
	lowest, highest := int64(n)-1, total-int64(head.Events-n)-1
	if lowest >= highest {
		return max(highest, 0), nil
	}
	lowest = max(0, lowest-lookBack)
	m, err := model.Restore(head.Model)
	if err != nil {
		return 0, err
	}
	applies := newClock(m, lowest == 0)
	isEvent := make(bitmap, (total-lowest)/64+1)
	count := uint64(0)
	begin := int64(0) // records before the range
	for _, r := range ranges {
		p, from := o.parts[r.Partition], r.From+max(0, lowest-begin)
		err := p.read(ctx, min(from, r.To), r.To, func(in *record) error {
			if applies.to(in) {
				isEvent.set(begin + in.Offset - r.From - lowest)
				count++
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		begin += r.To - r.From
	}
	later := head.Events - n // events after it
	if later >= count {
		return lowest, nil
	}
	return lowest + isEvent.fromEnd(later), nil
}

// A bitmap has a bit for each of some records.
type bitmap []uint64

func (b bitmap) set(i int64) { b[i/64] |= 1 << (i % 64) }

// fromEnd returns the place of the one that n ones follow; 0 if there are no more than n.
func (b bitmap) fromEnd(n uint64) int64 {
	for i := len(b) - 1; i >= 0; i-- {
		word := b[i]
		if ones := uint64(bits.OnesCount64(word)); n >= ones {
			n -= ones
			continue
		}
		for ; n > 0; n-- {
			word &^= 1 << (63 - bits.LeadingZeros64(word))
		}
		return int64(64*i + 63 - bits.LeadingZeros64(word))
	}
	return 0
}
