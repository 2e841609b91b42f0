package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/stream/kafka"
)

const (
	// batchBytes is what one call publishes, a request of about the largest size. Two batches
	// are in memory: one is published while the next is read.
	batchBytes = 1 << 20

	// chunkBytes is what is read at a time of the log that is compared: a fetch.
	chunkBytes = 4 << 20

	// settle is how long a log must stand still before it is known what is in it: a request
	// of a program that was killed may still be under way.
	settle = 300 * time.Millisecond
)

// New says how the topic of a log is made where it is missing, as kafka.EnsureTopic has it.
type New struct {
	Replication int
	Retention   time.Duration
}

// Filled says what Fill has done.
type Filled struct {
	Records int   `json:"records"` // of the source, all of them in the log
	Before  int   `json:"before"`  // of these, in the log before
	After   int64 `json:"after"`   // offsets behind them: the log went on before
}

// Fill appends records to a log, until all are in it: those that are not in it yet. It calls
// progress, which may be nil, with how many are in. Nobody else may write to the log meanwhile.
//
// It may be killed at any time; the same call goes on where it stopped. An error wraps
// ErrForeign where the log holds other records at the beginning, has lost its beginning, or gets
// a record from elsewhere. No publish is repeated before the log says what has come of it. A
// broker that stores a request only later is not seen until the end, and is ErrForeign too.
func (l Log) Fill(ctx context.Context, records Records, topic New, progress func(n int)) (Filled, error) {
	f := filler{log: l, batches: make(chan []kafka.Record), most: batchBytes, settle: settle, progress: progress}
	return f.run(ctx, records, topic)
}

// A filler fills one log.
//
//	records ─> compare, with the log to its end, ─the others, in batches─> publish
type filler struct {
	log      Log
	batches  chan []kafka.Record
	most     int           // bytes of a batch
	settle   time.Duration // see the constant
	progress func(n int)

	oldest time.Time // records before it would be deleted; run writes it

	// Until it sends a batch compare writes these, then publish.
	end int64 // the log has records of the source up to it, and then ends
	in  int   // how many these are
}

func (f *filler) run(ctx context.Context, records Records, topic New) (done Filled, err error) {
	if err := f.ensure(ctx, records, topic); err != nil {
		return done, err
	}
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(f.batches)
		var err error
		done, err = f.compare(within, records)
		return err
	})
	group.Go(func() error { return f.publish(within) })
	if err := group.Wait(); err != nil {
		return Filled{f.in, done.Before, 0}, err
	}
	done.Records = f.in
	if done.After > 0 {
		return done, nil
	}
	first, end, err := f.log.bounds(ctx)
	switch {
	case err != nil:
		return done, err
	case first > 0:
		return done, f.lostBeginning(first)
	case end != f.end:
		return done, fmt.Errorf("%w: topic %s ends at offset %d, and the copy at %d: "+
			"somebody else has written to it, or a broker stored a request twice", ErrForeign, f.log.Topic, end, f.end)
	}
	return done, nil
}

// ensure makes the topic, and finds which records it would not keep.
func (f *filler) ensure(ctx context.Context, records Records, topic New) error {
	switch n, err := kafka.Partitions(ctx, f.log.Kafka, f.log.Topic); {
	case err != nil:
		return err
	case n > 1:
		return &PartitionsError{Topic: f.log.Topic, Partitions: n}
	case n == 0:
		f.keeps(topic.Retention)
		for r, err := range records { // only the first
			if err == nil {
				err = f.fresh(r, 0)
			}
			if err != nil {
				return err
			}
			break
		}
		if err := kafka.EnsureTopic(ctx, f.log.Kafka, f.log.Topic, 1, topic.Replication, topic.Retention); err != nil {
			return err
		}
	}
	d, _, err := kafka.Retention(ctx, f.log.Kafka, f.log.Topic)
	if errors.Is(err, kafka.ErrAuth) { // it is seen at the end
		return nil
	}
	f.keeps(d)
	return err
}

// keeps says how long the topic keeps a record; 0 and less is for ever, or unknown.
func (f *filler) keeps(d time.Duration) {
	if f.oldest = (time.Time{}); d > 0 {
		f.oldest = time.Now().Add(-d)
	}
}

// fresh returns an error if the topic would not keep record number n.
func (f *filler) fresh(r *kafka.Record, n int) error {
	if f.oldest.IsZero() || !r.Time.Before(f.oldest) {
		return nil
	}
	return fmt.Errorf("record %d is of %s, and topic %s keeps records for %v: %w", n+1,
		r.Time.UTC().Format(time.RFC3339), f.log.Topic, time.Since(f.oldest).Round(time.Second), ErrOld)
}

func (f *filler) lostBeginning(first int64) error {
	return fmt.Errorf("%w: topic %s begins at offset %d", ErrForeign, f.log.Topic, first)
}

// compare compares the records with those that are in the log, and sends the others to publish.
func (f *filler) compare(ctx context.Context, records Records) (done Filled, err error) {
	there := cursor{log: f.log, most: chunkBytes}
	var batch []kafka.Record
	n, size, comparing := 0, 0, true
	send := func() error {
		select {
		case f.batches <- batch:
			batch, size = nil, 0
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for r, err := range records {
		if err != nil {
			return done, err
		}
		if comparing {
			in, err := f.next(ctx, &there)
			switch {
			case err != nil:
				return done, err
			case in == nil:
				f.end, done.Before, comparing = there.end, n, false
			case !same(in, r):
				return done, f.foreign(in.Offset, n)
			default:
				there.take()
				n++
				f.isIn(1)
				continue
			}
		}
		if err := f.fresh(r, n); err != nil {
			return done, err
		}
		batch, size, n = append(batch, *r), size+sizeOf(r), n+1
		if size >= f.most {
			if err := send(); err != nil {
				return done, err
			}
		}
	}
	if comparing {
		in, err := f.next(ctx, &there)
		f.end, done.Before = there.end, n
		if in != nil {
			done.After = there.end - in.Offset
		}
		return done, err
	}
	if len(batch) == 0 {
		return done, nil
	}
	return done, send()
}

// next returns the next record of the log, and nil at its end, if it stands still.
func (f *filler) next(ctx context.Context, there *cursor) (*kafka.Record, error) {
	for {
		r, err := there.peek(ctx)
		if r != nil || err != nil {
			return r, err
		}
		if err := sleep(ctx, f.settle); err != nil {
			return nil, err
		}
		first, end, err := f.log.bounds(ctx)
		switch {
		case err != nil:
			return nil, err
		case first > 0:
			return nil, f.lostBeginning(first)
		case end < there.end:
			return nil, fmt.Errorf("%w: topic %s ended at offset %d, and now at %d", ErrForeign, f.log.Topic, there.end, end)
		case end == there.end:
			return nil, nil
		}
		there.end = end
	}
}

// publish appends the batches, one after another.
func (f *filler) publish(ctx context.Context) error {
	once := f.log.Kafka
	once.MaxOutage = 1 // no request is sent twice: put says why
	producer, err := kafka.NewProducer(once)
	if err != nil {
		return err
	}
	for batch := range f.batches {
		if err = f.put(ctx, producer, batch); err != nil {
			break
		}
	}
	return errors.Join(err, producer.Close())
}

// put appends a batch. Of a request that failed it is not known whether its records are in the
// log. So it reads the log, and sends what is not in it.
func (f *filler) put(ctx context.Context, producer *kafka.Producer, batch []kafka.Record) error {
	for i := range batch {
		batch[i].Topic = f.log.Topic
	}
	failing := time.Time{}
	for {
		err := producer.Publish(ctx, batch...)
		if err == nil {
			f.end += int64(len(batch))
			f.isIn(len(batch))
			return nil
		}
		most := f.log.Kafka.MaxOutage
		switch {
		case !errors.Is(err, kafka.ErrOutage):
			return err
		case failing.IsZero():
			failing = time.Now()
		case most > 0 && time.Since(failing) > most:
			return fmt.Errorf("%w: nothing could be published for %v (last failure: %v)", kafka.ErrOutage, most, err)
		}
		there := cursor{log: f.log, most: chunkBytes, next: f.end, end: f.end}
		for ; ; there.take() {
			r, err := f.next(ctx, &there)
			if err != nil {
				return err
			}
			if r == nil {
				break
			}
			if len(batch) == 0 || !same(r, &batch[0]) {
				return f.foreign(r.Offset, f.in)
			}
			batch, failing = batch[1:], time.Time{}
			f.isIn(1)
		}
		if f.end = there.end; len(batch) == 0 {
			return nil
		}
	}
}

// isIn counts records of the source that are in the log.
func (f *filler) isIn(n int) {
	if f.in += n; f.progress != nil {
		f.progress(f.in)
	}
}

func (f *filler) foreign(offset int64, n int) error {
	return fmt.Errorf("%w: offset %d of topic %s has another record than record %d of the source",
		ErrForeign, offset, f.log.Topic, n+1)
}

// same reports whether two records have the same bytes.
func same(a, b *kafka.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b kafka.Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
