package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"time"

	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// An End is what a topic ends with: the newest event from a source in each partition.
// They may be of different sources, whose ordinals cannot be compared.
type End struct {
	Marks      []Mark // at most one for each partition
	Partitions int
	Moved      bool  // records stand where their keys do not belong: partitions were added
	Records    int64 // offsets between the beginning and the end of the log, of all partitions
}

// A Mark identifies an event or a standing that ingest wrote from a source.
type Mark struct {
	Partition int
	Ordinal   int // in its source
	ID        string
	Synthetic bool // the source was the generator of synthetic mail
}

// ErrMixed means that a topic holds synthetic mail and the source is real, or the
// reverse. A model must not learn both: name another directory, model or topic.
var ErrMixed = errors.New("synthetic and real mail must not be learnt by one model")

// checkMixed returns ErrMixed if the topic ends with events of the other kind.
func checkMixed(cfg Config) error {
	if cfg.Resume == nil {
		return nil
	}
	for _, m := range cfg.Resume.Marks {
		switch {
		case m.Synthetic && !cfg.Synthetic:
			return fmt.Errorf("topic %s holds synthetic mail (of hamlet up --demo): %w. "+
				"Name another directory with --data, or another model with --model", cfg.Topic, ErrMixed)
		case !m.Synthetic && cfg.Synthetic:
			return holdsReal(cfg.Topic)
		}
	}
	return nil
}

func holdsReal(topic string) error {
	return fmt.Errorf("topic %s holds events that are not synthetic mail: %w. "+
		"Name another directory with --data, or another model with --model", topic, ErrMixed)
}

const (
	// searchQuietly is how many records of a partition FindEnd reads before it logs.
	// Any number of events over HTTP may stand behind the last one from a source.
	searchQuietly = 10_000

	// searchLimit is how many of a topic's newest records FindEnd reads in all; see
	// MEASURED.md.
	searchLimit = 10_000_000

	// logEvery is how often a search logs its progress.
	logEvery = 10 * time.Second
)

// FindEnd finds the last event from a source in each partition. Without one the source
// would be sent again. So it searches ten million records, divided among the
// partitions, before it gives up with a warning.
func FindEnd(ctx context.Context, cfg kafka.Config, topic string, log *slog.Logger) (*End, error) {
	return search{quietly: searchQuietly, limit: searchLimit, logEvery: logEvery, log: log}.end(ctx, cfg, topic)
}

// A search has the limits of a FindEnd.
type search struct {
	quietly  int64 // records of a partition
	limit    int64 // records of the topic
	logEvery time.Duration
	log      *slog.Logger
}

func (s search) end(ctx context.Context, cfg kafka.Config, topic string) (*End, error) {
	first, end, err := kafka.Offsets(ctx, cfg, topic)
	if err != nil {
		return nil, err
	}
	found := &End{Partitions: len(first)}
	limit := max(s.limit/int64(max(len(first), 1)), s.quietly) // of each partition
	for partition := range first {
		records := end[partition] - first[partition]
		found.Records += records
		log := s.log.With("topic", topic, "partition", partition)
		hasOrdinal := s.hasOrdinal(log, min(records, limit))
		record, ok, err := kafka.LastRecord(ctx, cfg, topic, partition, limit, func(r kafka.Record) bool {
			has := hasOrdinal(r)
			if has && len(r.Key) > 0 && !stream.IsStanding(r.Headers) && kafka.PartitionOf(r.Key, found.Partitions) != partition {
				found.Moved = true
			}
			return has
		})
		if err != nil {
			return nil, err
		}
		if !ok && records > limit {
			log.Warn("no event of a source is among the partition's newest records, and older ones are not searched: "+
				"a source that was sent before them is sent and learnt again",
				"looked_through", limit, "records", records)
		}
		if mark, isEvent := markOf(record); ok && isEvent {
			mark.Partition = partition
			found.Marks = append(found.Marks, mark)
		}
	}
	return found, nil
}

// hasOrdinal returns a function that reports whether a record has an ordinal, and logs
// the search's progress.
func (s search) hasOrdinal(log *slog.Logger, records int64) func(kafka.Record) bool {
	seen, logged := int64(0), time.Now()
	return func(r kafka.Record) bool {
		seen++
		if seen == s.quietly+1 {
			log.Info("no event of a source is near the partition's end: looking for one further back", "records", records)
		} else if seen > s.quietly && time.Since(logged) >= s.logEvery {
			log.Info("still looking for an event of a source", "looked_through", seen)
			logged = time.Now()
		}
		_, ok := stream.FindHeader(r.Headers, stream.HeaderOrdinal)
		return ok
	}
}

// markOf returns the mark of an event from a source, and false for any other record.
func markOf(r kafka.Record) (Mark, bool) {
	text, _ := stream.FindHeader(r.Headers, stream.HeaderOrdinal)
	ordinal, err := strconv.Atoi(text)
	if err != nil {
		return Mark{}, false // no ordinal, or another producer's header of that name
	}
	id, err := idOf(r)
	return Mark{Ordinal: ordinal, ID: id, Synthetic: isSynthetic(r)}, err == nil
}

// idOf returns the id of the event or the standing in a record.
func idOf(r kafka.Record) (string, error) {
	if stream.IsStanding(r.Headers) {
		s, err := stream.DecodeStandingRecord(r.Headers, r.Value)
		return s.ID, err
	}
	e, err := stream.DecodeRecord(r.Headers, r.Value)
	return e.ID, err
}

func isSynthetic(r kafka.Record) bool {
	_, ok := stream.FindHeader(r.Headers, stream.HeaderSynthetic)
	return ok
}

// accepted yields items without their rejections.
func accepted(items Items) Items {
	return func(yield func(source.Item, error) bool) {
		for item, err := range items {
			var rejected *source.Rejection
			if !errors.As(err, &rejected) && !yield(item, err) {
				return
			}
		}
	}
}

// HeldBy returns the marks that a source holds, by ascending ordinal. It reads the source up
// to the largest ordinal of all marks.
func (e *End) HeldBy(items Items) (held []Mark, err error) {
	last := -1
	for _, m := range e.Marks {
		last = max(last, m.Ordinal)
	}
	if last < 0 {
		return nil, nil
	}
	for item, err := range accepted(items) {
		if err != nil {
			return nil, err
		}
		for _, m := range e.Marks {
			if m.Ordinal == item.Ordinal && m.ID == item.ID() {
				held = append(held, m)
			}
		}
		if item.Ordinal >= last {
			break
		}
	}
	return held, nil
}

// CheckSynthetic returns ErrMixed if a topic holds any event that is not synthetic
// mail. It reads the whole topic.
func CheckSynthetic(ctx context.Context, cfg kafka.Config, topic string) error {
	first, _, err := kafka.Offsets(ctx, cfg, topic)
	if err != nil {
		return err
	}
	for partition := range first {
		_, found, err := kafka.LastRecord(ctx, cfg, topic, partition, math.MaxInt64, func(r kafka.Record) bool { return !isSynthetic(r) && !stream.IsStanding(r.Headers) })
		if err != nil {
			return err
		}
		if found {
			return holdsReal(topic)
		}
	}
	return nil
}

// A resumption is what the topic holds of a source. The zero resumption is nothing.
//
// A source is sent chunk by chunk, and in a partition event by event. So the topic holds all
// chunks before the last one, and each partition holds its part of the last one up to its
// mark:
//
//	ordinal       … 499 │ 500 501 502 503 504 505
//	partition 0      ✓  │  ✓       ✓              mark 502
//	partition 1      ✓  │      ✓       ✗   ✗      mark 501
//	partition 2      ✓  │                      ✗  no mark of this source
type resumption struct {
	from  int   // all ordinals below are in the topic
	marks []int // by partition, the ordinal up to which it holds its own; nil: look at from alone
}

// holds reports whether the topic has an event or a standing of the source.
func (r *resumption) holds(ordinal int, key []byte, toAll bool) bool {
	switch {
	case ordinal < r.from:
		return true
	case len(r.marks) == 0 || ordinal > slices.Max(r.marks):
		return false
	case toAll:
		return ordinal <= slices.Min(r.marks)
	}
	return ordinal <= r.marks[kafka.PartitionOf(key, len(r.marks))]
}

// resume returns what the topic holds of the source: nothing unless the source holds one of
// the events that the topic ends with.
func resume(cfg Config, open func() (Items, error)) (r resumption, err error) {
	switch {
	case cfg.Resume == nil || cfg.Resume.Records == 0:
		return r, nil
	case len(cfg.Resume.Marks) == 0:
		cfg.Log.Info("the topic holds no event of a source: all of this one is sent", "records", cfg.Resume.Records)
		return r, nil
	case cfg.Once:
		cfg.Log.Warn("standard input cannot be compared with the topic: all of it is sent")
		return r, nil
	}
	items, err := open()
	if err != nil {
		return r, err
	}
	held, err := cfg.Resume.HeldBy(items)
	if err != nil {
		return r, err
	}
	if len(held) == 0 {
		newest := cfg.Resume.Marks[0]
		cfg.Log.Warn("the topic does not end in this source: all of it is sent. If messages were deleted from the source, "+
			"what was learnt before is learnt again",
			"ordinal", newest.Ordinal, "id", newest.ID)
		return r, nil
	}
	newest := held[len(held)-1].Ordinal
	r.from = newest + 1
	if cfg.Resume.Partitions > 1 { // other partitions may lack some of the last chunk
		r.from = newest / cfg.Chunk * cfg.Chunk
	}
	if cfg.Resume.Partitions > 1 && !cfg.Resume.Moved {
		r.marks = slices.Repeat([]int{r.from - 1}, cfg.Resume.Partitions)
		for _, m := range held {
			r.marks[m.Partition] = max(m.Ordinal, r.from-1)
		}
	}
	cfg.Log.Info("the topic holds the beginning of this source: going on behind it", "ordinal", r.from)
	return r, nil
}
