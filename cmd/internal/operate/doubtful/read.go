package doubtful

import (
	"context"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/operate/review"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// Bounds of what a Reader reads.
const (
	Window = nats.JournalAge // how old labels are by default: as long as the journal keeps them
	often  = 3 * time.Second // between two readings, at least
)

// A Reader keeps a List up with a model's journal. Nothing is read but by Refresh. It is safe for
// concurrent use.
type Reader struct {
	*List
	conn   *natsgo.Conn
	window time.Duration

	turn   chan struct{} // holds a value while somebody reads; he alone uses what follows
	labels review.Labels
	next   time.Time // before that Refresh reads nothing
}

// NewReader returns a reader of a model's journal on conn, which the caller closes.
func NewReader(conn *natsgo.Conn, model string, window time.Duration) *Reader {
	return &Reader{List: NewList(), conn: conn, window: window, turn: make(chan struct{}, 1),
		labels: review.NewLabels(conn, model)}
}

// Refresh reads the labels that have come since the last time, unless that was just now. If ctx ends
// before it has read all, it returns false, and what is missing is the newest.
func (r *Reader) Refresh(ctx context.Context) (all bool, err error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return false, nil // another is at it
	}
	now := time.Now()
	if now.Before(r.next) {
		return true, nil
	}
	if !r.conn.IsConnected() {
		return false, fmt.Errorf("read the journal: %w", nats.ErrNoServer)
	}
	all, err = r.labels.Read(ctx, now.Add(-r.window), func(e *stream.JournalEntry) { r.Add(e) })
	if all {
		r.next = time.Now().Add(often)
	}
	return all, err
}
