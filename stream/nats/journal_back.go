package nats

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// A JournalPlace says where a line stands in the journal: a later line has a larger one. The
// zero place stands for the end of the journal.
type JournalPlace struct {
	Sequence uint64 // of the message in the stream
	Line     int    // of the message, from 0
}

// Before reports whether p stands before other.
func (p JournalPlace) Before(other JournalPlace) bool {
	switch {
	case p == JournalPlace{}:
		return false
	case other == JournalPlace{}:
		return true
	case p.Sequence != other.Sequence:
		return p.Sequence < other.Sequence
	}
	return p.Line < other.Line
}

// A JournalLine is a line of the journal and where it stands.
type JournalLine struct {
	stream.JournalEntry
	Place JournalPlace
}

// How much of the stream is read at once from its end: little at first, because a page of lines
// is often there.
const (
	firstStep = 256 << 10 // bytes
	lastStep  = 8 << 20
)

// ReadJournalBack yields the decisions of a model's journal that stand before a place, the newest
// first, back to those that were written at since (zero: all of them). It holds some 20 MB of
// the stream at most. Errors are those of [ReadJournal].
//
// Decisions stand in the order in which scorers wrote them. Of several scorers, the order of
// their times may differ from that by a second.
func ReadJournalBack(ctx context.Context, conn *natsgo.Conn, model string, before JournalPlace, since time.Time) iter.Seq2[JournalLine, error] {
	return func(yield func(JournalLine, error) bool) {
		err := readBack(ctx, conn, model, before, since, yield)
		if err != nil {
			yield(JournalLine{}, fmt.Errorf("read the journal %s: %w", JournalStream, err))
		}
	}
}

func readBack(ctx context.Context, conn *natsgo.Conn, model string, before JournalPlace, since time.Time, yield func(JournalLine, error) bool) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	state, err := streamState(ctx, js, JournalStream, "decisions")
	if err != nil || state.Msgs == 0 {
		return err
	}
	each := max(1, state.Bytes/state.Msgs)
	end := state.LastSeq + 1 // messages from there on have been read
	if (before != JournalPlace{}) {
		end = min(end, before.Sequence+1)
	}
	for step := uint64(firstStep); end > state.FirstSeq; step = min(2*step, lastStep) {
		begin := state.FirstSeq
		if n := max(1, step/each); end-begin > n {
			begin = end - n
		}
		lines := stored{stream: JournalStream, subjects: []string{JournalSubject(model)}, first: begin, last: end - 1, what: "decisions"}
		var found []backLine
		begun := false // a message is older than since
		err := lines.each(ctx, conn, func(m jetstream.Msg, sequence uint64) bool {
			if place, err := m.Metadata(); err == nil && place.Timestamp.Before(since) {
				begun = true
				return true
			}
			found = appendLines(found, m, model, sequence)
			return true
		})
		if err != nil {
			return err
		}
		for _, l := range slices.Backward(found) {
			switch {
			case (before != JournalPlace{}) && !l.Place.Before(before), l.err == nil && l.Time.Before(since):
				continue
			}
			if !yield(l.JournalLine, l.err) {
				return nil
			}
		}
		if begun {
			return nil
		}
		end = begin
	}
	return nil
}

// A backLine is a line or why it cannot be read.
type backLine struct {
	JournalLine
	err error
}

func appendLines(dst []backLine, m jetstream.Msg, model string, sequence uint64) []backLine {
	n := 0
	for line := range bytes.Lines(m.Data()) {
		l := backLine{JournalLine: JournalLine{Place: JournalPlace{sequence, n}}}
		if l.JournalEntry, l.err = decodeLine(m.Subject(), model, line); l.err != nil {
			l.err = &JournalLineError{Sequence: sequence, Err: l.err}
		}
		dst = append(dst, l)
		n++
	}
	return dst
}

// ReadJournalLabels yields the labels of a model's journal that were written since a time (zero:
// all), the oldest first. Errors are those of [ReadJournal].
func ReadJournalLabels(ctx context.Context, conn *natsgo.Conn, model string, since time.Time) iter.Seq2[stream.JournalEntry, error] {
	return readLines(ctx, conn, model, since, []string{JournalLabelSubject(model)}, "labels")
}
