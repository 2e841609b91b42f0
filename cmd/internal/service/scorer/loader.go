package scorer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/advice"
	"hamlet/state"
)

// A Store is where checkpoints are read. Package storetest has its laws.
type Store interface {
	// Layout refuses a model for each of several partitions: the error wraps state.ErrPartitions.
	Layout(ctx context.Context) error
	Heading(ctx context.Context, which state.Pointer) (state.Heading, error)
	// Load returns an older version than the pointer's if that is corrupt.
	Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error)
	// Promotion says which model answers in the place of this one. The error wraps state.ErrNone if
	// nobody has promoted one.
	Promotion(ctx context.Context) (state.Promotion, error)
	Beside(model string) (state.Store, error) // the store of another model
}

// readAgain is how long a scorer leaves a corrupt checkpoint alone. The bit may be wrong only in what was read,
// and on a quiet stream, or while a version is pinned, no other checkpoint comes.
const readAgain = 30 * time.Second

// largeModel is from how many bytes on the memory of a load is given back at once. That takes some 10 ms.
const largeModel = 8 << 20

// askTimeout bounds the questions of a poll. The load of a checkpoint has the limits of the
// store, which follow its speed.
const askTimeout = 5 * time.Second

// A loader keeps the served model up to date. It polls the version that the store names, loads
// it if it has changed, and publishes it by one pointer. If anything fails, the served model
// stays.
//
// The state changes with what the store says at a poll:
//
//	                       what the store says
//	state     │ the pointer  named again  behind the model, all else:
//	          │ is lost                   and not pinned    load what is named
//	──────────┼────────────────────────────────────────────────────────────────
//	following │ missing¹     following    relearning        following
//	missing   │ missing      following    relearning        following
//	relearning│ relearning   following    relearning        following
//
// Named again: the pointer names the checkpoint that was tried last. Behind the model: at a
// smaller offset than the one that is served. The store has lost its data, or the log has lost
// records and the learner has stepped back. ¹ If there is a model; else the state stays as
// it is. A store that cannot be asked changes nothing.
type loader struct {
	store   Store
	name    string // of the model
	metrics *metrics
	log     *slog.Logger

	// Written by the polling goroutine, read by all.
	current atomic.Pointer[snapshot] // nil until a checkpoint could be loaded
	stale   atomic.Bool              // the store holds something that is not served, or cannot be asked
	pin     atomic.Pointer[pin]      // what the store last said of it; nil: nothing is pinned

	// Of the polling goroutine alone.
	state  loadState     // following without a model
	tried  state.Heading // what was loaded last, or could not be served; zero: load at the next poll in any case
	bad    error         // why tried, or what replaced it, is not served; nil if the model was made of it
	again  time.Time     // when tried is read again, because it was corrupt; zero: it was not
	handed *handed       // what need not be read from the store; nil: nothing. Only during a poll
	newest int64         // the largest version that was tried in the present history of the store
	down   bool          // the last question to the store failed, which was logged
}

// A pin says what the store holds of an operator's pin.
type pin struct {
	version int64 // that is pinned
	lost    bool  // the store has lost that version, and serves the head
}

// A loadState says how the served model relates to the store.
type loadState uint8

const (
	following  loadState = iota // it is the checkpoint that the store names, or the best that could be loaded
	missing                     // the store has lost the model: it is served on
	relearning                  // the store lost its data, and its new model is behind: the one from before is served on
)

func newLoader(store Store, name string, m *metrics, log *slog.Logger) *loader {
	return &loader{store: store, name: name, metrics: m, log: log}
}

// poll brings the served model up to date once. It logs each change of state once.
func (l *loader) poll(ctx context.Context) {
	err := l.follow(ctx)
	switch {
	case ctx.Err() != nil: // the scorer stops: this says nothing about the store
		return
	case errors.Is(err, state.ErrNone):
		l.noteMissing()
		err = nil
	case err != nil:
		l.unreachable(ctx, err)
	}
	if err == nil && l.down {
		l.down = false
		l.log.Info("the state can be read again", "model", l.name)
	}
	l.stale.Store(err != nil || !l.whole())
}

// whole reports whether what the store holds is served.
func (l *loader) whole() bool { return l.bad == nil && l.state == following }

// unreachable notes that the store could not be asked.
func (l *loader) unreachable(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.stale.Store(true)
	if !l.down {
		l.down = true
		l.metrics.loadFailures.Inc()
		l.log.Warn("the state can't be read, the last good model is served on", "model", l.name, "error", advice.Add(err))
	}
}

// follow loads what the pointer names, if it has moved. The error wraps state.ErrNone if the
// store has lost the pointer; any other means that the store could not be asked. A checkpoint
// that cannot be served sets l.bad and is no error.
func (l *loader) follow(ctx context.Context) error {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var named state.Heading
	err := l.store.Layout(ask)
	if err == nil {
		named, err = l.store.Heading(ask, state.Served)
	}
	if err == nil {
		l.notePin(&named)
	}
	given := l.handed
	if given != nil && (err != nil || !given.is(&named) || l.serves(given.model)) {
		given = nil
	}
	again := !l.again.IsZero() && !time.Now().Before(l.again)
	if err == nil && named == l.tried && !again && given == nil {
		l.state = following
		return nil
	}
	var replaced bool
	if err == nil {
		replaced, err = l.replaced(ask, named)
	}
	if pinned, _ := l.pinned(); err == nil && !pinned && l.behind(named) {
		l.relearn(named)
		return nil
	}
	var checkpoint *state.Checkpoint
	var version int64
	var made *model.Model // of the checkpoint; nil: it is to be restored
	if given != nil {
		checkpoint, version, made = given.checkpoint, given.version, given.model
	} else if err == nil {
		checkpoint, version, err = l.store.Load(ctx, state.Served)
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, state.ErrNone) || errors.Is(err, state.ErrTransient)) {
		return err
	}
	if replaced {
		l.newest = 0
	}
	before := l.bad
	l.state, l.tried, l.newest = following, named, max(l.newest, named.Version)
	large := err == nil && checkpoint.Length >= largeModel
	if large && made == nil {
		debug.FreeOSMemory() // what the load has left, so that the model does not come on top of it
	}
	old := l.current.Load()
	l.bad = l.take(named, version, checkpoint, made, err)
	swapped := l.current.Load() != old
	if swapped && large && (made == nil || old != nil && !old.given) {
		debug.FreeOSMemory() // the model before, and bytes: else they stay until as much has been allocated again
	}
	if swapped && given != nil && given.taken != nil {
		given.taken <- old
	}
	l.again = time.Time{}
	switch {
	case errors.Is(err, state.ErrCorrupt), err == nil && version < named.Version:
		l.again = time.Now().Add(readAgain)
	case err != nil:
		// Only the next checkpoint, or reading it again, repairs a corrupt one. Another fault may be repaired
		// in place, such as a missing access right.
		l.tried = state.Heading{}
	}
	if l.bad != nil && before == nil {
		l.metrics.loadFailures.Inc()
		l.log.Error("a checkpoint can't be served, the one before is if there was one",
			"model", l.name, "version", named.Version, "error", advice.Add(l.bad))
	}
	return nil
}

// handed is a checkpoint that the learner of this process has saved as a version, or loaded, and its model.
type handed struct {
	checkpoint *state.Checkpoint
	model      *model.Model
	version    int64
	taken      chan *snapshot // gets the one before where it answers now; nil: nobody waits
}

// is reports whether the checkpoint is what the store names.
func (h *handed) is(named *state.Heading) bool {
	c := h.checkpoint
	return h.version == named.Version && c.Position.Next == named.Next && c.Epoch == named.Epoch &&
		c.Writer == named.Writer && hex.EncodeToString(c.ModelSHA256[:]) == named.Model
}

// serves reports whether m is what answers.
func (l *loader) serves(m *model.Model) bool {
	current := l.current.Load()
	return current != nil && current.model == m
}

// behind reports whether what is named is not as far in the log as what is served.
func (l *loader) behind(named state.Heading) bool {
	current := l.current.Load()
	return current != nil && named.Next < current.next
}

// take serves a loaded checkpoint, whose model is made unless that is nil. err is the load's error. It returns an
// error unless the version that the store names is served. A made model takes the place of one of the same bytes: it
// shares its tables with the learner's.
func (l *loader) take(named state.Heading, version int64, c *state.Checkpoint, made *model.Model, err error) error {
	if err != nil {
		return err
	}
	if old := l.current.Load(); old == nil || made != nil || !old.is(version, c) {
		fresh, err := newSnapshot(l.name, version, c, made)
		if err != nil {
			return err
		}
		l.current.Store(fresh)
		l.metrics.swaps.Inc()
		l.log.Debug("another model is served",
			"model", l.name, "sha256", fresh.ref.SHA256, "events", fresh.info.Events, "positions", fresh.ref.Positions)
		if old == nil {
			l.log.Info("there is a model to serve", "model", l.name, "sha256", fresh.ref.SHA256, "events", fresh.info.Events)
		}
	}
	if version < named.Version {
		return fmt.Errorf("version %d is not whole; version %d is served", named.Version, version)
	}
	return nil
}

// replaced reports whether the store lost its data, so that what it names belongs to another
// history than the served model. Within one history the head's version never goes back, and a
// number never names two versions. The head is asked for only if the pointer went back. A
// missing or invalid head decides nothing.
func (l *loader) replaced(ctx context.Context, named state.Heading) (bool, error) {
	if l.state != following {
		return true, nil
	}
	if !l.behind(named) && named.Version >= l.newest {
		return false, nil
	}
	head, err := l.store.Heading(ctx, state.Head)
	switch {
	case errors.Is(err, state.ErrNone), errors.Is(err, state.ErrCorrupt):
		head.Version = l.newest
	case err != nil:
		return false, err
	}
	return head.Version < l.newest || named.Version == l.tried.Version && named.Identity != l.tried.Identity, nil
}

// relearn goes on serving a model while the store's new one is behind it: a model of few events
// is worse.
func (l *loader) relearn(named state.Heading) {
	if l.state == relearning {
		return
	}
	l.state = relearning
	l.log.Warn("what the state holds now is not as far in the log as what is served, "+
		"because the state or the log has lost something: "+
		"the model from before is served until the new one has come as far; restart the scorer to serve the new one at once",
		"model", l.name, "served_next_offset", l.current.Load().next, "next_offset", named.Next)
}

// notePin notes what the store says of a pin, and logs a change. It takes the pin out of named,
// as it says nothing about the checkpoint.
func (l *loader) notePin(named *state.Heading) {
	var now, before pin
	if old := l.pin.Load(); old != nil {
		before = *old
	}
	now = pin{version: named.Pinned, lost: named.Pinned != 0 && named.Pinned != named.Version}
	named.Pinned = 0
	if now == before {
		return
	}
	l.pin.Store(&now)
	switch {
	case now.lost:
		l.log.Warn("the pinned version is gone, and the newest is served in its place: "+
			"`hamlet model pin` another one, or `hamlet model unpin`",
			"model", l.name, "version", now.version)
	case now.version != 0:
		l.log.Info("an operator pinned a version: it is served until `hamlet model unpin`",
			"model", l.name, "version", now.version)
	default:
		l.log.Info("no version is pinned any more: the newest is served", "model", l.name, "version", before.version)
	}
}

// pinned reports whether the store serves a pinned version, and whether it has lost it.
func (l *loader) pinned() (pinned, lost bool) {
	p := l.pin.Load()
	return p != nil && p.version != 0 && !p.lost, p != nil && p.lost
}

// noteMissing notes that the store has lost the served model.
func (l *loader) noteMissing() {
	if l.current.Load() == nil || l.state != following {
		return
	}
	l.state = missing
	l.log.Warn("the state does not hold the model any more: the last one is served on", "model", l.name)
}
