package withdraw

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/stream"
)

// An eventLog is the log of a model, and how it is read.
type eventLog struct {
	stream.Topic
	topic  string
	follow follow.Config
}

// log returns the log of a model. The caller closes it.
func (s Servers) log(name string) (eventLog, error) {
	topic := stream.EventsTopic(name)
	log, err := s.Kafka.Open(topic)
	if err != nil {
		return eventLog{}, err
	}
	return eventLog{log, topic, follow.Topic(log, s.Kafka)}, nil
}

// A savedModel is the saved model, and its log.
type savedModel struct {
	eventLog
	head       *state.Checkpoint
	first, end int64 // of the log, when it was asked
}

// mostBehind is how many records the saved model may lack. They are learnt here too, so
// that what is shown is what the learner will do.
const mostBehind = 50_000

// open loads the saved model, and asks where its log begins and ends. The caller closes the log.
func (s Servers) open(ctx context.Context, name string) (l *savedModel, err error) {
	ask, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Store.Layout(ask); err != nil {
		return nil, err
	}
	if err := s.Kafka.Ping(ask); err != nil {
		return nil, err
	}
	head, _, err := s.Store.Load(ctx, state.Head)
	if errors.Is(err, state.ErrNone) {
		return nil, fmt.Errorf("the store keeps no version of model %s: the learner has saved none yet, "+
			"or --model or --redis-db names another", name)
	}
	if err != nil {
		return nil, err
	}
	log, err := s.log(name)
	if err != nil {
		return nil, err
	}
	bounds, err := follow.Bounds(ctx, log.follow)
	l = &savedModel{eventLog: log, head: head, first: bounds.First, end: bounds.End}
	if err == nil {
		err = l.check()
	}
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	return l, nil
}

// check returns why nothing can be said of the model, nil if there is no such reason.
func (l *savedModel) check() error {
	next := l.head.Position.Next
	switch {
	case next > l.end:
		return fmt.Errorf("the model has learnt offsets below %d, and the log of topic %s ends at %d: "+
			"is this the Kafka of its learner?", next, l.topic, l.end)
	case l.end-next > mostBehind:
		return fmt.Errorf("the saved model is %d records behind the log: wait until its learner has come nearer, at most %d",
			l.end-next, mostBehind)
	}
	return nil
}

// A record is one of the log's, decoded.
type record struct {
	*stream.Record
	example.Incoming
	err error // it cannot be learnt
}

func (r *record) isEvent() bool { return r.err == nil && r.Standing == nil }

func decoded(r *stream.Record) record {
	in := record{Record: r}
	in.Incoming, in.err = example.Read(r.Headers, r.Value)
	return in
}

// read calls each with the records from one offset up to another, as far as the log had them when
// it was asked.
func (l *savedModel) read(ctx context.Context, from, to int64, each func(*record) error) error {
	return follow.Range(ctx, l.follow, max(from, l.first), to, func(r *stream.Record) error {
		in := decoded(r)
		return each(&in)
	})
}

// readThese calls each with the records at these offsets, ascending.
func (l eventLog) readThese(ctx context.Context, offsets []int64, each func(*record) error) error {
	if len(offsets) == 0 {
		return nil
	}
	return follow.Range(ctx, l.follow, offsets[0], offsets[len(offsets)-1]+1, func(r *stream.Record) error {
		if _, found := slices.BinarySearch(offsets, r.Offset); !found {
			return nil
		}
		in := decoded(r)
		return each(&in)
	})
}

// toEnd returns the saved model once it has learnt the log to its end. It calls progress for each
// record.
func (l *savedModel) toEnd(ctx context.Context, progress func(offset int64)) (*model.Model, error) {
	m, err := model.Restore(l.head.Model)
	if err != nil {
		return nil, fmt.Errorf("the saved model: %w", err)
	}
	next := l.head.Position.Next
	return m, l.read(ctx, next-1, l.end, func(r *record) error {
		progress(r.Offset)
		if r.Offset < next {
			return l.follows(r)
		}
		return r.applyTo(m)
	})
}

// applyTo has m learn r as its learner will.
func (r *record) applyTo(m *model.Model) error {
	switch {
	case r.err != nil:
		return nil
	case r.Standing != nil:
		_ = example.Follow(m, r.Standing) // what is refused changes nothing
		return nil
	}
	_, err := m.Attempt(&r.Example)
	return ignoreRefused(err)
}

// follows returns an error if r, at the last offset that the model has learnt, is not the
// record that it has learnt.
func (l *savedModel) follows(r *record) error {
	if follow.Absorbed(l.head.Position, r.Record) {
		return nil
	}
	return fmt.Errorf("topic %s has another record at offset %d than the model has learnt there: "+
		"it is not the model's log", l.topic, r.Offset)
}

// lookBack is how many offsets before the first possible one are counted too, for copies that
// follow their originals soon.
const lookBack = 1000

// offsetOf returns the offset of the model's event number n. If the log no longer has it, that is
// its first record.
//
// Copies and dead letters are no events. So event n lies at offset n−1 or later, and each
// later event has an offset of its own. Where these bounds differ, the events from the lower
// one to the model's position are counted, by a [model.DryRun].
func (l *savedModel) offsetOf(ctx context.Context, n uint64) (int64, error) {
	if n > l.head.Events {
		return 0, fmt.Errorf("event %d is not learnt and saved yet: the saved model has %d", n, l.head.Events)
	}
	lowest := max(l.first, int64(n)-1)
	offset := max(l.first, l.head.Position.Next-int64(l.head.Events-n)-1)
	if lowest < offset {
		return l.count(ctx, max(l.first, lowest-lookBack), n)
	}
	return offset, nil
}

// count returns the offset of event n, which is at lowest or later, by the events behind it.
func (l *savedModel) count(ctx context.Context, lowest int64, n uint64) (int64, error) {
	m, err := model.Restore(l.head.Model)
	if err != nil {
		return 0, fmt.Errorf("the saved model: %w", err)
	}
	next := l.head.Position.Next
	dry := m.NewDryRun(lowest == 0)
	isEvent := make(bitmap, (next-lowest)/64+1)
	total := uint64(0)
	err = l.read(ctx, lowest, next, func(r *record) error {
		if r.isEvent() && dry.Counts(&r.Example) {
			isEvent.set(r.Offset - lowest)
			total++
		}
		return nil
	})
	if err != nil || l.head.Events-n >= total {
		return lowest, err
	}
	return lowest + isEvent.fromEnd(l.head.Events-n), nil
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
