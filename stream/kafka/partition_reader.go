package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"
	kafkago "github.com/segmentio/kafka-go"
)

const (
	// batchBytes ends a batch before MaxBatch does, if its mails are large.
	batchBytes = 8 << 20

	// queueRecords is how many records kafka-go queues for the next batch: at most 16
	// MiB of the largest ones.
	queueRecords = 16

	// commitEvery is how often a busy partition's offset is committed to the group.
	commitEvery = 5 * time.Second
)

// readPartition reads one partition while the generation lasts. After ErrReload it
// opens a new handler. Any other error ends Run, unless the partition was revoked.
//
// kafka-go calls it also for a generation that has ended and does not wait for it.
func (m *member) readPartition(running, ended context.Context, generation *kafkago.Generation, partition int) {
	if ended.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(running)
	defer cancel()
	defer context.AfterFunc(ended, cancel)()
	pause := newPause()
	for ctx.Err() == nil {
		r := &partitionReader{member: m, generation: generation, partition: partition, pause: pause}
		err := r.run(ctx)
		switch {
		case err == nil:
		case running.Err() != nil && !errors.Is(err, ErrReload):
			m.mu.Lock()
			m.late = append(m.late, fmt.Errorf("topic %s, partition %d: %w", m.cfg.Topic, partition, err))
			m.mu.Unlock()
		case ctx.Err() != nil:
			m.cfg.Log.Warn("kafka: a handler did not finish before its partition was revoked", "topic", m.cfg.Topic, "partition", partition, "error", err)
		case errors.Is(err, ErrReload):
			m.cfg.Log.Info("kafka: opening a partition again", "topic", m.cfg.Topic, "partition", partition, "reason", err)
			wait(ctx, pause)
		default:
			m.stop(fmt.Errorf("topic %s, partition %d: %w", m.cfg.Topic, partition, err))
			return
		}
	}
}

// A partitionReader feeds one handler:
//
//	open ──> locate ──> read <──> verify the log
//	 │          │         ├─ handler failed, or another log ──> dropped
//	 │ failed   └─────────┴─ ctx ended, or the log failed ──> close
//	 └──> nothing to close
//
// Records that were fetched and not handed over when ctx ends are read again by the
// next owner. One goroutine uses a partitionReader.
type partitionReader struct {
	*member
	generation *kafkago.Generation // nil: of Follow, which commits nothing
	partition  int
	pause      backoff.BackOff // between reloads; reset by each handled batch

	handler     Handler
	next        int64     // no record below it will be handed over; set by locate, advanced by read
	committed   int64     // the offset last committed, at most next; 0: none
	committedAt time.Time // the last attempt to commit
	warnings    rateLimiter

	absorbedLog
}

// run opens a handler, feeds it until ctx ends, and closes it.
func (r *partitionReader) run(ctx context.Context) (err error) {
	if r.handler, err = r.open(ctx, r.partition); err != nil {
		if ctx.Err() != nil {
			return nil // nothing was begun
		}
		return fmt.Errorf("open: %w", err)
	}
	working, cancel := r.drain(ctx)
	defer cancel()
	err = r.locate(ctx)
	if err == nil {
		var dropped bool
		if dropped, err = r.read(ctx, working); dropped {
			return err
		}
	}
	if ctx.Err() != nil {
		err = nil // what is left is read again
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Drain)
	defer cancel()
	asking, cancel := context.WithTimeout(closing, confirmTimeout) // Close needs the rest
	defer cancel()
	if e := r.confirm(asking); errors.Is(e, ErrReplaced) {
		return errors.Join(err, e) // what the handler would save is partly of another log
	}
	if e := r.handler.Close(closing); e != nil {
		return errors.Join(err, fmt.Errorf("close at offset %d: %w", r.next, e))
	}
	r.commit()
	return err
}

// drain returns a context that ends Drain after ctx does.
func (r *partitionReader) drain(ctx context.Context) (context.Context, context.CancelFunc) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(r.cfg.Drain, cancel)
		context.AfterFunc(working, func() { t.Stop() })
	})
	return working, func() { stop(); cancel() }
}

// read hands records to the handler until ctx ends. dropped means that the handler
// must not be closed: it failed, or the log was replaced.
func (r *partitionReader) read(ctx, working context.Context) (dropped bool, err error) {
	connected, disconnect := context.WithCancel(ctx)
	reader := r.newReader(connected)
	defer func() {
		disconnect() // or Close waits for the fetch in flight
		reader.Close()
	}()

	batch := make([]Record, 0, r.cfg.MaxBatch)
	for {
		var quiet bool
		var fetchErr error
		batch, quiet, fetchErr = r.fetch(ctx, reader, batch[:0])
		if ctx.Err() != nil {
			return false, nil
		}
		if len(batch) > 0 || quiet {
			if err := r.admit(ctx, batch); err != nil {
				return errors.Is(err, ErrReplaced), err
			}
		}
		switch {
		case len(batch) > 0:
			if err := r.handler.Handle(working, batch); err != nil {
				return true, fmt.Errorf("offsets %d to %d: %w", batch[0].Offset, batch[len(batch)-1].Offset, err)
			}
			r.next = batch[len(batch)-1].Offset + 1
			r.pause.Reset()
			r.warnings.reset()
			if r.cfg.CommitEach || time.Since(r.committedAt) >= commitEvery {
				r.commit()
			}
		case quiet:
			if err := r.handler.Idle(working); err != nil {
				return true, fmt.Errorf("idle at offset %d: %w", r.next, err)
			}
			r.commit()
		}
		switch {
		case fetchErr == nil:
		case permanent(fetchErr) != nil:
			return false, permanent(fetchErr)
		case errors.Is(fetchErr, kafkago.OffsetOutOfRange): // the reader has given up
			r.confirming.Lock()
			err := r.verify(ctx)
			r.confirming.Unlock()
			if err != nil {
				return errors.Is(err, ErrReplaced), err
			}
			reader.Close()
			reader = r.newReader(connected)
		default: // the reader retries by itself, at most once a second
			r.warnings.warn(r.cfg.Log, "kafka: reading again", "topic", r.cfg.Topic, "partition", r.partition, "next", r.next, "error", fetchErr)
		}
	}
}

// admit checks the log and the offsets of a batch, which may be empty, before it is handed
// over.
func (r *partitionReader) admit(ctx context.Context, batch []Record) error {
	r.confirming.Lock()
	defer r.confirming.Unlock()
	if err := r.check(ctx, batch); err != nil || len(batch) == 0 {
		return err
	}
	if err := r.checkOffsets(ctx, batch); err != nil {
		return err
	}
	r.taken(batch)
	return nil
}

// A fetcher is the part of a kafka-go reader that fetch uses.
type fetcher interface {
	FetchMessage(context.Context) (kafkago.Message, error)
	Stats() kafkago.ReaderStats
}

// fetch waits up to PollInterval for a record, and appends it and those that arrived
// with it. It may return both records and an error. quiet means that neither came.
func (r *partitionReader) fetch(ctx context.Context, reader fetcher, batch []Record) (_ []Record, quiet bool, err error) {
	poll, cancel := context.WithTimeout(ctx, r.cfg.PollInterval)
	defer cancel()
	m, err := reader.FetchMessage(poll)
	if err != nil && err == poll.Err() { // not errors.Is: the reader may fail at the same moment
		return batch, true, nil
	}
	if err != nil {
		return batch, false, err
	}
	bytes := 0
	for queued := reader.Stats().QueueLength; ; queued-- {
		batch = append(batch, fromMessage(&m))
		bytes += len(m.Key) + len(m.Value)
		if queued == 0 {
			queued = reader.Stats().QueueLength // the short queue was refilled meanwhile
		}
		if queued == 0 || len(batch) == cap(batch) || bytes >= batchBytes {
			return batch, false, nil
		}
		if m, err = reader.FetchMessage(ctx); err != nil {
			return batch, false, err
		}
	}
}

// newReader returns a kafka-go reader that begins at r.next, on connections that close
// when ctx ends. Each of its connections and errors is a doubt about the log.
func (r *partitionReader) newReader(ctx context.Context) *kafkago.Reader {
	dialer := r.cfg.dialer(ctx)
	dial := dialer.DialFunc
	dialer.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		r.doubts.Add(1)
		return dial(ctx, network, address)
	}
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers:               r.cfg.Brokers,
		Topic:                 r.cfg.Topic,
		Partition:             r.partition,
		Dialer:                dialer,
		ErrorLogger:           kafkago.LoggerFunc(func(string, ...any) { r.doubts.Add(1) }),
		QueueCapacity:         queueRecords,
		MinBytes:              1,
		MaxBytes:              fetchBytes,
		MaxWait:               fetchWait,
		ReadLagInterval:       -1, // no goroutine for the lag: records carry the high watermark
		ReadBackoffMin:        minPause,
		ReadBackoffMax:        maxPause,
		MaxAttempts:           1, // return every failure; we wait and log
		OffsetOutOfRangeError: true,
	})
	// Before the first fetch this only stores the offset.
	if err := reader.SetOffset(r.next); err != nil {
		panic(fmt.Sprintf("kafka: a new reader refuses its offset: %v", err))
	}
	return reader
}

// checkOffsets looks for lost records in the holes between a batch's offsets. kafka-go
// skips what retention deleted. If the log begins before a hole, nothing is lost.
func (r *partitionReader) checkOffsets(ctx context.Context, batch []Record) error {
	next := r.next
	for i := range batch {
		offset := batch[i].Offset
		if offset < next {
			return fmt.Errorf("offset %d after %d: the broker went back", offset, next-1)
		}
		if offset > next {
			first, _, err := offsetsOf(ctx, &r.cfg.Config, r.client, r.cfg.Topic, r.partition)
			if err != nil {
				return err
			}
			_, err = r.acceptGap(next, min(first, offset)) // the answer covers later holes too
			return err
		}
		next++
	}
	return nil
}

// commit tells the group how far the handler has come. After a failure it is told with the
// next batch, or with the next quiet time: it may be behind, and never ahead.
func (r *partitionReader) commit() {
	if r.generation == nil || r.next == r.committed {
		return
	}
	r.committedAt = time.Now()
	err := r.generation.CommitOffsets(map[string]map[int]int64{r.cfg.Topic: {r.partition: r.next}})
	if err != nil {
		r.cfg.Log.Debug("kafka: committing the group's offset", "group", r.cfg.Group, "partition", r.partition, "offset", r.next, "error", err)
		return
	}
	r.committed = r.next
}
