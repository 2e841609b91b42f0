package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// ErrNoDecisions says that the stream of the journal is not there: no scorer has written yet.
// Try again later.
var ErrNoDecisions = errors.New("there is no journal of decisions yet")

// A JournalTail reads the newest part of a model's journal, and then what is written. Its
// reader decides which lines it decodes: under load it may count the others only. It
// remembers its place, so that it goes on there when [JournalTail.Run] is called again.
type JournalTail struct {
	Model string
	Since time.Duration          // the age of the oldest lines that are wanted
	Bytes int64                  // as many of what is there already, at most; the newest
	Begin func(cut, behind bool) // cut: Bytes leaves out some lines; behind: there are lines to read now
	Take  func(JournalBatch)

	from time.Time // of the oldest lines that are wanted, where Since is 0; zero: all
	last uint64    // the sequence of the last message taken; only Run uses it
}

// A JournalBatch is one message of the journal: the lines of one moment.
type JournalBatch struct {
	Labels bool // the lines are labels, no decisions
	Behind bool // more of what was there at the beginning follows

	model, subject string
	data           []byte
}

// Len returns the number of lines. It decodes none.
func (b *JournalBatch) Len() int {
	n := bytes.Count(b.data, []byte{'\n'})
	if len(b.data) > 0 && b.data[len(b.data)-1] != '\n' {
		n++
	}
	return n
}

// Each calls take for every stride-th line, from line first on. A line that cannot be read
// comes as an error.
func (b *JournalBatch) Each(first, stride int, take func(*stream.JournalEntry, error)) {
	i := 0
	for line := range bytes.Lines(b.data) {
		if i >= first && (i-first)%stride == 0 {
			e, err := decodeLine(b.subject, b.model, line)
			take(&e, err)
		}
		i++
	}
}

// Run calls t.Take for each message until ctx ends, and then returns nil. The error wraps
// [ErrNoDecisions] without a stream, and [ErrNoServer] when the connection is lost. It says so
// if the user may not read the journal.
func (t *JournalTail) Run(ctx context.Context, conn *natsgo.Conn) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("read the journal %s: %w", JournalStream, err)
	}
	// A consumer finds out late that its server went away and came back.
	lost := conn.StatusChanged(natsgo.DISCONNECTED, natsgo.RECONNECTING, natsgo.CLOSED)
	defer conn.RemoveStatusListener(lost)
	connected, leave := context.WithCancel(ctx)
	defer leave()
	if !conn.IsConnected() {
		return fmt.Errorf("read the journal %s: %w", JournalStream, ErrNoServer)
	}
	ended := make(chan struct{})
	defer func() { leave(); <-ended }()
	go func() {
		defer close(ended)
		select {
		case <-lost:
			leave()
		case <-connected.Done():
		}
	}()
	before := conn.LastError()
	err = t.run(connected, js)
	switch {
	case ctx.Err() != nil:
		return nil
	case connected.Err() != nil:
		return fmt.Errorf("read the journal %s: %w", JournalStream, ErrNoServer)
	case errors.Is(err, jetstream.ErrStreamNotFound):
		t.last = 0
		return fmt.Errorf("read the journal %s: %w", JournalStream, ErrNoDecisions)
	}
	return fmt.Errorf("read the journal %s: %w", JournalStream,
		readingError(err, JournalStream, "decisions", conn.LastError(), before))
}

func (t *JournalTail) run(ctx context.Context, js jetstream.JetStream) error {
	before := js.Conn().LastError()
	consumer, end, err := t.open(ctx, js)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, at, err := next(ctx, messages)
		switch {
		case err == nil:
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil &&
			!readingDenied(JournalStream, js.Conn().LastError(), before):
			continue // nothing was written
		default:
			return err
		}
		t.last = at.Sequence.Stream
		t.Take(JournalBatch{
			Labels: m.Subject() == JournalLabelSubject(t.Model), Behind: t.last < end && at.NumPending > 0,
			model: t.Model, subject: m.Subject(), data: m.Data(),
		})
	}
}

// open returns a consumer that begins at the place of t, and the stream's last sequence. It
// tells t.Begin.
func (t *JournalTail) open(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*attemptTimeout)
	defer cancel()
	s, err := js.Stream(ctx, JournalStream)
	if err != nil {
		return nil, 0, err
	}
	at := s.CachedInfo().State
	if at.LastSeq < t.last {
		t.last = 0 // another stream of this name
	}
	subjects := journalSubjectsOf(t.Model)
	from := t.from
	if t.Since > 0 {
		from = time.Now().Add(-t.Since)
	}
	consumer, err := js.OrderedConsumer(ctx, JournalStream, inOrder(subjects, t.last, from))
	if err != nil {
		return nil, 0, err
	}
	// Messages of all models are about equally long.
	most := at.Msgs
	if at.Bytes > uint64(t.Bytes) {
		most = max(1, uint64(float64(at.Msgs)*(float64(t.Bytes)/float64(at.Bytes))))
	}
	waiting := consumer.CachedInfo().NumPending
	cut := waiting > most || t.last > 0 && t.last+1 < at.FirstSeq
	if waiting > most {
		consumer, err = js.OrderedConsumer(ctx, JournalStream, inOrder(subjects, at.LastSeq-most, time.Time{}))
		if err != nil {
			return nil, 0, err
		}
	}
	t.Begin(cut, waiting > 0)
	return consumer, at.LastSeq, nil
}
