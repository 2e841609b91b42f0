package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
)

// An End is what a topic ends with.
type End struct {
	Log     string // what errors call it: "topic hamlet.events.default"
	Mark    *Mark  // the newest event from a source; nil: none was found
	Records int64  // offsets between the beginning and the end of the log
}

// A Mark identifies an event or a standing that ingest wrote from a source.
type Mark struct {
	Ordinal   int // in its source
	ID        string
	Synthetic bool // the source was the generator of synthetic mail
}

// ErrMixed means that a topic holds synthetic mail and the source is real, or the
// reverse. A model must not learn both: name another directory, model or topic.
var ErrMixed = errors.New("synthetic and real mail must not be learnt by one model")

// checkMixed returns ErrMixed if the topic ends with events of the other kind.
func checkMixed(end *End, synthetic bool) error {
	if end == nil || end.Mark == nil {
		return nil
	}
	switch held := end.Mark.Synthetic; {
	case held && !synthetic:
		return fmt.Errorf("%s holds synthetic mail (of hamlet up --demo): %w", end.Log, ErrMixed)
	case !held && synthetic:
		return holdsReal(end.Log)
	}
	return nil
}

func holdsReal(log string) error {
	return fmt.Errorf("%s holds events that are not synthetic mail: %w", log, ErrMixed)
}

const (
	// searchQuietly is how many records FindEnd reads before it logs. Any number of events
	// over HTTP may stand behind the last one from a source.
	searchQuietly = 10_000

	// searchLimit is how many of a topic's newest records FindEnd reads; see MEASURED.md.
	searchLimit = 10_000_000

	// logEvery is how often a search logs its progress.
	logEvery = 10 * time.Second
)

// FindEnd finds the last event from a source. Without one the source would be sent again.
// So it searches ten million records before it gives up with a warning.
func FindEnd(ctx context.Context, events follow.Config, log *slog.Logger) (*End, error) {
	return search{quietly: searchQuietly, limit: searchLimit, logEvery: logEvery,
		log: log.With("log", events.Name)}.end(ctx, events)
}

// A search has the limits of a FindEnd, in records.
type search struct {
	quietly  int64
	limit    int64
	logEvery time.Duration
	log      *slog.Logger
}

func (s search) end(ctx context.Context, events follow.Config) (*End, error) {
	bounds, err := follow.Bounds(ctx, events)
	if err != nil {
		return nil, err
	}
	found := &End{Log: events.Name, Records: bounds.End - bounds.First}
	record, ok, err := follow.Last(ctx, events, s.limit, s.hasOrdinal(min(found.Records, s.limit)))
	if err != nil {
		return nil, err
	}
	if !ok && found.Records > s.limit {
		s.log.Warn("no event of a source is among the topic's newest records, and older ones are not searched: "+
			"a source that was sent before them is sent and learnt again",
			"looked_through", s.limit, "records", found.Records)
	}
	if mark, isEvent := markOf(&record); ok && isEvent {
		found.Mark = &mark
	}
	return found, nil
}

// hasOrdinal returns a function that reports whether a record has an ordinal, and logs
// the search's progress.
func (s search) hasOrdinal(records int64) func(*stream.Record) bool {
	seen, logged := int64(0), time.Now()
	return func(r *stream.Record) bool {
		seen++
		if seen == s.quietly+1 {
			s.log.Info("no event of a source is near the topic's end: looking for one further back", "records", records)
		} else if seen > s.quietly && time.Since(logged) >= s.logEvery {
			s.log.Info("still looking for an event of a source", "looked_through", seen)
			logged = time.Now()
		}
		_, ok := stream.FindHeader(r.Headers, stream.HeaderOrdinal)
		return ok
	}
}

// markOf returns the mark of an event from a source, and false for any other record.
func markOf(r *stream.Record) (Mark, bool) {
	text, _ := stream.FindHeader(r.Headers, stream.HeaderOrdinal)
	ordinal, err := strconv.Atoi(text)
	if err != nil {
		return Mark{}, false // no ordinal, or another producer's header of that name
	}
	id, err := idOf(r)
	return Mark{Ordinal: ordinal, ID: id, Synthetic: isSynthetic(r)}, err == nil
}

// idOf returns the id of the event or the standing in a record.
func idOf(r *stream.Record) (string, error) {
	if stream.IsStanding(r.Headers) {
		s, err := stream.DecodeStandingRecord(r.Headers, r.Value)
		return s.ID, err
	}
	e, err := stream.DecodeRecord(r.Headers, r.Value)
	return e.ID, err
}

func isSynthetic(r *stream.Record) bool {
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

// isOf reports whether the mark is that of one of a source's items. It reads the source up
// to the mark's ordinal.
func (m *Mark) isOf(items Items) (bool, error) {
	for item, err := range accepted(items) {
		if err != nil {
			return false, err
		}
		if item.Ordinal >= m.Ordinal {
			return item.Ordinal == m.Ordinal && item.ID() == m.ID, nil
		}
	}
	return false, nil
}

// CheckSynthetic returns ErrMixed if a topic holds any event that is not synthetic
// mail. It reads the whole topic.
func CheckSynthetic(ctx context.Context, events follow.Config) error {
	_, found, err := follow.Last(ctx, events, math.MaxInt64,
		func(r *stream.Record) bool { return !isSynthetic(r) && !stream.IsStanding(r.Headers) })
	if found {
		err = holdsReal(events.Name)
	}
	return err
}

// resume returns the ordinal from which the source is to be sent. All of it is, unless the
// source holds the event that the topic ends with.
func resume(cfg Config, in *Input) (from int, err error) {
	switch {
	case cfg.Resume == nil || cfg.Resume.Records == 0:
		return 0, nil
	case cfg.Resume.Mark == nil:
		cfg.Log.Info("the topic holds no event of a source: all of this one is sent", "records", cfg.Resume.Records)
		return 0, nil
	case in.Once:
		cfg.Log.Warn("standard input cannot be compared with the topic: all of it is sent")
		return 0, nil
	}
	items, err := in.Items()
	if err != nil {
		return 0, err
	}
	newest := cfg.Resume.Mark
	held, err := newest.isOf(items)
	if err != nil {
		return 0, err
	}
	if !held {
		cfg.Log.Warn("the topic does not end in this source: all of it is sent. If messages were deleted from the source, "+
			"what was learnt before is learnt again",
			"ordinal", newest.Ordinal, "id", newest.ID)
		return 0, nil
	}
	cfg.Log.Info("the topic holds the beginning of this source: going on behind it", "ordinal", newest.Ordinal+1)
	return newest.Ordinal + 1, nil
}
