package scorer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"hamlet/state"
)

// A Store is where checkpoints are read. Package storetest has its laws.
type Store interface {
	Partitions(ctx context.Context) ([]int, error)
	Heading(ctx context.Context, which state.Pointer) (state.Heading, error)
	// Load returns an older version than the pointer's if that is corrupt.
	Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error)
}

// askTimeout bounds a request for the partitions or for one version's number. The load
// of a checkpoint has the limits of the store, which follow its speed.
const askTimeout = 5 * time.Second

// A loader keeps the served model up to date. It polls the version of every partition,
// loads those that changed, and publishes all by one pointer. If anything fails, the
// served model stays.
type loader struct {
	store   Store
	name    string // of the model
	metrics *metrics
	log     *slog.Logger

	// Written by the polling goroutine, read by all.
	current atomic.Pointer[served] // nil until there is a model; the parts of slots, as of the last poll
	stale   atomic.Bool            // the store holds something that is not served, or cannot be asked
	pins    atomic.Int64           // partitions whose pinned version the store serves
	lost    atomic.Int64           // partitions whose pinned version the store has lost

	// Of the polling goroutine alone.
	slots map[int]*slot // the partitions that the store ever listed
	down  bool          // the last question to the store failed, which was logged
}

func newLoader(store Store, name string, m *metrics, log *slog.Logger) *loader {
	return &loader{store: store, name: name, metrics: m, log: log, slots: map[int]*slot{}}
}

// poll brings the served model up to date once. It logs each change of state once.
func (l *loader) poll(ctx context.Context) {
	err := l.refresh(ctx)
	switch {
	case ctx.Err() != nil: // the scorer stops: this says nothing about the store
		return
	case err == nil && l.down:
		l.down = false
		l.log.Info("the state can be read again", "model", l.name)
	}
	l.countPins()
	whole := l.publish()
	l.stale.Store(err != nil || !whole)
}

// refresh follows every partition's pointer. One that fails delays no other. It returns
// the first error that means that the store could not be asked.
func (l *loader) refresh(ctx context.Context) error {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	partitions, err := l.store.Partitions(ask)
	if err != nil {
		l.unreachable(ctx, err)
		return err
	}
	listed := make(map[int]bool, len(partitions))
	var first error
	for _, partition := range partitions {
		s := l.slots[partition]
		if s == nil {
			s = &slot{}
			l.slots[partition] = s
		}
		err := l.follow(ctx, partition, s)
		if errors.Is(err, state.ErrNone) {
			continue
		}
		listed[partition] = true
		if err != nil {
			l.unreachable(ctx, err)
			first = cmp.Or(first, err)
		}
	}
	for partition, s := range l.slots {
		if !listed[partition] {
			l.noteMissing(partition, s)
		}
	}
	return first
}

// unreachable notes that the store could not be asked. It does so at once, because
// each other partition's question may have to time out before the poll ends.
func (l *loader) unreachable(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.stale.Store(true)
	if !l.down {
		l.down = true
		l.metrics.loadFailures.Inc()
		l.log.Warn("the state can't be read, the last good model is served on", "model", l.name, "error", err)
	}
}

// countPins counts the pins of all partitions, for metrics and [Scorer.Info].
func (l *loader) countPins() {
	var pins, lost int64
	for _, s := range l.slots {
		switch {
		case s.pin.lost:
			lost++
		case s.pin.version != 0:
			pins++
		}
	}
	l.pins.Store(pins)
	l.lost.Store(lost)
}

// publish swaps the served model if a partition's has changed. It reports whether
// what is served is all that the store holds.
func (l *loader) publish() (whole bool) {
	whole = true
	var parts []*part
	for _, partition := range slices.Sorted(maps.Keys(l.slots)) {
		s := l.slots[partition]
		if s.part != nil {
			parts = append(parts, s.part)
		}
		whole = whole && s.whole()
	}
	old := l.current.Load()
	if len(parts) == 0 || old != nil && slices.Equal(parts, old.parts) {
		return whole
	}
	fresh := newServed(l.name, parts)
	l.current.Store(fresh)
	l.metrics.swaps.Inc()
	l.log.Debug("another model is served", "model", l.name, "sha256", fresh.ref.SHA256, "events", fresh.info.Events, "positions", fresh.ref.Positions)
	if old == nil {
		l.log.Info("there is a model to serve", "model", l.name, "sha256", fresh.ref.SHA256, "events", fresh.info.Events)
	}
	return whole
}
