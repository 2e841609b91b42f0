package review

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// Window is how old the answers in the queue are by default: a weekend and a day.
const Window = 72 * time.Hour

// Bounds of what a Reader reads at once.
const (
	mostLines = 100_000 // answers, the newest
	mostNew   = 10_000  // of them after the first time
	often     = 3 * time.Second
	seldom    = 30 * time.Second
	rest      = 30               // a Reader rests so many times as long as it has read: but often to seldom
	lateness  = 10 * time.Second // of labels: scorers and learners write late
)

// A Reader keeps a Queue up with a model's journal. Nothing is read but by Refresh. It is safe
// for concurrent use.
type Reader struct {
	*Queue
	conn   *natsgo.Conn
	model  string
	window time.Duration

	// OnLabel is called for each label that is read, maybe more than once; nil: nothing is. It is
	// set before the first Refresh.
	OnLabel func(e *stream.JournalEntry)

	turn   chan struct{}        // holds a value while somebody reads; he alone uses what follows
	top    nats.JournalPosition // of the newest answer that was read
	labels Labels
	next   time.Time // before that Refresh reads nothing
}

// Labels reads the labels of a model's journal, each time those that have come since. It is for one
// goroutine.
type Labels struct {
	conn  *natsgo.Conn
	model string
	read  time.Time // labels up to then have been read
}

// NewLabels returns a reader of a model's labels on conn, which the caller closes.
func NewLabels(conn *natsgo.Conn, model string) Labels { return Labels{conn: conn, model: model} }

// Read calls take for each label since a time that it has not read before, the oldest first, and maybe
// again for some of the last. If ctx ends before, it returns false and goes on from there the next time.
func (l *Labels) Read(ctx context.Context, since time.Time, take func(*stream.JournalEntry)) (all bool, err error) {
	began, until := time.Now(), time.Time{}
	if l.read.After(since) {
		since = l.read
	}
	for e, err := range nats.ReadJournalLabels(ctx, l.conn, l.model, since) {
		switch {
		case errors.As(err, new(*nats.MessageError)):
			continue
		case ended(ctx, err):
			if !until.IsZero() {
				l.read = until.Add(-lateness)
			}
			return false, nil
		case err != nil:
			return false, err
		}
		until = e.Time
		take(&e)
	}
	l.read = began.Add(-lateness)
	return true, nil
}

// NewReader returns a reader of a model's journal on conn, which the caller closes.
func NewReader(conn *natsgo.Conn, model string, window time.Duration) *Reader {
	return &Reader{Queue: NewQueue(), conn: conn, model: model, window: window, turn: make(chan struct{}, 1),
		labels: NewLabels(conn, model)}
}

// Since returns the time from which on answers count.
func (r *Reader) Since() time.Time { return time.Now().Add(-r.window) }

// Refresh reads what the journal has got since the last time, the newest answers first, unless
// that was just now: it rests thirty times as long as it has read, but for three seconds at least
// and half a minute at most. It reads mostNew answers at most, the first time mostLines. If ctx ends before, it
// returns nil and has what it has read. What it has not read is not looked at again.
func (r *Reader) Refresh(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil // another is at it
	}
	began := time.Now()
	if began.Before(r.next) {
		return nil
	}
	if !r.conn.IsConnected() {
		return fmt.Errorf("read the journal: %w", nats.ErrNoServer)
	}
	half := ctx
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	if err := r.readLabels(half); err != nil {
		return err
	}
	if err := r.readAnswers(ctx); err != nil {
		return err
	}
	r.next = time.Now().Add(min(max(rest*time.Since(began), often), seldom))
	return nil
}

// ended reports whether err is the end of ctx's time.
func ended(ctx context.Context, err error) bool {
	return err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

func (r *Reader) readLabels(ctx context.Context) error {
	_, err := r.labels.Read(ctx, r.Since(), func(e *stream.JournalEntry) {
		if r.OnLabel != nil {
			r.OnLabel(e)
		}
		r.Add(e)
	})
	return err
}

func (r *Reader) readAnswers(ctx context.Context) error {
	top, n, most := nats.JournalPosition{}, 0, mostLines
	for line, err := range nats.ReadJournalBack(ctx, r.conn, r.model, nats.JournalPosition{}, r.Since(), nil) {
		switch {
		case errors.As(err, new(*nats.MessageError)):
			continue
		case ended(ctx, err):
			r.rise(top)
			return nil
		case err != nil:
			return err
		}
		if n++; n == 1 {
			if top = line.Position; top.Before(r.top) {
				r.top = nats.JournalPosition{} // another stream of this name
			}
			if r.top != (nats.JournalPosition{}) {
				most = mostNew
			}
		}
		if r.top != (nats.JournalPosition{}) && !r.top.Before(line.Position) || n > most {
			break
		}
		r.Add(&line.JournalEntry)
	}
	r.rise(top)
	return nil
}

// rise notes the newest answer that was read, if one was.
func (r *Reader) rise(top nats.JournalPosition) {
	if top != (nats.JournalPosition{}) {
		r.top = top
	}
}
