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
	labels time.Time            // labels up to then have been read
	next   time.Time            // before that Refresh reads nothing
}

// NewReader returns a reader of a model's journal on conn, which the caller closes.
func NewReader(conn *natsgo.Conn, model string, window time.Duration) *Reader {
	return &Reader{Queue: NewQueue(), conn: conn, model: model, window: window, turn: make(chan struct{}, 1)}
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
	began, until, since, n := time.Now(), time.Time{}, r.Since(), 0
	if r.labels.After(since) {
		since = r.labels
	}
	for e, err := range nats.ReadJournalLabels(ctx, r.conn, r.model, since) {
		switch {
		case errors.As(err, new(*nats.MessageError)):
			continue
		case ended(ctx, err):
			if n > 0 {
				r.labels = until.Add(-lateness) // from there the next time
			}
			return nil
		case err != nil:
			return err
		}
		n++
		until = e.Time
		if r.OnLabel != nil {
			r.OnLabel(&e)
		}
		r.Add(&e)
	}
	r.labels = began.Add(-lateness)
	return nil
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
