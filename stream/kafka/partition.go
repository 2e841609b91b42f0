package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	kafkago "github.com/segmentio/kafka-go"
)

// assignment drives one partition while the generation lasts. An error that no
// reload mends ends the whole run, unless the assignment was over already: then
// the partition is another member's, who has the log to learn again from what
// was not saved.
//
// kafka-go also starts it for a generation that has ended, of which it waits for
// nothing any more: a handler would outlive Run.
func (r *run) assignment(running, ended context.Context, gen *kafkago.Generation, partition int) {
	if ended.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(running)
	defer cancel()
	defer context.AfterFunc(ended, cancel)()
	pause := newPause()
	for ctx.Err() == nil {
		s := &session{run: r, gen: gen, partition: partition, pause: pause}
		err := s.serve(ctx)
		switch {
		case err == nil:
		case running.Err() != nil && !errors.Is(err, ErrReload):
			r.unfinished(fmt.Errorf("topic %s, partition %d: %w", r.cfg.Topic, partition, err))
		case ctx.Err() != nil:
			r.cfg.Log.Warn("kafka: a partition was given back unfinished", "topic", r.cfg.Topic, "partition", partition, "error", err)
		case errors.Is(err, ErrReload):
			r.cfg.Log.Info("kafka: opening a partition anew", "topic", r.cfg.Topic, "partition", partition, "reason", err)
			wait(ctx, pause)
		default:
			r.stop(fmt.Errorf("topic %s, partition %d: %w", r.cfg.Topic, partition, err))
			return
		}
	}
}

// A session is the life of one handler.
type session struct {
	*run
	gen       *kafkago.Generation
	partition int
	pause     backoff.BackOff // between reloads; a handled batch resets it

	handler   Handler
	next      int64 // offset that the next record must not be below
	committed int64 // offset last committed to the group; 0: none
	at        time.Time
	lines     gate
}

// serve opens a handler, feeds it until ctx ends, and closes it.
func (s *session) serve(ctx context.Context) (err error) {
	if s.handler, err = s.open(ctx, s.partition); err != nil {
		if ctx.Err() != nil {
			return nil // nothing was begun
		}
		return fmt.Errorf("open: %w", err)
	}
	working, done := s.outlive(ctx)
	defer done()
	dropped, err := s.feed(ctx, working)
	if dropped {
		return err
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Drain)
	defer cancel()
	if e := s.handler.Close(closing); e != nil {
		return errors.Join(err, fmt.Errorf("close at offset %d: %w", s.next, e))
	}
	s.commit()
	return err
}

// outlive returns a context that ends Drain after ctx does.
func (s *session) outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(s.cfg.Drain, cancel)
		context.AfterFunc(working, func() { t.Stop() })
	})
	return working, func() { stop(); cancel() }
}

// feed reads records for the handler until ctx ends. dropped says that the
// handler itself failed and is not to be closed.
func (s *session) feed(ctx, working context.Context) (dropped bool, err error) {
	if err := s.start(ctx); err != nil {
		if ctx.Err() != nil {
			return false, nil
		}
		return false, err
	}
	wires := newWires()
	defer context.AfterFunc(ctx, wires.cut)()
	reader := s.reader(wires)
	defer func() {
		wires.cut() // or Close waits for the fetch in flight
		reader.Close()
	}()

	batch := make([]Record, 0, s.cfg.MaxBatch)
	for {
		var quiet bool
		var failed error
		batch, quiet, failed = s.fetch(ctx, reader, batch[:0])
		if ctx.Err() != nil {
			return false, nil // what is fetched and not handed over is read again
		}
		switch {
		case len(batch) > 0:
			if err := s.admit(ctx, batch); err != nil {
				if ctx.Err() != nil {
					return false, nil
				}
				return false, err
			}
			if err := s.handler.Handle(working, batch); err != nil {
				return true, fmt.Errorf("offsets %d to %d: %w", batch[0].Offset, batch[len(batch)-1].Offset, err)
			}
			s.next = batch[len(batch)-1].Offset + 1
			s.pause.Reset()
			s.lines.clear()
			if time.Since(s.at) >= commitEvery {
				s.commit()
			}
		case quiet:
			if err := s.handler.Idle(working); err != nil {
				return true, fmt.Errorf("idle at offset %d: %w", s.next, err)
			}
			s.commit()
		}
		if failed == nil {
			continue
		}
		if err := s.interpret(ctx, failed); err != nil {
			return false, err
		}
		if errors.Is(failed, kafkago.OffsetOutOfRange) { // this reader has given up
			reader.Close()
			reader = s.reader(wires)
		}
	}
}

// A fetcher is what fetch needs of a kafka-go reader.
type fetcher interface {
	FetchMessage(context.Context) (kafkago.Message, error)
	Stats() kafkago.ReaderStats
}

// fetch waits up to PollInterval for a record and adds what else has arrived. It
// may return records and the error that came after them; quiet says that neither
// came.
func (s *session) fetch(ctx context.Context, reader fetcher, batch []Record) (_ []Record, quiet bool, err error) {
	poll, cancel := context.WithTimeout(ctx, s.cfg.PollInterval)
	defer cancel()
	m, err := reader.FetchMessage(poll)
	switch {
	case err != nil && err == poll.Err(): // and not what came at the same moment
		return batch, true, nil
	case err != nil:
		return batch, false, err
	}
	bytes := 0
	for arrived := reader.Stats().QueueLength; ; arrived-- {
		batch = append(batch, fromMessage(&m))
		bytes += len(m.Key) + len(m.Value)
		if arrived == 0 {
			arrived = reader.Stats().QueueLength // the queue is short; it has been filled meanwhile
		}
		if arrived == 0 || len(batch) == cap(batch) || bytes >= batchBytes {
			return batch, false, nil
		}
		if m, err = reader.FetchMessage(ctx); err != nil {
			return batch, false, err
		}
	}
}

func (s *session) reader(w *wires) *kafkago.Reader {
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers:       s.cfg.Brokers,
		Topic:         s.cfg.Topic,
		Partition:     s.partition,
		Dialer:        s.cfg.dialer(w),
		QueueCapacity: queueRecords,
		MinBytes:      1,
		MaxBytes:      fetchBytes,
		MaxWait:       fetchWait,
		// Minus one: no goroutine that asks for the lag; records carry the log's end.
		ReadLagInterval:       -1,
		ReadBackoffMin:        minPause,
		ReadBackoffMax:        maxPause,
		MaxAttempts:           1, // hear of every failure; we do the waiting and the logging
		OffsetOutOfRangeError: true,
	})
	// A negative or absolute offset is set before the first fetch, which cannot fail.
	if err := reader.SetOffset(s.next); err != nil {
		panic(fmt.Sprintf("kafka: a reader just made refuses its offset: %v", err))
	}
	return reader
}

// start finds where to begin and whether the log still has it.
func (s *session) start(ctx context.Context) error {
	next, ok := s.handler.Position()
	var doubted time.Time
	for pause := newPause(); ; wait(ctx, pause) {
		first, end, err := bounds(ctx, &s.cfg.Config, s.client, s.cfg.Topic, s.partition)
		if err != nil {
			return err
		}
		log := s.cfg.Log.With("topic", s.cfg.Topic, "partition", s.partition, "first", first, "end", end)
		switch {
		case ok:
		case first > 0: // a new state on an old topic, or one that was lost: they look the same
			next = first
			log.Warn("kafka: reading from what is left of the log: retention has taken its beginning")
		default:
			next = first
			log.Info("kafka: reading from the beginning")
		}
		s.next = next
		if next <= end {
			log.Debug("kafka: reading", "next", next)
			if !ok || first >= next { // nothing is absorbed, or retention has taken it
				return s.gap(first)
			}
			err := s.follow(ctx)
			if !errors.Is(err, kafkago.OffsetOutOfRange) {
				return err
			}
		}
		// A broker that is recovering its log shows an early end for a moment, and
		// retention may come between two questions.
		if doubted.IsZero() {
			doubted = time.Now()
		}
		switch {
		case time.Since(doubted) <= patience:
		case next > end:
			return s.behind(end)
		default:
			log.Warn("kafka: the log's bounds say that it has the record before the position, and it has not: going on", "next", next)
			return nil
		}
	}
}

// gap returns ErrGap if the log begins beyond the next offset, or moves on to
// its beginning if that is accepted.
func (s *session) gap(first int64) error {
	if first <= s.next {
		return nil
	}
	if !s.cfg.AcceptGap {
		return fmt.Errorf("%w: the state has absorbed offsets below %d, the log begins at %d, so %d offsets are gone; go on without them with --accept-gap, or begin with an empty state",
			ErrGap, s.next, first, first-s.next)
	}
	s.cfg.Log.Warn("kafka: going on after records lost to retention", "topic", s.cfg.Topic, "partition", s.partition, "from", s.next, "to", first)
	s.next = first
	return nil
}

func (s *session) behind(end int64) error {
	return fmt.Errorf("%w: the state has absorbed offsets below %d, the log ends at %d; the topic was created anew or this is another cluster: name the right one, or begin with an empty state",
		ErrBehind, s.next, end)
}

// admit looks at the offsets that a batch leaves out. kafka-go skips silently
// over what retention deleted; compaction and transactions leave holes as well,
// which are no loss. A log that does not begin beyond the hole has lost nothing.
func (s *session) admit(ctx context.Context, batch []Record) error {
	next := s.next
	for i := range batch {
		if batch[i].Offset < next {
			return fmt.Errorf("offset %d after %d: the broker went back", batch[i].Offset, next-1)
		}
		if batch[i].Offset > next {
			first, _, err := bounds(ctx, &s.cfg.Config, s.client, s.cfg.Topic, s.partition)
			if err != nil {
				return err
			}
			before := s.next
			s.next = next
			err = s.gap(min(first, batch[i].Offset))
			s.next = before
			return err
		}
		next++
	}
	return nil
}

// interpret decides what an error of the reader means: nil to go on.
func (s *session) interpret(ctx context.Context, err error) error {
	if p := permanent(err); p != nil {
		return p
	}
	if errors.Is(err, kafkago.OffsetOutOfRange) {
		return s.outOfRange(ctx)
	}
	// A reader tries again by itself, at most once a second, for ever.
	if n, ok := s.lines.open(); ok {
		s.cfg.Log.Warn("kafka: reading again", "topic", s.cfg.Topic, "partition", s.partition, "next", s.next, "error", err, "times", n)
	}
	return nil
}

// outOfRange asks for a while whether the log really ends before our position.
func (s *session) outOfRange(ctx context.Context) error {
	pause := newPause()
	for since := time.Now(); ; wait(ctx, pause) {
		_, end, err := bounds(ctx, &s.cfg.Config, s.client, s.cfg.Topic, s.partition)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case s.next <= end:
			return nil
		case time.Since(since) > patience:
			return s.behind(end)
		}
	}
}

// commit tells the group how far the handler has come. It is advice, for lag
// monitors and for people: nothing reads it back, so a failure is only noted.
func (s *session) commit() {
	if s.next == s.committed {
		return
	}
	s.at = time.Now()
	err := s.gen.CommitOffsets(map[string]map[int]int64{s.cfg.Topic: {s.partition: s.next}})
	if err != nil {
		s.cfg.Log.Debug("kafka: committing the group's offset", "group", s.cfg.Group, "partition", s.partition, "offset", s.next, "error", err)
		return
	}
	s.committed = s.next
}
