package withdraw

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/example"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A part is one partition of the model, and its log.
type part struct {
	number     int
	kafka      kafka.Config
	topic      string
	head       *state.Checkpoint // the saved model
	position   state.Position    // that it has learnt in this partition
	first, end int64             // of the log, when it was asked
	from, to   int64             // the offsets that --since and --until mean
}

// mostBehind is how many records the saved model may lack. They are learnt here too, so
// that what is shown is what the learner will do.
const mostBehind = 50_000

// check returns why nothing can be said of the partition, nil if there is no such reason.
func (p *part) check() error {
	next := p.position.Next
	switch {
	case next > p.end:
		return fmt.Errorf("partition %d: the model has learnt offsets below %d, and the log of topic %s ends at %d: is this the Kafka of its learner?",
			p.number, next, p.topic, p.end)
	case p.end-next > mostBehind:
		return tooFarBehind(fmt.Sprintf("partition %d", p.number), p.end-next)
	}
	return nil
}

func tooFarBehind(who string, n int64) error {
	return fmt.Errorf("%s: the saved model is %d records behind the log: wait until its learner has come nearer, at most %d", who, n, mostBehind)
}

// A record is one of the log's, decoded.
type record struct {
	*kafka.Record
	event   stream.Event
	example model.Example
	err     error // it cannot be learnt, or is no event
}

var errNoEvent = errors.New("no event")

// read calls each with the records from one offset up to another.
func (p *part) read(ctx context.Context, from, to int64, each func(*record) error) error {
	return kafka.ReadRange(ctx, p.kafka, p.topic, p.number, max(from, p.first), to, func(r *kafka.Record) error {
		in := decoded(r)
		return each(&in)
	})
}

func decoded(r *kafka.Record) record {
	in := record{Record: r}
	if stream.IsStanding(r.Headers) {
		in.err = errNoEvent
		return in
	}
	if in.event, in.err = stream.DecodeRecord(r.Headers, r.Value); in.err == nil {
		in.example, _, in.err = example.Of(&in.event)
	}
	return in
}

// follows returns an error if r, at the last offset that the model has learnt, is not the
// record that it has learnt.
func (p *part) follows(r *record) error {
	headers := make([]state.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = state.Header{Key: h.Key, Value: h.Value}
	}
	if p.position.Follows(r.Key, r.Value, headers...) {
		return nil
	}
	return fmt.Errorf("partition %d: topic %s has another record at offset %d than the model has learnt there: it is not the model's log",
		p.number, p.topic, r.Offset)
}

// lookBack is how many offsets before the first possible one are counted too, for copies that
// follow their originals soon.
const lookBack = 1000

var errEnough = errors.New("enough")

// offsetOf returns the offset of the model's event number n, and when it was written. If the
// log no longer has it, that is its first record.
//
// Copies and dead letters are no events. So event n lies at offset n−1 or later, and each
// later event has an offset of its own. Where these bounds differ, the events from the lower
// one to the model's position are counted: see clock.
func (p *part) offsetOf(ctx context.Context, n uint64) (offset int64, written time.Time, err error) {
	if n > p.head.Events {
		return 0, written, fmt.Errorf("partition %d: event %d is not learnt and saved yet: the saved model has %d", p.number, n, p.head.Events)
	}
	lowest := max(p.first, int64(n)-1)
	offset = max(p.first, p.position.Next-int64(p.head.Events-n)-1)
	if lowest < offset {
		if offset, err = p.count(ctx, max(p.first, lowest-lookBack), n); err != nil {
			return 0, written, err
		}
	}
	err = p.read(ctx, offset, p.end, func(r *record) error {
		written = r.Time
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return offset, written, err
}

// count returns the offset of event n, which is at lowest or later, by the events behind it.
func (p *part) count(ctx context.Context, lowest int64, n uint64) (int64, error) {
	m, err := model.Restore(p.head.Model)
	if err != nil {
		return 0, err
	}
	next := p.position.Next
	applies := newClock(m, lowest == 0)
	isEvent := make(bitmap, (next-lowest)/64+1)
	total := uint64(0)
	err = p.read(ctx, lowest, next, func(r *record) error {
		if applies.to(r) {
			isEvent.set(r.Offset - lowest)
			total++
		}
		return nil
	})
	if err != nil || p.head.Events-n >= total {
		return lowest, err
	}
	return lowest + isEvent.fromEnd(p.head.Events-n), nil
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
