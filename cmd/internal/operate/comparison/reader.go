package comparison

import (
	"context"
	"errors"
	"fmt"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/predictions"
)

var (
	// ErrNone says that a model has no topic of predictions.
	ErrNone = errors.New("the model writes no predictions")
	// ErrGone says that the topic no longer has what comes next: it was deleted and made again, or
	// retention was faster than the reader.
	ErrGone = errors.New("the predictions that come next are gone")
)

// A finalError is an error that a later Advance returns again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// Final reports whether an error of this package is for good. An error of Kafka or of a context
// is not: a later try may succeed.
func Final(err error) bool {
	_, final := errors.AsType[finalError](err)
	return final || errors.Is(err, ErrNone)
}

const (
	// chunk is how many bytes are read of one topic, until the other's turn comes: at most some
	// 200,000 predictions. A save writes one record, so most records hold few.
	chunk = 1 << 20
	// maxWaiting bounds the predictions of one model that wait for those of the other: 16 MB.
	// Beyond, no more are read of it. A comparison in which both have so many fails.
	maxWaiting = 1 << 20
)

// Run compares model b with model a by all predictions that are in Kafka now, or since
// opts.Since. It reads from the beginning. A Reader goes on where it was.
func Run(ctx context.Context, brokers stream.Logs, a, b string, opts Options) (Result, error) {
	r, err := NewReader(ctx, brokers, a, b, opts)
	if err != nil {
		return Result{}, err
	}
	defer r.Close()
	return r.Advance(ctx)
}

// A Reader compares two models as their learners go on. It is not safe for concurrent use.
type Reader struct {
	comparison *Comparison
	pairing    *pairing
	topics     [2]topic
	events     string // the topic that both learn
	failed     error
}

// A topic is one of predictions, and how far it was read.
type topic struct {
	model, topic string
	log          stream.Topic
	reads        follow.Config
	next, end    int64
	deleted      bool
}

// NewReader finds the two topics. It wraps ErrNone where one is missing. Close the Reader.
func NewReader(ctx context.Context, brokers stream.Logs, a, b string, opts Options) (reader *Reader, err error) {
	if a == b {
		return nil, fmt.Errorf("compare model %s with itself: name two models", a)
	}
	c, err := New(opts)
	if err != nil {
		return nil, err
	}
	r := &Reader{comparison: c, pairing: newPairing(a, b, c.Add)}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	for i, name := range []string{a, b} {
		t := &r.topics[i]
		t.model, t.topic = name, predictions.Topic(name)
		partitions, err := brokers.Partitions(ctx, t.topic)
		if err != nil {
			return nil, err
		}
		if partitions == 0 {
			return nil, fmt.Errorf("%w: there is no topic %s: start the learner of model %s, "+
				"of this version and without --no-predictions", ErrNone, t.topic, name)
		}
		if t.log, err = brokers.Open(t.topic); err != nil {
			return nil, err
		}
		t.reads = follow.Topic(t.log, brokers)
		bounds, err := follow.Bounds(ctx, t.reads)
		if err != nil {
			return nil, err
		}
		t.next, t.deleted = bounds.First, bounds.First > 0
		if !opts.Since.IsZero() {
			if t.next, err = follow.Since(ctx, t.reads, opts.Since); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// Close closes the connections.
func (r *Reader) Close() {
	for i := range r.topics {
		if log := r.topics[i].log; log != nil {
			log.Close()
		}
	}
}

// Advance reads what has been written since the last call, and returns the result up to there.
// After an error every later call returns it, but for one of ctx or of Kafka.
func (r *Reader) Advance(ctx context.Context) (Result, error) {
	if r.failed != nil {
		return Result{}, r.failed
	}
	for i := range r.topics {
		t := &r.topics[i]
		bounds, err := follow.Bounds(ctx, t.reads)
		if err != nil {
			return Result{}, err
		}
		t.end = bounds.End
		switch {
		case t.end < t.next:
			return Result{}, r.fail(fmt.Errorf("%w: topic %s ends at %d, and was read to %d: it was made again",
				ErrGone, t.topic, t.end, t.next))
		case bounds.First > t.next:
			return Result{}, r.fail(fmt.Errorf("%w: topic %s begins at %d, and was read to %d: "+
				"retention has deleted what lies between", ErrGone, t.topic, bounds.First, t.next))
		}
	}
	for {
		moved := false
		for i := range r.topics {
			if t := &r.topics[i]; t.next < t.end && len(r.pairing.models[i].queue) < maxWaiting {
				moved = true
				if err := r.read(ctx, i); err != nil {
					return Result{}, err
				}
			}
		}
		if err := r.pairing.join(); err != nil {
			return Result{}, r.fail(err)
		}
		if !moved {
			break
		}
	}
	if a, b := &r.pairing.models[0], &r.pairing.models[1]; len(a.queue) >= maxWaiting && len(b.queue) >= maxWaiting {
		return Result{}, r.fail(fmt.Errorf("compare models %s and %s: each has more than %d predictions of events that "+
			"the other has not come to: name a time --since which both have caught up",
			a.name, b.name, maxWaiting))
	}
	result := r.comparison.Result()
	r.pairing.report(&result)
	result.A.Deleted, result.B.Deleted = r.topics[0].deleted, r.topics[1].deleted
	return result, nil
}

// fail keeps an error that is for good.
func (r *Reader) fail(err error) error {
	r.failed = finalError{err}
	return r.failed
}

func (r *Reader) read(ctx context.Context, model int) error {
	t := &r.topics[model]
	records, err := follow.Some(ctx, t.reads, t.next, t.end, chunk)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		t.next = t.end
	}
	for i := range records {
		if err := r.take(model, &records[i]); err != nil {
			return r.fail(err)
		}
		t.next = records[i].Offset + 1
	}
	return nil
}

func (r *Reader) take(model int, record *stream.Record) error {
	t := &r.topics[model]
	b, err := predictions.Decode(record.Value)
	if err != nil {
		return fmt.Errorf("topic %s, offset %d: %w", t.topic, record.Offset, err)
	}
	if err := r.check(t, &b); err != nil {
		return err
	}
	return r.pairing.add(model, &b, record.Offset)
}

// check returns an error if a block is of another model or of another log.
func (r *Reader) check(t *topic, b *predictions.Block) error {
	if b.Model != t.model {
		return fmt.Errorf("topic %s: it holds predictions of model %.64s", t.topic, b.Model)
	}
	if r.events == "" {
		r.events = b.Events
	}
	if b.Events != r.events {
		return fmt.Errorf("%w: model %s learns %.249s, and another one %.249s: start the second learner with --events-of",
			ErrOtherLog, t.model, b.Events, r.events)
	}
	return nil
}
