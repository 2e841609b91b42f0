// Package learner is the loop that turns a log into a model: read, apply, publish, save.
//
//	log ─ records ─> decode, read ─> apply ─> dead letters, alerts acknowledged ─> save
//	                 beside apply   in order
//
// A model has one log. Every [Learner] of a model follows it and learns all of it. One is
// active: it publishes and saves. The others are standbys, and take over within about a second:
// see [phase]. The model and its position in the log are saved in one write. After a crash the
// log is read again from that position. The model's bytes are the same, because a model is a
// pure function of its log.
//
//	l, err := learner.New(learner.Config{
//		Follow: follow.Config{Log: events, Name: "topic hamlet.events.default"},
//		Letters: letters, Receipts: receipts, Alerts: alerts, Store: store, Name: "default", Log: log,
//	})
//	if err != nil {
//		return err
//	}
//	return l.Run(ctx)
//
// # Rules
//
//   - Nothing that depends on time, or on how many records a read returns, reaches a
//     model.
//   - The order is apply, publish, save. A record may be read again, and an alert or a
//     dead letter published again; none is lost, and what is published twice has the same id.
//   - A save runs beside learning, from a copy of the model, whose tables are shared until the next event. Where
//     a scorer of the process answers from the copy and saves are rare, learning waits for it a little. While
//     the store is slow, what is saved lags. While it cannot be reached, learning goes on and
//     saving is tried again.
//   - While alerts cannot be published, learning goes on and saving waits. A copy is
//     taken only when none is pending, so a save covers no event whose alert is not out.
//   - The epoch fences saves; that is all that safety needs. The lease beside it makes a
//     take-over fast. A learner that lost it and does not know it does no harm: what it saves
//     is refused, and what it publishes has the same ids.
package learner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/service/alert"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/follow"
	"hamlet/state"
	"hamlet/stream"
)

// A Store keeps the checkpoints of one model, and says who may save. Package storetest has its
// laws.
type Store interface {
	Lease(ctx context.Context) (state.Lease, error)
	Acquire(ctx context.Context, seen state.Lease, writer string) (state.Lease, error)
	Beat(ctx context.Context, mine state.Lease) (state.Lease, error)
	Release(ctx context.Context, mine state.Lease) (state.Lease, error)
	Save(ctx context.Context, c *state.Checkpoint) (version int64, err error)
	Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error)
	LoadVersion(ctx context.Context, version int64) (*state.Checkpoint, error)
	Heading(ctx context.Context, which state.Pointer) (state.Heading, error)
	Manifest(ctx context.Context, which state.Pointer) (*state.Manifest, int64, error)
	Versions(ctx context.Context) ([]state.VersionInfo, error)
	StepBack(ctx context.Context, mine state.Lease, to int64) error
	Layout(ctx context.Context) error
}

// Answered wants to know what label a message got.
type Answered interface {
	// Labelled takes a label of the message with this identity ([mail.Identity]) once it is learnt or
	// withdrawn; its time is that of the record. The entry has Doubt, P and Tenant if the label is
	// more likely false than true. Of texts and vectors it takes these labels, and what corrects or
	// withdraws one. It must not wait. A learner that becomes active tells the labels since the last
	// save, at most the newest 32,768.
	Labelled(e stream.JournalEntry)
}

// Saved takes a checkpoint that was just saved or loaded, with the version's number, and its model, which learns
// nothing. It returns an earlier model that it does not need any more, or nil.
type Saved func(c *state.Checkpoint, m *model.Model, version int64) (unused *model.Model)

// A Config describes a learner.
type Config struct {
	Follow      follow.Config // the log of events, and how it is followed
	Topic       string        // that log's name in dead letters and predictions
	Letters     stream.Appender
	Receipts    stream.Appender
	Predictions stream.Appender       // of each event before its label was learnt; nil: nobody wants them
	Alerts      stream.AlertPublisher // nil: alarms are logged and counted only
	Runner      model.Runner          // computes a model's slow work in the background; nil: the model waits for it
	Store       Store
	Shadow      *Shadow // learns beside another model; nil: it is the first of its log
	Model       model.Config
	Name        string              // the model's
	Writer      string              // names this process to people, as "web-2/4711"; no spaces
	SaveEvery   time.Duration       // the time between the beginnings of two saves, at least; default SaveEvery
	SaveBytes   int64               // about, that saves write in a minute: see affords; 0: any number
	AdoptConfig bool                // continue a model that was made with another configuration
	Observe     func(Applied)       // called in order for each record; may be nil
	Answered    Answered            // told of labels; nil: nobody wants them
	Saved       Saved               // nil: no scorer is in this process
	Unasked     bool                // nobody waits for a model: the first save is after SaveEvery, not at once
	Announce    func(*stream.Alert) // called once for each change of an alarm; default: log it
	Metrics     *Metrics            // may be nil
	Log         *slog.Logger
}

// SaveEvery is the default of Config.SaveEvery.
const SaveEvery = 3 * time.Second

// An Outcome says what became of a record.
type Outcome uint8

const (
	Learned Outcome = iota
	Duplicate
	DeadLettered
	Relearned
	Unlearned
	LeftOut     // of a source that the model is without
	Corrected   // a label took the place of an earlier one
	Uncorrected // a correction changed nothing: the receipt says why
	Followed    // a standing: a source has the role that an operator said
	Assumed     // an answer that nobody contradicted was learnt as a label
	Unassumed   // an answer was not: the message has a label, or people have hardly taught
)

// String returns the outcome's name in metrics.
func (o Outcome) String() string {
	return [...]string{"learned", "duplicate", "dead-letter", "relearned", "unlearned", "left-out", "corrected",
		"uncorrected", "followed", "assumed", "not-assumed"}[o]
}

// Taught reports whether the model has learnt a label that somebody gave.
func (o Outcome) Taught() bool { return o == Learned || o == Relearned || o == Corrected }

// Applied is a record after the model has applied it.
type Applied struct {
	Offset  int64
	Outcome Outcome
	Reason  string        // of a dead letter
	Event   *stream.Event // empty if it could not be decoded, or is a standing
	Raw     bool          // a mail that was read as raw text
	Effect  model.Effect  // if Learned: the prediction is the one before learning
}

// A Status describes what a learner holds. It is zero while the model is loaded.
type Status struct {
	Loaded   bool     // there is a model
	Active   bool     // this learner publishes and saves; else it is a standby
	Holder   string   // who is active, as far as it is known: the writer of the lease
	Backlog  int      // of a standby: alerts, dead letters, receipts and labels that no save covers
	Next     int64    // next offset to read
	End      int64    // the log's end, as of the last fetch
	Awaits   int64    // a standby is behind the saved model, which stands here; 0: it is not
	Events   uint64   // the model's event count
	Resumed  uint64   // events learnt before the model was loaded
	Epsilon  float64  // the model's estimate of the labels' flip rate
	Version  int64    // of the last save; 0 before it
	SHA256   [32]byte // of the model as last saved
	SavedEnd int64    // Next at the last save

	LostRecords int64 // records that the log has lost and the saved model had learnt: see StepBack

	Alarms        []model.Alarm   // as they stand
	Reading       drift.Diagnosis // what they mean together
	Gates         []model.Gate    // of its stacks
	WindowBytes   int             // of the model's windows of past events
	PendingAlerts int             // not acknowledged yet; saves wait for them
}

// Lag returns how many records the model has not learnt, as of the last fetch.
func (s *Status) Lag() int64 { return max(0, s.End-s.Next) }

// A Learner follows the log of a model, learns it, and takes part in who is active.
type Learner struct {
	cfg      Config
	follower *follow.Follower
	fresh    *model.Model // shows this program's defaults and numerics
	watch    *watch
	writer   string // this learner's word in the lease

	answered func() time.Time // when the log answered last

	running context.Context // Run's; nil before it
	savings sync.WaitGroup  // the goroutines that save
	muting  muting
	defects example.Defects
	turned  atomic.Pointer[time.Time] // when the worker turned last, with a monotonic reading; nil: never
	saveNow atomic.Bool               // see Save
	blocked atomic.Bool               // the worker waits on purpose: alerts cannot be published

	blind bool // the watch's last look failed; of its goroutine

	// Of the worker's goroutine.
	aside    []string  // keys of events that this process has set aside, because they make it panic
	retakeAt time.Time // no attempt to acquire before: it has lost the lease

	mu      sync.Mutex
	status  Status
	alarmed bool   // the alarms are in the metrics
	counted counts // of this process
}

// New checks the configuration.
func New(cfg Config) (*Learner, error) {
	if cfg.SaveEvery <= 0 {
		cfg.SaveEvery = SaveEvery
	}
	cfg.Metrics = cmp.Or(cfg.Metrics, NewMetrics(nil))
	if cfg.Announce == nil {
		cfg.Announce = func(a *stream.Alert) { alert.Log(cfg.Log, a) }
	}
	fresh, err := model.New(cfg.Model)
	if err != nil {
		return nil, fmt.Errorf("configuration of model %s: %w", cfg.Name, err)
	}
	cfg.Follow.PollInterval = cmp.Or(cfg.Follow.PollInterval, min(cfg.SaveEvery, phasePoll))
	follower := follow.New(cfg.Follow)
	l := &Learner{cfg: cfg, follower: follower, answered: follower.Answered, fresh: fresh, writer: newWriter(cfg.Writer)}
	l.watch = &watch{store: cfg.Store, writer: l.writer, mayAct: l.mayAct, beaten: cfg.Metrics.beaten,
		failed: l.lookedInVain, now: time.Now}
	l.muting.silent.Store(cfg.Shadow != nil)
	return l, nil
}

// newWriter returns a learner's word in the lease: the name of its process, and a random part,
// because a process may have been another one's number before.
func newWriter(process string) string { return process + "#" + rand.Text()[:8] }

// shown returns a writer's word as people know it: the name of the process.
func shown(writer string) string {
	process, _, _ := strings.Cut(writer, "#")
	return process
}

// Run learns until ctx ends and then saves what it has learnt, if it is the active one. It
// returns nil after an orderly stop.
func (l *Learner) Run(ctx context.Context) error {
	l.running = ctx
	defer l.savings.Wait()
	// The lease outlasts ctx: the model is saved before it is released.
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	if l.shadow() {
		l.beginMuted(ctx)
		others.Go(func() { clock.Every(beside, l.cfg.Shadow.poll(), func() { l.hear(beside) }) })
	}
	others.Go(func() { clock.Every(beside, beatEvery, func() { l.watch.step(beside) }) })
	defer l.release()
	return l.follower.Run(ctx, func(ctx context.Context) (follow.Handler, error) {
		w, err := l.open(ctx)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", l.cfg.Name, err)
		}
		return w, nil
	})
}

// release frees the lease if this learner holds it, so that a standby need not wait until it
// lapses.
func (l *Learner) release() {
	held := l.watch.drop()
	if held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.running), watchTimeout)
	defer cancel()
	if _, err := l.cfg.Store.Release(ctx, *held); err != nil {
		l.cfg.Log.Debug("the lease was not released: it lapses in a second", "error", err)
	}
}

// mayAct reports whether an active learner should go on to hold its lease: the log answers, and
// the worker turns.
func (l *Learner) mayAct() bool {
	now := time.Now()
	if now.Sub(l.answered()) > logSilent {
		return false
	}
	turned := l.turned.Load()
	return l.blocked.Load() || turned != nil && now.Sub(*turned) <= stuckAfter
}

// lookedInVain logs once that a standby cannot see who is active.
func (l *Learner) lookedInVain(err error) {
	if err != nil && !l.blind && l.running.Err() == nil {
		l.cfg.Log.Warn("the state does not say who is active: this standby cannot take over", "error", err)
	}
	l.blind = err != nil
}

// stopping reports whether Run was asked to stop.
func (l *Learner) stopping() bool { return l.running != nil && l.running.Err() != nil }

// Status describes what the learner holds.
func (l *Learner) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

func (l *Learner) setStatus(s Status) {
	s.Loaded = true
	l.mu.Lock()
	l.status = s
	silent := l.silent()
	fell := silent && l.alarmed
	l.alarmed = !silent
	l.mu.Unlock()
	if silent {
		s.Alarms = nil
	}
	if fell {
		l.cfg.Metrics.dropAlarms()
	}
	l.cfg.Metrics.status(l.cfg.Name, s)
}

func (l *Learner) dropStatus() {
	l.mu.Lock()
	l.status, l.alarmed = Status{}, false
	l.mu.Unlock()
	l.cfg.Metrics.drop(l.cfg.Name)
}

// counts say which records this process has dealt with. They fall only when the log has lost some,
// so that a record which is read again after a reload counts once.
type counts struct {
	handed   int64 // metrics, labels and alarms of the records below were handed on, or saved by another learner
	observed int64 // Observe was called for the records below
}

// firstTime reports whether what comes of a record is to be handed on, and whether it is to be
// observed. It notes both. A standby hands on nothing: handedOn notes that later.
func (l *Learner) firstTime(offset int64, active bool) (hand, observe bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hand, observe = offset >= l.counted.handed, offset >= l.counted.observed
	if hand && active {
		l.counted.handed = offset + 1
	}
	l.counted.observed = max(l.counted.observed, offset+1)
	return hand, observe
}

// steppedBack notes that the records from next on may be others than those that were handed on.
func (l *Learner) steppedBack(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted = counts{handed: min(l.counted.handed, next), observed: min(l.counted.observed, next)}
}

// handedOn notes that what came of the records below next was handed on.
func (l *Learner) handedOn(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted.handed = max(l.counted.handed, next)
}

// Ready returns nil if the learner has a model and follows its log, whatever its phase.
func (l *Learner) Ready() error {
	s := l.Status()
	switch {
	case !s.Loaded:
		return errors.New("loading")
	case s.Awaits > s.Next:
		return fmt.Errorf("standby, behind the saved model by %d", s.Awaits-s.Next)
	}
	return nil
}

// Summary says of which model this learner is the shadow, its phase, and how far it is behind
// the log's end as of the last fetch.
func (l *Learner) Summary() string {
	s := l.Status()
	var phase string
	switch {
	case !s.Loaded:
		phase = "loading"
	case s.Active:
		phase = fmt.Sprintf("active, %d records behind", s.Lag())
	case s.Holder == "":
		phase = fmt.Sprintf("standby, %d behind", s.Lag())
	default:
		phase = fmt.Sprintf("standby, %d behind; %s is active", s.Lag(), s.Holder)
	}
	if shadow := l.shadowSummary(); shadow != "" {
		return shadow + "; " + phase
	}
	return phase
}
