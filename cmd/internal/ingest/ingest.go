// Package ingest writes labelled events to a model's topic: from a source, in
// order and resumable, and over HTTP.
//
//	source ─> items ─> chunks of records ─ Publish ─> acknowledged by all replicas
//	                                         └ then the next chunk
//
// Chunks follow one another, so that the topic always holds the source's events
// up to some ordinal (with several partitions: up to the last chunk). After a
// crash the newest ordinal in the topic says where to go on, provided that the
// source still has the same event there.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A Publisher writes records in order and returns when all are acknowledged.
type Publisher interface {
	Publish(ctx context.Context, records ...kafka.Record) error
}

// A Config describes one run over a source.
type Config struct {
	Publisher Publisher
	Topic     string
	Resume    *Mark         // where the topic ends; nil: from the source's beginning
	Once      bool          // the source can be read only once: it is sent from its beginning
	Chunk     int           // ordinals of the source per acknowledged chunk; default 500
	Linger    time.Duration // the longest that an event waits for its chunk to fill; default 20 ms
	Rate      float64       // events a second; 0: as fast as the brokers take them
	Rejected  func(error)   // called for every item that cannot be learnt from
	Sent      func(n int)   // called after each acknowledged chunk
	Log       *slog.Logger
}

// Stats counts what a run did.
type Stats struct {
	Sent     int // events acknowledged
	Skipped  int // events that the topic held already
	Rejected int // items that cannot be learnt from
}

// A Mark is where a topic ends: the newest event that ingest wrote to it.
type Mark struct {
	Ordinal    int    // of the event in its source
	ID         string // of that event
	Partitions int
}

// markWindow is how many records from a partition's end FindMark looks through:
// events over HTTP may stand behind the last one from a source.
const markWindow = 10_000

// FindMark looks for the last record from a source in each of the topic's
// partitions. It returns nil where there is none.
func FindMark(ctx context.Context, cfg kafka.Config, topic string) (*Mark, error) {
	first, _, err := kafka.Offsets(ctx, cfg, topic)
	if err != nil {
		return nil, err
	}
	var mark *Mark
	for partition := range first {
		record, ok, err := kafka.LastRecordWith(ctx, cfg, topic, partition, stream.HeaderOrdinal, markWindow)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		text, _ := stream.FindHeader(record.Headers, stream.HeaderOrdinal)
		ordinal, err := strconv.Atoi(text)
		if err != nil {
			continue // somebody else's header of that name: not our mark
		}
		e, err := stream.DecodeRecord(record.Headers, record.Value)
		if err != nil {
			continue
		}
		if mark == nil || ordinal > mark.Ordinal {
			mark = &Mark{Ordinal: ordinal, ID: e.ID, Partitions: len(first)}
		}
	}
	return mark, nil
}

// Items is what a source yields: items in order of their ordinals, with
// *source.Rejection errors between them; any other error ends it.
type Items = iter.Seq2[source.Item, error]

// Source publishes a source's events, from where cfg.Resume says, until the
// source or ctx ends. An error in the middle leaves a prefix of the source in
// the topic.
func Source(ctx context.Context, cfg Config, open func() (Items, error)) (Stats, error) {
	if cfg.Chunk <= 0 {
		cfg.Chunk = 500
	}
	if cfg.Linger <= 0 {
		cfg.Linger = 20 * time.Millisecond
	}
	var stats Stats
	from, err := resumeFrom(cfg, open)
	if err != nil {
		return stats, err
	}
	items, err := open()
	if err != nil {
		return stats, err
	}
	// The reader is a chunk ahead of the publisher, no more.
	read := make(chan outgoing, cfg.Chunk)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(read)
		return readItems(ctx, cfg, items, from, &stats, read)
	})
	sent := 0
	g.Go(func() error {
		return publish(ctx, cfg, read, &sent)
	})
	err = g.Wait()
	stats.Sent = sent
	return stats, err
}

// resumeFrom returns the ordinal to go on with: 0 unless the source holds, at
// the mark's ordinal, the event that the mark names.
func resumeFrom(cfg Config, open func() (Items, error)) (int, error) {
	switch {
	case cfg.Resume == nil:
		return 0, nil
	case cfg.Once:
		cfg.Log.Warn("standard input cannot be compared with what the topic holds: all of it is sent")
		return 0, nil
	}
	items, err := open()
	if err != nil {
		return 0, err
	}
	for item, err := range items {
		var rejected *source.Rejection
		if err != nil && !errors.As(err, &rejected) {
			return 0, err
		}
		if err != nil || item.Ordinal < cfg.Resume.Ordinal {
			continue
		}
		if item.Ordinal > cfg.Resume.Ordinal || item.Event.ID != cfg.Resume.ID {
			break
		}
		from := item.Ordinal + 1
		if cfg.Resume.Partitions > 1 { // other partitions may lack some of the last chunk
			from = item.Ordinal / cfg.Chunk * cfg.Chunk
		}
		cfg.Log.Info("the topic holds the beginning of this source: going on behind it", "ordinal", from)
		return from, nil
	}
	cfg.Log.Warn("the topic does not end in this source: all of it is sent. If it is the same source and has changed since, "+
		"for instance by messages that were deleted, what was learnt before is learnt again",
		"ordinal", cfg.Resume.Ordinal, "id", cfg.Resume.ID)
	return 0, nil
}

// Holds reports whether a source holds the event that a mark names.
func Holds(items Items, mark *Mark) bool {
	for item, err := range items {
		if err == nil && item.Ordinal >= mark.Ordinal {
			return item.Ordinal == mark.Ordinal && item.Event.ID == mark.ID
		}
	}
	return false
}

// An outgoing is an encoded event on its way to the publisher.
type outgoing struct {
	ordinal int
	record  kafka.Record
}

func readItems(ctx context.Context, cfg Config, items Items, from int, stats *Stats, out chan<- outgoing) error {
	for item, err := range items {
		var rejected *source.Rejection
		switch {
		case errors.As(err, &rejected):
			stats.Rejected++
			if cfg.Rejected != nil {
				cfg.Rejected(err)
			}
			continue
		case err != nil:
			return err
		case item.Ordinal < from:
			stats.Skipped++
			continue
		}
		record, err := Record(&item.Event, cfg.Topic)
		if err != nil {
			stats.Rejected++
			if cfg.Rejected != nil {
				cfg.Rejected(err)
			}
			continue
		}
		record.Headers = append(record.Headers,
			kafka.Header{Key: stream.HeaderOrdinal, Value: strconv.AppendInt(nil, int64(item.Ordinal), 10)})
		if item.Truth != item.Event.Label {
			record.Headers = append(record.Headers,
				kafka.Header{Key: stream.HeaderTrueLabel, Value: []byte(item.Truth.String())})
		}
		select {
		case out <- outgoing{item.Ordinal, record}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Record encodes an event for a topic, with the key that keeps one recipient's
// events in order. Its time is the time of writing: by the event's own, which
// may be years ago, Kafka's retention would delete it at once.
func Record(e *stream.Event, topic string) (kafka.Record, error) {
	value, headers, err := e.EncodeRecord()
	if err != nil {
		return kafka.Record{}, err
	}
	return kafka.Record{Topic: topic, Key: Key(e), Value: value, Headers: headers}, nil
}

func publish(ctx context.Context, cfg Config, read <-chan outgoing, sent *int) error {
	var (
		chunk []kafka.Record
		last  int // ordinal of the chunk's first event, divided by the chunk's size
		timer = time.NewTimer(cfg.Linger)
		start = time.Now()
	)
	defer timer.Stop()
	flush := func() error {
		if len(chunk) == 0 {
			return nil
		}
		if err := cfg.Publisher.Publish(ctx, chunk...); err != nil {
			return fmt.Errorf("publish to %s: %w", cfg.Topic, err)
		}
		*sent += len(chunk)
		if cfg.Sent != nil {
			cfg.Sent(len(chunk))
		}
		chunk = chunk[:0]
		return nil
	}
	for {
		select {
		case out, ok := <-read:
			if !ok {
				return flush()
			}
			if len(chunk) > 0 && out.ordinal/cfg.Chunk != last {
				if err := flush(); err != nil {
					return err
				}
			}
			if cfg.Rate > 0 {
				due := start.Add(time.Duration(float64(*sent+len(chunk)) / cfg.Rate * float64(time.Second)))
				if wait := time.Until(due); wait > 0 {
					if wait > cfg.Linger {
						if err := flush(); err != nil {
							return err
						}
					}
					if err := pause(ctx, wait); err != nil {
						return err
					}
				}
			}
			if len(chunk) == 0 {
				last = out.ordinal / cfg.Chunk
				timer.Reset(cfg.Linger)
			}
			chunk = append(chunk, out.record)
		case <-timer.C:
			if err := flush(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
