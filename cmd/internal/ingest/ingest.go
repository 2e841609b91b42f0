// Package ingest writes labelled events to a model's topic: from a source, in
// order and resumable, and over HTTP.
//
//	source ─> items ─> chunks of records ─ Publish ─> acknowledged by all replicas
//	                                         └ then the next chunk
//
// Chunks follow one another, so that the topic always holds the source's events
// up to some ordinal (with several partitions: up to the last chunk). After a
// crash the newest events in the topic say where to go on, provided that the
// source still has one of them at its ordinal.
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
	Resume    *End          // what the topic ends with; nil: from the source's beginning
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
