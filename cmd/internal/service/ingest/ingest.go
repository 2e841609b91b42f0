// Package ingest writes labelled events to a model's topic: from a source, in order
// and resumable, over HTTP, and from a topic that one principal writes ([Copy]).
//
//	end, err := ingest.FindEnd(ctx, events, log)
//	if err != nil {
//		return err
//	}
//	cfg := ingest.Config{Events: topic, Resume: end, Log: log}
//	stats, err := ingest.Send(ctx, cfg, input)
//
// A source is sent in chunks. Each chunk is acknowledged by all in-sync replicas
// before the next is sent. So the topic always holds the source's events up to some
// ordinal. After a crash its newest event shows where to continue, if the source still has
// that one at its ordinal.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/process/clock"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// A Config describes one run over a source.
type Config struct {
	Events   stream.Appender // the model's topic
	Resume   *End            // what the topic ends with; nil: start at the source's beginning
	Chunk    int             // events per acknowledged chunk; default 500
	Linger   time.Duration   // the longest that an event waits for its chunk to fill; default 20 ms
	Rate     float64         // events a second; 0: no limit
	Rejected func(error)     // called for each item that no model can learn from; may be nil
	Sent     func(n int)     // called after each acknowledged chunk; may be nil
	Log      *slog.Logger
}

// Stats counts what a run did.
type Stats struct {
	Sent     int // events acknowledged
	Skipped  int // events that the topic had already
	Rejected int // items that no model can learn from
}

// Items are what a source yields: items by ascending ordinal, and *source.Rejection
// errors between them. Any other error is the last.
type Items = iter.Seq2[source.Item, error]

// Send publishes the events of in, starting where cfg.Resume says, until they or ctx
// end. After an error the topic holds a prefix of them. It
// returns ErrMixed, and sends nothing, if the topic holds mail of the other kind.
func Send(ctx context.Context, cfg Config, in *Input) (Stats, error) {
	cfg.Chunk = cmp.Or(cfg.Chunk, 500)
	cfg.Linger = cmp.Or(cfg.Linger, 20*time.Millisecond)
	var stats Stats
	if err := checkMixed(cfg.Resume, in.Synthetic); err != nil {
		return stats, err
	}
	from, err := resume(cfg, in)
	if err != nil {
		return stats, err
	}
	items, err := in.Items()
	if err != nil {
		return stats, err
	}
	events := make(chan stream.Record, max(1, cfg.Chunk/4)) // that are encoded while a chunk is published
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(events)
		return encode(ctx, cfg, items, in.Synthetic, from, &stats, events)
	})
	p := publisher{Config: cfg, timer: time.NewTimer(cfg.Linger), start: time.Now()}
	g.Go(func() error { return p.run(ctx, events) })
	err = g.Wait()
	stats.Sent = p.sent
	return stats, err
}

// encode sends the items from an ordinal on to events.
func encode(ctx context.Context, cfg Config, items Items, synthetic bool, from int, stats *Stats,
	events chan<- stream.Record) error {
	for item, err := range items {
		var rejected *source.Rejection
		if err != nil && !errors.As(err, &rejected) {
			return err
		}
		var record stream.Record
		if err == nil {
			if item.Ordinal < from {
				stats.Skipped++
				continue
			}
			record, err = encodeItem(&item)
		}
		if err != nil {
			stats.Rejected++
			if cfg.Rejected != nil {
				cfg.Rejected(err)
			}
			continue
		}
		record.Headers = append(record.Headers,
			stream.Header{Key: stream.HeaderOrdinal, Value: strconv.AppendInt(nil, int64(item.Ordinal), 10)})
		if synthetic {
			record.Headers = append(record.Headers, stream.Header{Key: stream.HeaderSynthetic, Value: []byte("1")})
		}
		select {
		case events <- record:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func encodeItem(item *source.Item) (stream.Record, error) {
	if item.Standing != nil {
		return StandingRecord(item.Standing)
	}
	return Record(&item.Event)
}

// StandingRecord encodes a standing. Its key is its type: the keys of events are
// those of tenants and messages.
func StandingRecord(s *stream.Standing) (stream.Record, error) {
	value, headers, err := s.EncodeRecord()
	if err != nil {
		return stream.Record{}, err
	}
	return stream.Record{Key: []byte(stream.TypeStanding), Value: value, Headers: headers}, nil
}

// Record encodes an event. Its time is that of writing: with the event's
// own time, which may be years ago, retention would delete it at once.
func Record(e *stream.Event) (stream.Record, error) {
	value, headers, err := e.EncodeRecord()
	if err != nil {
		return stream.Record{}, err
	}
	return stream.Record{Key: Key(e), Value: value, Headers: headers}, nil
}

// chunkBytes ends a chunk before Chunk does, if its mails are large: they are in memory three times, as records, framed
// and encoded ahead.
const chunkBytes = 1 << 20

// A publisher collects events into chunks and publishes them. One goroutine uses it.
type publisher struct {
	Config
	chunk []stream.Record // collected and not sent
	bytes int             // that they have
	timer *time.Timer     // fires Linger after the chunk's first event
	start time.Time
	sent  int // records acknowledged
}

// run publishes events until their channel is closed.
func (p *publisher) run(ctx context.Context, events <-chan stream.Record) error {
	defer p.timer.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return p.flush(ctx)
			}
			if err := p.add(ctx, e); err != nil {
				return err
			}
		case <-p.timer.C:
			if err := p.flush(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add adds an event to the chunk, when the rate allows it and the chunk before it is
// sent.
func (p *publisher) add(ctx context.Context, e stream.Record) error {
	due := p.start
	if p.Rate > 0 {
		due = due.Add(time.Duration(float64(p.sent+len(p.chunk)) / p.Rate * float64(time.Second)))
	}
	if time.Until(due) > p.Linger {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	if wait := time.Until(due); wait > 0 && !clock.Sleep(ctx, wait) {
		return ctx.Err()
	}
	if len(p.chunk) == 0 {
		p.timer.Reset(p.Linger)
	}
	p.chunk, p.bytes = append(p.chunk, e), p.bytes+e.Size()
	if len(p.chunk) < p.Chunk && p.bytes < chunkBytes {
		return nil
	}
	return p.flush(ctx)
}

// flush publishes the chunk.
func (p *publisher) flush(ctx context.Context) error {
	if len(p.chunk) == 0 {
		return nil
	}
	if err := p.Events.Append(ctx, p.chunk...); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	p.sent += len(p.chunk)
	if p.Sent != nil {
		p.Sent(len(p.chunk))
	}
	clear(p.chunk) // free their memory
	p.chunk, p.bytes = p.chunk[:0], 0
	return nil
}

// Key returns the Kafka key of an event: its tenant and, for a mail, the identity of the
// message. No model reads it: it is for others who read the topic and want all that is said
// of a message together. No key shows an address.
//
// That identity is the event's Of, where this is one, as the body can be an altered copy. The Of
// of an unlearn may be the id of an event, so its body tells.
//
// A text or a vector has its tenant as key. Clients that correct those need not know how an
// identity is made.
func Key(e *stream.Event) []byte {
	key := []byte(e.Tenant)
	if e.Body.Kind != stream.Mail {
		return key
	}
	return append(append(key, '/'), identityOf(e)...)
}

// identityOf returns the identity of a mail that an event is about.
func identityOf(e *stream.Event) string {
	if e.Of != "" && (e.Action == stream.Correct || e.Action == stream.Assume) {
		return e.Of
	}
	return mail.IdentityOf(e.Tenant, e.Body.Mail)
}
