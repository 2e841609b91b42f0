// Package follow reads a log from a handler's position, for as long as its context lives. It
// alone knows where to begin, what a gap is, and how to tell another log from the one that was
// read. It decodes nothing: a handler does. That of package learner writes a dead letter for
// a record that it cannot read.
//
//	follower := follow.New(follow.Config{Log: log, Name: "topic hamlet.events.default"})
//	return follower.Run(ctx, func(ctx context.Context) (follow.Handler, error) {
//		return openModel(ctx) // its Handle takes the records
//	})
//
// # Rules
//
//   - Delivery is at least once. A handler can be given a record twice, after it was opened
//     again. Its own position decides what is read.
//   - A handler sees offsets in ascending order. Holes between them mean nothing. Records that
//     retention deleted before they were read are lost data: [ErrGap].
//   - An offset does not say which log it belongs to. So the record before the handler's
//     position is read first, and the handler compares it with the one it absorbed. While the
//     log is read, the record before each batch is compared again, and the last one after each
//     error, every 5 s, and when the handler asks before it saves. A log that has an ID is asked
//     for that instead.
//   - A log may turn out to be another one, or to have lost its end, while it is read. Then the
//     handler is dropped and a new one is opened from what is saved. If its position does not
//     fit either, it may step back.
//   - It waits for a log that does not answer, for Config.MaxOutage. All that time it calls
//     Idle, so that a handler can save.
package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"hamlet/stream"
)

var (
	// ErrReload: a Handler returns it (wrapped) to be dropped and opened again from its
	// saved state, for instance when another learner saved first.
	ErrReload = errors.New("reload the state")

	// ErrGap: retention deleted records that the handler has not absorbed. Start with an
	// empty state, or go on without them (Config.AcceptGap).
	ErrGap = errors.New("records lost to retention")

	// ErrNoBeginning: the handler has no position, and retention deleted the log's
	// beginning. A new handler on an old log and a handler that lost its state look the
	// same. Restore the state, or read what is left (Config.AcceptLostBeginning).
	ErrNoBeginning = errors.New("no state, and the log's beginning is lost to retention")

	// ErrBehind: the log ends before the handler's position. It was created again, has lost
	// records, or is another one.
	ErrBehind = errors.New("log ends before the position")

	// ErrReplaced: a record that the handler absorbed is not in the log, or the log's
	// beginning or end moved back. The causes are those of ErrBehind.
	ErrReplaced = errors.New("another log than the one absorbed")

	// ErrUnconfirmed: the log does not answer whether it is still the same. Ask again later.
	ErrUnconfirmed = errors.New("the log is not confirmed")

	// ErrOutage: nothing succeeded for Config.MaxOutage. See to the log and start again.
	ErrOutage = errors.New("log outage")
)

// A Handler takes the records of a log. One goroutine calls its methods. The contexts of Handle,
// Idle and Close end Config.Drain after a request to stop. A handler is dropped without Close if
// Handle or Idle failed, or another log has taken the place of the one that was read: what it holds
// beside memory, the next one must be able to do without.
type Handler interface {
	// Position returns the offset to read next, or false without a state: then the log is
	// read from offset 0. It is called first, and again after StepBack.
	//
	// Handle and Idle call confirm before they save. It returns nil if all records that
	// were handed over are of one log, and ErrReplaced if the log was created again
	// meanwhile: then the handler returns that error and does not save. It returns
	// ErrUnconfirmed if the log does not answer within a second, or fails after that: the
	// handler saves later. Before Close the follower itself confirms. Another goroutine may
	// call it too, until Close returns: it gets ErrUnconfirmed while the follower itself asks.
	Position(confirm func(context.Context) error) (next int64, ok bool)

	// Follows reports whether last, the log's record at next−1, is the one that the state
	// absorbed last, by key, value and headers. It is called once for a position, if the
	// log has that record.
	Follows(last stream.Record) bool

	// StepBack is called if the position does not fit the log, at the opening alone: why is
	// ErrBehind or ErrReplaced, wrapped. The handler goes on from an older state that the
	// log still has, and returns nil: Position is asked again, and must be lower. Or it
	// returns an error that says what to do: Run ends with both.
	StepBack(ctx context.Context, bounds stream.Bounds, why error, at RecordAt) error

	// Handle takes records in ascending offset order, and the log's end when they were read.
	// It may keep the records' keys and values, but not the slice.
	Handle(ctx context.Context, batch []stream.Record, end int64) error

	// Idle is called after each PollInterval without a record.
	Idle(ctx context.Context) error

	// Close finishes and saves: Run stops. It is the last call. It is not called after
	// ErrBehind and ErrReplaced, unless they came at the opening.
	Close(ctx context.Context) error
}

// A RecordAt returns the log's record at an offset, and false if the log has none there.
type RecordAt func(ctx context.Context, offset int64) (stream.Record, bool, error)

// A Config says what to follow, and how.
type Config struct {
	Log  stream.Log
	Name string // of the log, for errors and logs: "topic hamlet.events.default"

	AcceptGap bool // go on after records lost to retention, instead of ErrGap

	// AcceptLostBeginning: a handler without a position reads what retention has left,
	// instead of ErrNoBeginning.
	AcceptLostBeginning bool

	MaxBatch     int           // most records in one Handle; default 128
	PollInterval time.Duration // quiet time before Idle; default 1 s

	// Drain is the time that a handler has after a request to stop: once for the batch in
	// hand, and once for Close. A handler must bound each of its own requests by it. Default
	// 4 s.
	Drain time.Duration

	MaxOutage time.Duration // how long the log may fail without a success in between; 0: for ever
	Logger    *slog.Logger  // nil: silent
}

// Topic returns the Config of a log, with the patience and the logger of its place.
func Topic(log stream.Topic, logs stream.Logs) Config {
	return Config{Log: log, Name: log.Name(), MaxOutage: logs.Patience(), Logger: logs.Logger()}
}

// A Follower reads a log.
type Follower struct {
	cfg      Config
	answered atomic.Pointer[time.Time] // see Answered; nil: never. With a monotonic reading: see answers
}

// New returns a follower. It asks the log nothing.
func New(cfg Config) *Follower {
	cfg.Name = cmp.Or(cfg.Name, "the log")
	cfg.MaxBatch = cmp.Or(cfg.MaxBatch, 128)
	cfg.PollInterval = cmp.Or(cfg.PollInterval, time.Second)
	cfg.Drain = cmp.Or(cfg.Drain, 4*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)).With("log", cfg.Name)
	return &Follower{cfg: cfg}
}

// Answered returns when the log answered last. While Run reads, that is at most some PollIntervals
// ago if the log is well, also while the handler is busy. It may be called concurrently.
func (f *Follower) Answered() time.Time {
	if at := f.answered.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// answers notes that the log answers. The monotonic reading of the time counts: while a wall clock is set
// back by an hour, the log would else have answered just now for an hour.
func (f *Follower) answers() {
	now := time.Now()
	f.answered.Store(&now)
}

// Run reads until ctx ends, then closes the handler and returns nil. It may be called again.
//
// It waits until the log is there, calls open, and drives the handler. After ErrReload, and when
// the log turns out to be another one while it is read, it opens a new handler. It ends early
// with any other error of open or of a handler, with ErrGap, ErrNoBeginning, ErrBehind,
// ErrReplaced, ErrOutage, and with what is final for the log. If the handler fails after ctx has
// ended, for instance in its last save, Run returns that error.
func (f *Follower) Run(ctx context.Context, open func(ctx context.Context) (Handler, error)) error {
	if _, err := f.bounds(ctx); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return f.named(err)
	}
	for pause := newPause(ctx); ctx.Err() == nil; wait(ctx, pause) {
		r := &reading{Follower: f, pause: pause}
		again, err := r.run(ctx, open)
		switch {
		case err == nil:
			return nil
		case !again:
			return f.named(err)
		case errors.Is(err, ErrReload):
			f.cfg.Logger.Info("follow: opening again", "reason", err)
		default:
			f.cfg.Logger.Warn("follow: the log is not the one that was read: opening again", "reason", err)
		}
	}
	return nil
}

// bounds asks for the log's bounds until it answers.
func (f *Follower) bounds(ctx context.Context) (b stream.Bounds, err error) {
	err = retry(ctx, &f.cfg, "ask for the bounds", func(ctx context.Context) error {
		b, err = f.cfg.Log.Bounds(ctx)
		return err
	})
	if err == nil {
		f.answers()
	}
	return b, err
}

// recordAt returns the record at an offset, and false if the log has none there. It retries until
// the log answers. An offset outside the log is an error: [stream.ErrGone] or [stream.ErrBeyond]. So is the log's
// end, where a reader may wait: the log has lost the record if it was there.
func (f *Follower) recordAt(ctx context.Context, offset int64) (r stream.Record, ok bool, err error) {
	what := fmt.Sprintf("read offset %d", offset)
	err = retry(ctx, &f.cfg, what, func(ctx context.Context) error {
		records, end, err := f.cfg.Log.Read(ctx, offset, stream.Limit{Records: 1, Bytes: 1}, 0)
		if err == nil && len(records) == 0 && end <= offset {
			return fmt.Errorf("%w: offset %d, the log ends at %d", stream.ErrBeyond, offset, end)
		}
		if ok = err == nil && len(records) > 0 && records[0].Offset == offset; ok {
			r = records[0]
		}
		return err
	})
	return r, ok, err
}
