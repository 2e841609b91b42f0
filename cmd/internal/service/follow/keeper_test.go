package follow_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
)

// A keeper is the saved state of a log, which outlives handlers.
type keeper struct {
	mu     sync.Mutex
	next   int64
	saved  bool // there is a position: next
	older  []int64
	taken  []stream.Record
	end    int64           // as of the last batch
	asked  []stream.Record // what Follows was asked about
	unfit  []error         // what StepBack was told
	handle func(h *handler, batch []stream.Record) error
	idle   func(h *handler) error
	log    []string      // "open", "close", …
	moved  chan struct{} // closed and renewed at every change
}

// A look is what a keeper has at a moment.
type look struct {
	next  int64
	taken []stream.Record
	unfit []error
	log   []string
}

func (k *keeper) now() look {
	k.mu.Lock()
	defer k.mu.Unlock()
	return look{k.next, slices.Clone(k.taken), slices.Clone(k.unfit), slices.Clone(k.log)}
}

func newKeeper() *keeper { return &keeper{moved: make(chan struct{})} }

// at returns a keeper that has saved a position.
func at(next int64) *keeper {
	k := newKeeper()
	k.next, k.saved = next, true
	return k
}

func (k *keeper) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	close(k.moved)
	k.moved = make(chan struct{})
}

// until waits for a condition on the state.
func (k *keeper) until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		k.mu.Lock()
		ok, moved := cond(), k.moved
		k.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-moved:
		case <-deadline:
			k.mu.Lock()
			defer k.mu.Unlock()
			t.Fatalf("%s: not within 30 s; %d records, next %d, %s", what, len(k.taken), k.next, strings.Join(k.log, ", "))
		}
	}
}

// A handler of a keeper takes records, and saves when it is closed.
type handler struct {
	k       *keeper
	next    int64
	saved   bool
	confirm func(context.Context) error
}

func (k *keeper) open(context.Context) (follow.Handler, error) {
	h := &handler{k: k}
	k.change(func() {
		h.next, h.saved = k.next, k.saved
		k.log = append(k.log, "open")
	})
	return h, nil
}

func (h *handler) Position(confirm func(context.Context) error) (int64, bool) {
	h.confirm = confirm
	return h.next, h.saved
}

// Follows compares with what was taken at that offset, if anything was.
func (h *handler) Follows(last stream.Record) bool {
	same := true
	h.k.change(func() {
		h.k.asked = append(h.k.asked, last)
		for _, r := range h.k.taken {
			same = same && (r.Offset != last.Offset || sameContent(&r, &last))
		}
	})
	return same
}

// StepBack goes on from an older state, if there is one that the log has.
func (h *handler) StepBack(ctx context.Context, bounds stream.Bounds, why error, at follow.RecordAt) error {
	h.k.change(func() { h.k.unfit = append(h.k.unfit, why) })
	for _, next := range h.k.older {
		last, ok, err := at(ctx, next-1)
		if err != nil {
			return err
		}
		if next < h.next && next <= bounds.End && ok && h.Follows(last) {
			h.next = next
			h.k.change(func() {
				h.k.log = append(h.k.log, fmt.Sprintf("back to %d", next))
				h.k.taken = slices.DeleteFunc(h.k.taken, func(r stream.Record) bool { return r.Offset >= next })
			})
			return nil
		}
	}
	return fmt.Errorf("no older state follows; start with an empty one")
}

// sameContent compares key, value and headers. A nil key or value equals an empty one.
func sameContent(a, b *stream.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b stream.Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}

func (h *handler) Handle(_ context.Context, batch []stream.Record, end int64) error {
	if h.k.handle != nil {
		if err := h.k.handle(h, batch); err != nil {
			return err
		}
	}
	h.k.change(func() {
		h.k.taken, h.k.end = append(h.k.taken, batch...), end
		h.next, h.saved = batch[len(batch)-1].Offset+1, true
	})
	return nil
}

func (h *handler) Idle(context.Context) error {
	if h.k.idle != nil {
		return h.k.idle(h)
	}
	return nil
}

// save asks whether the records are of one log, and keeps the position if they are.
func (h *handler) save(ctx context.Context) error {
	if err := h.confirm(ctx); err != nil {
		return err
	}
	h.k.change(func() { h.k.next, h.k.saved = h.next, h.saved })
	return nil
}

func (h *handler) Close(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.k.change(func() {
		h.k.next, h.k.saved = h.next, h.saved
		h.k.log = append(h.k.log, "close")
	})
	return nil
}

// run follows a log until ctx ends.
func (k *keeper) run(ctx context.Context, t testing.TB, cfg follow.Config) error {
	t.Helper()
	f := follow.New(cfg)
	return f.Run(ctx, k.open)
}

// start follows a log in the background; stop ends it and returns Run's error.
func (k *keeper) start(t testing.TB, cfg follow.Config) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.run(ctx, t, cfg) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { stop() })
	return stop
}

// testLog shows log lines, and only of verbose runs.
func testLog(t testing.TB) *slog.Logger {
	if !testing.Verbose() {
		return nil
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// numbered returns records with the values first, first+1, …
func numbered(first, n int) []stream.Record {
	records := make([]stream.Record, n)
	for i := range records {
		records[i] = stream.Record{Key: []byte("k"), Value: fmt.Append(nil, first+i), Headers: []stream.Header{{Key: "h", Value: []byte("1")}}}
	}
	return records
}
