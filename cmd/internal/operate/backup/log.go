package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A Log says whether the log goes on where a checkpoint ends.
type Log struct {
	Topic     string     `json:"topic"`
	Partition int        `json:"partition"`       // always 0
	From      int64      `json:"from"`            // the records from this offset on are needed
	First     int64      `json:"first"`           // the topic has the offsets first to end−1
	End       int64      `json:"end"`             //
	Until     *time.Time `json:"until,omitempty"` // retention keeps the needed records so long; none: not known, or for ever
	Forever   bool       `json:"forever"`         // retention deletes nothing
	Problem   string     `json:"problem,omitempty"`
}

// patience is how long a command waits for a Kafka that does not answer.
const patience = 30 * time.Second

// goesOn compares the log of a model's events with the position of a checkpoint, as a learner does
// when it starts. An error is one of asking.
func goesOn(ctx context.Context, cfg stream.Logs, events string, at state.Position) (Log, error) {
	l := Log{Topic: stream.EventsTopic(events), From: at.Next}
	log, err := cfg.Open(l.Topic)
	if err != nil {
		return l, err
	}
	defer log.Close()
	asked := follow.Config{Log: log, Name: "topic " + l.Topic, MaxOutage: patience}
	b, err := follow.Bounds(ctx, asked)
	switch l.First, l.End = b.First, b.End; {
	case errors.Is(err, stream.ErrNoLog):
		l.Problem = fmt.Sprintf("there is no topic %s; --events-of NAME=OTHER says whose events a model learns", l.Topic)
		return l, nil
	case errors.Is(err, kafka.ErrPartitions):
		l.Problem = err.Error()
		return l, nil
	case err != nil:
		return l, err
	case l.From > l.End:
		l.Problem = fmt.Sprintf("the log ends at offset %d: it lost records, or is another log", l.End)
		return l, nil
	case l.From < l.First:
		l.Problem = fmt.Sprintf("retention has deleted the offsets %d to %d, which the model has not learnt",
			l.From, l.First-1)
		return l, nil
	}
	oldest := time.Now() // what is needed next is written from now on
	from, to := max(l.From-1, l.First), min(l.From+1, l.End)
	err = follow.Range(ctx, asked, from, to, func(r *stream.Record) error {
		switch {
		case r.Offset == l.From:
			oldest = r.Time
		case !follow.Absorbed(at, r):
			l.Problem = fmt.Sprintf("it is another log: the record at offset %d is not the one that the model learnt last",
				r.Offset)
		}
		return nil
	})
	if errors.Is(err, stream.ErrGone) { // retention was faster than this command
		l.Problem, err = fmt.Sprintf("the log has no offset %d any more", from), nil
	}
	if err != nil || l.Problem != "" {
		return l, err
	}
	return l, l.keep(ctx, cfg, oldest)
}

// keep says until when retention leaves the needed records, of which oldest is the time of the
// first. Kafka deletes a record at this time at the earliest. Where the topic is bounded by its
// size as well, or where this user may not read its settings, that is not known.
func (l *Log) keep(ctx context.Context, cfg stream.Logs, oldest time.Time) error {
	d, bounded, err := cfg.Retention(ctx, l.Topic)
	switch {
	case errors.Is(err, kafka.ErrAuth):
		return nil
	case err != nil:
		return err
	case bounded:
	case d < 0:
		l.Forever = true
	default:
		until := oldest.Add(d).UTC().Truncate(time.Second)
		l.Until = &until
	}
	return nil
}

// String says all of it in a sentence.
func (l *Log) String() string {
	where := fmt.Sprintf("topic %s: needed from offset %d on", l.Topic, l.From)
	if l.Problem != "" {
		return where + ". It does not go on there: " + l.Problem
	}
	kept := "until when they are kept is not known here"
	switch {
	case l.Forever:
		kept = "kept for ever"
	case l.Until != nil:
		kept = "kept until " + cli.Stamp(*l.Until) + " at least"
	}
	if l.From == l.End {
		return where + ". Nothing follows yet; what is written now is " + kept
	}
	return fmt.Sprintf("%s. %d follow, %s", where, l.End-l.From, kept)
}
