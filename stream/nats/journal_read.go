package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// ReadJournal yields a model's decisions and their labels from a time on (zero: all), as far as the stream
// has come when it begins, in the order in which they were written: scorers write some
// tenths of a second late, and later after an outage. A line that cannot be read is yielded
// as an error, and the next ones follow; after any other error nothing follows. Without a
// stream it yields nothing.
func ReadJournal(ctx context.Context, conn *natsgo.Conn, model string, since time.Time) (
	all iter.Seq2[stream.JournalEntry, error]) {
	return readLines(ctx, conn, model, since, journalSubjectsOf(model), "decisions")
}

// readLines yields the lines that stand at some of a model's subjects.
func readLines(ctx context.Context, conn *natsgo.Conn, model string, since time.Time, subjects []string,
	what string) iter.Seq2[stream.JournalEntry, error] {
	return func(yield func(stream.JournalEntry, error) bool) {
		lines := stored{stream: JournalStream, subjects: subjects, since: since, what: what}
		err := lines.each(ctx, conn, func(m jetstream.Msg, sequence uint64) bool {
			for line := range bytes.Lines(m.Data()) {
				e, err := decodeLine(m.Subject(), model, line)
				if err == nil && e.Time.Before(since) {
					continue
				}
				if err != nil {
					err = &MessageError{Sequence: sequence, Err: err}
				}
				if !yield(e, err) {
					return false
				}
			}
			return true
		})
		if err != nil {
			yield(stream.JournalEntry{}, fmt.Errorf("read the journal %s: %w", JournalStream, err))
		}
	}
}

// journalSubjectsOf returns where a model's decisions and labels stand.
func journalSubjectsOf(model string) []string {
	return []string{JournalSubject(model), JournalLabelSubject(model)}
}

// FollowJournal calls take for each line of a model's journal from a time on, and goes on with
// the lines that are written later, until ctx ends; then it returns nil. It waits for a stream
// that is not there, and for a server that is away. A line may come twice after that. Lines that
// cannot be read are passed over. An error says that the user may not read the journal. Any other
// failure that lasts, of a server that is there, goes to failing once; FollowJournal tries again.
func FollowJournal(ctx context.Context, conn *natsgo.Conn, model string, since time.Time,
	take func(*stream.JournalEntry), failing func(error)) error {
	return followJournal(ctx, conn, model, since, take, failing, 2*time.Second, 15*time.Second)
}

// lasting is how many attempts fail, one behind the other and without a line, until that is told.
const lasting = 3

// followJournal looks for a stream that failed after a pause, and for one that is not there after
// a longer one.
func followJournal(ctx context.Context, conn *natsgo.Conn, model string, since time.Time,
	take func(*stream.JournalEntry), failing func(error), failed, absent time.Duration) error {
	t := JournalTail{Model: model, from: since, Bytes: math.MaxInt64, Begin: func(bool, bool) {}}
	t.Take = func(b JournalBatch) {
		b.Each(0, 1, func(e *stream.JournalEntry, err error) {
			if err == nil && !e.Time.Before(since) {
				take(e)
			}
		})
	}
	failures := 0
	for {
		pause, last, began := failed, t.last, time.Now()
		err := t.Run(ctx, conn)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrNoDecisions):
			pause, failures = absent, 0
		case t.last != last, errors.Is(err, ErrNoServer), time.Since(began) > time.Minute:
			failures = 0
		case errors.Is(err, errDenied):
			return err
		default:
			if failures++; failures == lasting {
				failing(err)
			}
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil
		}
	}
}

// decodeLine reads a line that was published to subject. Who may publish labels cannot
// publish decisions, and the reverse.
func decodeLine(subject, model string, line []byte) (stream.JournalEntry, error) {
	e, err := stream.DecodeJournalEntry(bytes.TrimSpace(line))
	if err == nil && (e.Label != stream.Unlabelled) != (subject == JournalLabelSubject(model)) {
		return stream.JournalEntry{}, fmt.Errorf("a line of another kind than its subject %s", subject)
	}
	return e, err
}
