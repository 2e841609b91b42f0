package ingest

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// An End is what a topic ends with: the newest event from a source in each of
// its partitions. They need not be of one source: a partition that got nothing of
// the newest source still ends with one before it. Ordinals of different sources
// say nothing about each other.
type End struct {
	Marks      []Mark // at most one a partition
	Partitions int
	Records    int64 // offsets between the beginning of the log and its end, of all partitions
}

// A Mark is an event that ingest wrote from a source.
type Mark struct {
	Ordinal int    // in its source
	ID      string // of the event
}

const (
	// nearEnd is how many records from a partition's end FindEnd looks through
	// without a word: a second's work. Events over HTTP may stand behind the last one
	// from a source, as many as came since.
	nearEnd = 10_000

	// maxSearched is how many of a topic's newest records FindEnd looks through in
	// all, at every start. Of 1 kB each they are 12 s of the embedded Kafka (850,000 a
	// second, 2026-11-21), and a minute and a half of a network of 1 Gbit/s.
	maxSearched = 10_000_000

	// sayEvery is how often it says how far it is.
	sayEvery = 10 * time.Second
)

// FindEnd looks for the last event from a source in each partition, far behind the
// end if need be: who did not find it would send a source again, all of it. It gives
// up behind ten million records, shared by the partitions, and warns of it.
func FindEnd(ctx context.Context, cfg kafka.Config, topic string, log *slog.Logger) (*End, error) {
	return search{near: nearEnd, most: maxSearched, sayEvery: sayEvery, log: log}.end(ctx, cfg, topic)
}

// A search is FindEnd's, by its limits.
type search struct {
	near     int64 // records of a partition
	most     int64 // of the topic
	sayEvery time.Duration
	log      *slog.Logger
}

func (s search) end(ctx context.Context, cfg kafka.Config, topic string) (*End, error) {
	first, end, err := kafka.Offsets(ctx, cfg, topic)
	if err != nil {
		return nil, err
	}
	found := &End{Partitions: len(first)}
	most := max(s.most/int64(max(len(first), 1)), s.near) // of each partition
	for partition := range first {
		records := end[partition] - first[partition]
		found.Records += records
		record, ok, err := kafka.LastRecord(ctx, cfg, topic, partition, s.near, hasOrdinal)
		if err == nil && !ok && records > s.near {
			log := s.log.With("topic", topic, "partition", partition)
			log.Info("no event of a source is near the partition's end: looking for one further back", "records", min(records, most))
			record, ok, err = kafka.LastRecord(ctx, cfg, topic, partition, most, s.marked(log))
			if err == nil && !ok && records > most {
				log.Warn("no event of a source is among the partition's newest records, and older ones are not looked through: "+
					"a source that was sent before them is sent again, and learnt again",
					"looked_through", most, "records", records)
			}
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if mark, ok := markOf(record); ok {
			found.Marks = append(found.Marks, mark)
		}
	}
	return found, nil
}

// marked returns whether a record has an ordinal, and says now and then how many it
// was asked about.
func (s search) marked(log *slog.Logger) func(kafka.Record) bool {
	seen, said := 0, time.Now()
	return func(r kafka.Record) bool {
		seen++
		if time.Since(said) >= s.sayEvery {
			log.Info("still looking for an event of a source", "looked_through", seen)
			said = time.Now()
		}
		return hasOrdinal(r)
	}
}

func hasOrdinal(r kafka.Record) bool {
	_, ok := stream.FindHeader(r.Headers, stream.HeaderOrdinal)
	return ok
}

// markOf returns the mark of an event from a source, and false of any other record.
func markOf(r kafka.Record) (Mark, bool) {
	text, _ := stream.FindHeader(r.Headers, stream.HeaderOrdinal)
	ordinal, err := strconv.Atoi(text)
	if err != nil {
		return Mark{}, false // none, or somebody else's header of that name
	}
	e, err := stream.DecodeRecord(r.Headers, r.Value)
	return Mark{Ordinal: ordinal, ID: e.ID}, err == nil
}

// HeldBy returns how many of the marks a source holds, and the one of them with
// the largest ordinal. It reads the source up to the largest ordinal of all.
func (e *End) HeldBy(items Items) (n int, newest Mark, err error) {
	last := -1
	for _, m := range e.Marks {
		last = max(last, m.Ordinal)
	}
	if last < 0 {
		return 0, newest, nil
	}
	for item, err := range items {
		var rejected *source.Rejection
		switch {
		case errors.As(err, &rejected):
			continue
		case err != nil:
			return 0, newest, err
		}
		for _, m := range e.Marks {
			if m.Ordinal == item.Ordinal && m.ID == item.Event.ID {
				n, newest = n+1, m
			}
		}
		if item.Ordinal >= last {
			break
		}
	}
	return n, newest, nil
}

// HoldsOnly reports whether each of a topic's records is an event of a source, sent
// once or more often. It reads the source to its end and keeps two numbers an event,
// and the topic back to the newest record that is not of the source.
func HoldsOnly(ctx context.Context, cfg kafka.Config, topic string, items Items) (bool, error) {
	sent := make(map[int]uint64) // a hash of the id, by ordinal
	for item, err := range items {
		var rejected *source.Rejection
		switch {
		case errors.As(err, &rejected):
			continue
		case err != nil:
			return false, err
		}
		sent[item.Ordinal] = xxhash.Sum64String(item.Event.ID)
	}
	other := func(r kafka.Record) bool {
		mark, ok := markOf(r)
		id, held := sent[mark.Ordinal]
		return !ok || !held || id != xxhash.Sum64String(mark.ID)
	}
	first, _, err := kafka.Offsets(ctx, cfg, topic)
	if err != nil {
		return false, err
	}
	for partition := range first {
		if _, found, err := kafka.LastRecord(ctx, cfg, topic, partition, math.MaxInt64, other); found || err != nil {
			return false, err
		}
	}
	return true, nil
}

// resumeFrom returns the ordinal to go on with: 0 unless the source holds one of
// the events that the topic ends with.
func resumeFrom(cfg Config, open func() (Items, error)) (int, error) {
	switch {
	case cfg.Resume == nil || cfg.Resume.Records == 0:
		return 0, nil
	case len(cfg.Resume.Marks) == 0:
		cfg.Log.Info("the topic holds no event of a source: all of this one is sent", "records", cfg.Resume.Records)
		return 0, nil
	case cfg.Once:
		cfg.Log.Warn("standard input cannot be compared with what the topic holds: all of it is sent")
		return 0, nil
	}
	items, err := open()
	if err != nil {
		return 0, err
	}
	held, mark, err := cfg.Resume.HeldBy(items)
	switch {
	case err != nil:
		return 0, err
	case held == 0:
		newest := cfg.Resume.Marks[0]
		cfg.Log.Warn("the topic does not end in this source: all of it is sent. If it is the same source and has changed since, "+
			"for instance by messages that were deleted, what was learnt before is learnt again",
			"ordinal", newest.Ordinal, "id", newest.ID)
		return 0, nil
	}
	from := mark.Ordinal + 1
	if cfg.Resume.Partitions > 1 { // other partitions may lack some of the last chunk
		from = mark.Ordinal / cfg.Chunk * cfg.Chunk
	}
	cfg.Log.Info("the topic holds the beginning of this source: going on behind it", "ordinal", from)
	return from, nil
}
