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

// A JournalPosition says where a line stands in the journal: a later line has a larger one. The
// zero place stands for the end of the journal.
type JournalPosition struct {
	Sequence uint64 // of the message in the stream
	Line     int    // of the message, from 0
}

// Before reports whether p stands before other.
func (p JournalPosition) Before(other JournalPosition) bool {
	switch {
	case p == JournalPosition{}:
		return false
	case other == JournalPosition{}:
		return true
	case p.Sequence != other.Sequence:
		return p.Sequence < other.Sequence
	}
	return p.Line < other.Line
}

// A JournalLine is a line of the journal and where it stands. Of one that was passed over, it has
// the time at which the line was written, and nothing more.
type JournalLine struct {
	stream.JournalEntry
	Position JournalPosition
	Passed   bool
}

// How much of the stream is read at once from its end: little at first, because a page of lines
// is often there.
const (
	firstStep = 256 << 10 // bytes
	lastStep  = 8 << 20
)

// ReadJournalBack yields the decisions of a model's journal that stand before a place, the newest
// first, back to those that were written at since (zero: all of them). It passes over the lines which
// wanted (nil: all) does not take, as the bytes that were written: to decode a line costs some ten
// times as much as to look for a few bytes in it. It holds 9 MB of the stream at most, and what the
// client has fetched ahead: older messages of a step are let go, and read again in the next. Errors
// are those of [ReadJournal].
//
// Decisions stand in the order in which scorers wrote them. Of several scorers, the order of
// their times may differ from that by a second.
func ReadJournalBack(ctx context.Context, conn *natsgo.Conn, model string, before JournalPosition, since time.Time,
	wanted func(line []byte) bool) iter.Seq2[JournalLine, error] {
	return func(yield func(JournalLine, error) bool) {
		err := readBack(ctx, conn, model, before, since, wanted, yield)
		if err != nil {
			yield(JournalLine{}, fmt.Errorf("read the journal %s: %w", JournalStream, err))
		}
	}
}

func readBack(ctx context.Context, conn *natsgo.Conn, model string, before JournalPosition, since time.Time,
	wanted func([]byte) bool, yield func(JournalLine, error) bool) error {
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
	if (before != JournalPosition{}) {
		end = min(end, before.Sequence+1)
	}
	for step := uint64(firstStep); end > state.FirstSeq; step = min(2*step, lastStep) {
		begin := state.FirstSeq
		if n := max(1, step/each); end-begin > n {
			begin = end - n
		}
		lines := stored{stream: JournalStream, subjects: []string{JournalSubject(model)}, first: begin, last: end - 1,
			what: "decisions"}
		var found []rawMessage
		held, dropped := 0, false // bytes of found, and whether older messages were let go
		begun := false            // a message is older than since
		err := lines.each(ctx, conn, func(m jetstream.Msg, sequence uint64) bool {
			written := time.Time{}
			if at, err := m.Metadata(); err == nil {
				if written = at.Timestamp; written.Before(since) {
					begun = true
					return true
				}
			}
			found, held = append(found, rawMessage{m.Data(), m.Subject(), sequence, written}), held+len(m.Data())
			for held > lastStep && len(found) > 1 {
				held -= len(found[0].data)
				found[0] = rawMessage{} // frees it
				found, dropped = found[1:], true
			}
			return true
		})
		if err != nil {
			return err
		}
		if dropped { // the messages here are longer than those of the stream on average
			begin = found[0].sequence
			each = max(each, uint64(held)/(end-begin))
		}
		for i, m := range slices.Backward(found) {
			found[i] = rawMessage{}
			for n, line := range slices.Backward(slices.Collect(bytes.Lines(m.data))) {
				raw := rawLine{line, m.subject, JournalPosition{m.sequence, n}, m.written}
				if (before != JournalPosition{}) && !raw.position.Before(before) {
					continue
				}
				l, err := raw.decode(model, wanted)
				if err == nil && l.Time.Before(since) {
					continue
				}
				if !yield(l, err) {
					return nil
				}
			}
		}
		if begun && !dropped {
			return nil
		}
		end = begin
	}
	return nil
}

// A rawMessage is a message of the stream with some lines.
type rawMessage struct {
	data     []byte
	subject  string
	sequence uint64
	written  time.Time
}

// A rawLine is a line as it was written.
type rawLine struct {
	line     []byte
	subject  string
	position JournalPosition
	written  time.Time
}

func (r *rawLine) decode(model string, wanted func([]byte) bool) (JournalLine, error) {
	l := JournalLine{Position: r.position}
	if wanted != nil && !wanted(r.line) {
		l.Time, l.Passed = r.written, true
		return l, nil
	}
	var err error
	if l.JournalEntry, err = decodeLine(r.subject, model, r.line); err != nil {
		err = &MessageError{Sequence: r.position.Sequence, Err: err}
	}
	return l, err
}

// ReadJournalLabels yields the labels of a model's journal that were written since a time (zero:
// all), the oldest first. Errors are those of [ReadJournal].
func ReadJournalLabels(ctx context.Context, conn *natsgo.Conn, model string, since time.Time) (
	all iter.Seq2[stream.JournalEntry, error]) {
	return readLines(ctx, conn, model, since, []string{JournalLabelSubject(model)}, "labels")
}
