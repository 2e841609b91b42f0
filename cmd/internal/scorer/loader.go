package scorer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"hamlet/state"
)

// A Store is where checkpoints are read. Package storetest has its laws.
type Store interface {
	// Partitions returns the partitions that have a checkpoint, ascending.
	Partitions(ctx context.Context) ([]int, error)
	// Heading returns what a pointer names, cheaply.
	Heading(ctx context.Context, partition int, which state.Pointer) (state.Heading, error)
	// Load returns a checkpoint whose every hash was verified, and its version,
	// which is an older one than the pointer's if that is corrupt.
	Load(ctx context.Context, partition int, which state.Pointer) (*state.Checkpoint, int64, error)
}

// How long one question to the store may take: which partitions and versions
// there are, and one checkpoint.
const (
	askPatience  = 5 * time.Second
	loadPatience = 30 * time.Second
)

// A loader keeps the served model up to date: it asks the store for the version
// of every partition, builds what changed beside what is served, and publishes
// the whole by one pointer. Whatever goes wrong, what is served stays.
type loader struct {
	store   Store
	name    string // of the model
	metrics *metrics
	log     *slog.Logger

	current atomic.Pointer[served] // nil until there is a model
	stale   atomic.Bool            // the last look at the store failed, in whole or part

	// Of the goroutine alone that looks.
	slots map[int]*slot
	down  bool // the store can't be reached
}

// A slot is what the loader knows of one partition.
type slot struct {
	part   *part         // nil until one could be loaded
	listed bool          // the store names it
	tried  state.Heading // what the pointer named when it was last followed; zero: it is to be followed
	bad    error         // why that can't be served; nil: it is served
	newest int64         // the largest version that was followed, of one history
	lost   bool          // the store lost what part was made from: see losing
	held   bool          // part is served on in place of what is learnt anew
}

func newLoader(store Store, name string, m *metrics, log *slog.Logger) *loader {
	return &loader{store: store, name: name, metrics: m, log: log, slots: map[int]*slot{}}
}

// run looks at the store every interval until ctx ends.
func (l *loader) run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.look(ctx)
		}
	}
}

// look brings the served model up to date once. It logs every change of state
// once, and nothing while the state stays as it is.
func (l *loader) look(ctx context.Context) {
	err := l.refresh(ctx)
	switch {
	case ctx.Err() != nil: // we are stopping, which is no news about the store
		return
	case err == nil && l.down:
		l.down = false
		l.log.Info("the state can be read again", "model", l.name)
	}
	whole := l.publish()
	l.stale.Store(err != nil || !whole)
}

// refresh follows every partition's pointer. One that fails holds up no other:
// what is loaded is served. Its error, the first, means that the store couldn't
// be asked.
func (l *loader) refresh(ctx context.Context) error {
	ask, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	partitions, err := l.store.Partitions(ask)
	if err != nil {
		l.unreachable(ctx, err)
		return err
	}
	for _, s := range l.slots {
		s.listed = false
	}
	defer l.noteUnlisted()
	var first error
	for _, partition := range partitions {
		s := l.slots[partition]
		if s == nil {
			s = &slot{}
			l.slots[partition] = s
		}
		s.listed = true
		if err := l.follow(ctx, partition, s); err != nil {
			l.unreachable(ctx, err)
			first = cmp.Or(first, err)
		}
	}
	return first
}

// unreachable notes that the store couldn't be asked, as soon as that is known:
// each partition's question may have to time out before the look ends.
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

// follow loads what a partition's pointer names, if it has moved. A checkpoint
// that can't be served is noted in the slot: one that is corrupt or made by other
// mathematics is mended only by the next one; whatever else is wrong with it, such
// as a layout of the manifest that only a newer scorer reads or a right that this
// one lacks, may be mended in place and is tried again. An error means that the
// store couldn't be asked.
func (l *loader) follow(ctx context.Context, partition int, s *slot) error {
	ask, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	named, err := l.store.Heading(ask, partition, state.Served)
	if err == nil && named == s.tried {
		s.lost, s.held = false, false // it is what it was
		return nil
	}
	anew := s.lost // what it names is of another history
	switch {
	case err != nil:
	case s.part != nil && named.Next < s.part.next:
		var behind bool
		if behind, err = l.losing(ask, partition, s, named); behind {
			return nil
		}
	case !anew && named.Version < s.newest: // a pin, or the learner has put back what was lost
		anew, err = l.begunAnew(ask, partition, s)
	}
	var (
		checkpoint *state.Checkpoint
		loaded     int64
	)
	if err == nil {
		load, cancel := context.WithTimeout(ctx, loadPatience)
		defer cancel()
		checkpoint, loaded, err = l.store.Load(load, partition, state.Served)
	}
	switch {
	case err == nil:
	case errors.Is(err, state.ErrNone):
		s.listed = false // it lost the pointer
		return nil
	case ctx.Err() != nil, errors.Is(err, state.ErrTransient):
		return err
	}
	known := s.bad != nil
	s.tried, s.bad = named, err
	if anew {
		s.newest = 0
	}
	s.newest, s.lost, s.held = max(s.newest, named.Version), false, false
	switch {
	case err != nil && !errors.Is(err, state.ErrCorrupt):
		s.tried = state.Heading{}
	case err == nil:
		if s.part == nil || !s.part.is(loaded, checkpoint) {
			var fresh *part
			if fresh, s.bad = newPart(partition, loaded, checkpoint); s.bad == nil {
				s.part = fresh
			}
		}
		if s.bad == nil && loaded < named.Version {
			s.bad = fmt.Errorf("version %d is not whole; version %d is served", named.Version, loaded)
		}
	}
	if s.bad != nil && !known {
		l.metrics.loadFailures.Inc()
		l.log.Error("a checkpoint can't be served, the one before is if there was one",
			"model", l.name, "partition", partition, "version", named.Version, "error", s.bad)
	}
	return nil
}

// losing reports whether what the store names, which is not as far in the log as
// the part that is served, is so because the store lost its data and the log is
// learnt anew, not because somebody pinned an older version. Then the part is
// served on until the new model has come as far: a small model is no match for it.
// Within one history a number never names two versions.
func (l *loader) losing(ctx context.Context, partition int, s *slot, named state.Heading) (bool, error) {
	if !s.lost {
		anew, err := l.begunAnew(ctx, partition, s)
		if err != nil {
			return false, err
		}
		s.lost = anew || named.Version == s.tried.Version && named.Identity != s.tried.Identity
	}
	if s.lost && !s.held {
		s.held = true
		l.log.Warn("the state lost what is served, and what it holds now is not as far in the log: the model from before is served "+
			"until the new one has come as far; restart the scorer to serve the new one at once",
			"model", l.name, "partition", partition, "served_next_offset", s.part.next, "next_offset", named.Next)
	}
	return s.lost, nil
}

// begunAnew reports whether the store counts versions anew, because it lost those
// that were followed: within one history the version of the head never goes back.
// A head that is not there, or is no version, says nothing.
func (l *loader) begunAnew(ctx context.Context, partition int, s *slot) (bool, error) {
	head, err := l.store.Heading(ctx, partition, state.Head)
	if errors.Is(err, state.ErrNone) || errors.Is(err, state.ErrCorrupt) {
		return false, nil
	}
	return err == nil && head.Version < s.newest, err
}

// noteUnlisted marks the partitions that the store has lost.
func (l *loader) noteUnlisted() {
	for partition, s := range l.slots {
		if s.part != nil && !s.listed && !s.lost {
			s.lost = true
			l.log.Warn("the state does not hold the partition any more: its last model is served on", "model", l.name, "partition", partition)
		}
	}
}

// publish swaps the served model if a partition's has changed. It says whether
// what is served is all that the store holds. A partition that the store has
// lost is served on.
func (l *loader) publish() (whole bool) {
	whole = true
	var parts []*part
	for _, partition := range slices.Sorted(maps.Keys(l.slots)) {
		s := l.slots[partition]
		if s.part != nil {
			parts = append(parts, s.part)
		}
		if s.bad != nil || s.part != nil && (s.lost || !s.listed) {
			whole = false
		}
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
