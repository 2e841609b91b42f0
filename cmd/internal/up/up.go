// Package up runs ingest, learner and scorer in one process, on embedded
// brokers or on real ones, and watches a stream go through them.
package up

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/algos/drift"
	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/alert"
	"hamlet/cmd/internal/answered"
	"hamlet/cmd/internal/follow"
	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/report"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A Config is everything that a run needs, connected.
type Config struct {
	Events   follow.Config // where the stream goes: Learner's log
	Topic    string
	Store    *redis.Store
	Learner  learner.Config              // Observe and Announce are up's own
	Answered *answered.Service           // Learner's; nil: none
	Scorer   func(context.Context) error // blocks; nil: none
	Answers  func() error                // why the scorer cannot answer; nil: nobody asks
	Asked    <-chan struct{}             // closed once requests reach the scorer: doors open then; nil: at once
	HTTP     func(ctx context.Context, ready func() error, standing func() string) error
	Doors    func(context.Context) error  // for mail servers; blocks; nil: none
	Console  func(context.Context) error  // the web console; blocks; nil: none
	Open     func() (ingest.Items, error) // the stream; nil: only serve
	Ingest   ingest.Config
	From     int                        // the metrics leave out the first so many events
	Once     bool                       // end after the stream
	Progress *Progress                  // shows alerts too; off a terminal they are logged
	Done     func(*report.Result) error // called when the stream has been learnt and saved
	// Notify tells systemd that all serve, and how ready they are; nil: nobody asks.
	Notify func(ctx context.Context, ready func() error) (stop func())
	Log    *slog.Logger
}

// doorsWait is how long doors wait for the scorer. Then they open without it, so that a
// Redis that does not answer is seen in the metrics.
const doorsWait = 10 * time.Second

// Run starts everything and blocks until ctx ends or, with Once, the stream has
// been learnt and saved.
//
// Doors open after the scorer listens, and it answers until they have ended. So a restart
// refuses no request that a door took.
//
// Where the learner ends with an error, and a model is saved, the doors outlive it: answers come
// from that model, and labels wait in the log. Run returns the learner's error once it is stopped.
func Run(ctx context.Context, cfg Config) error {
	r := &run{cfg: cfg, metrics: eval.New()}
	lc := cfg.Learner
	lc.Observe, lc.Announce = r.observe, r.alert
	l, err := learner.New(lc)
	if err != nil {
		return err
	}
	r.learner = l

	stopped := ctx // by the user
	g, ctx := errgroup.WithContext(ctx)
	learning, stopLearning := context.WithCancel(ctx)
	defer stopLearning()
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	if cfg.Notify != nil {
		defer cfg.Notify(serving, func() error { return cmp.Or(r.failure(), r.ready()) })()
	}
	streaming, stopStreaming := context.WithCancel(ctx)
	defer stopStreaming()
	learnt := make(chan error, 1)
	g.Go(func() error {
		err := cfg.Answered.Beside(l.Run)(learning)
		learnt <- err
		if err != nil && r.outlive(ctx, err) {
			stopStreaming()
			<-stopped.Done()
		}
		return err
	})
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAnswering()
	if cfg.Scorer != nil {
		g.Go(func() error { return cfg.Scorer(answering) })
	}
	var doors sync.WaitGroup
	door := func(serve func() error) {
		doors.Add(1)
		g.Go(func() error {
			defer doors.Done()
			cfg.awaitScorer(serving)
			return serve()
		})
	}
	if cfg.HTTP != nil {
		door(func() error { return cfg.HTTP(serving, r.ready, r.standing) })
	}
	if cfg.Doors != nil {
		door(func() error { return cfg.Doors(serving) })
	}
	g.Go(func() error {
		<-serving.Done()
		doors.Wait()
		stopAnswering()
		return nil
	})
	if cfg.Console != nil {
		g.Go(func() error { return cfg.Console(serving) })
	}
	g.Go(func() error {
		watch, stop := context.WithCancel(serving)
		defer stop()
		var showing sync.WaitGroup
		showing.Go(func() { r.show(watch) })
		err := r.stream(streaming)
		r.noteStatus()
		if err == nil && cfg.Once {
			stopLearning() // it saves at its end
			select {
			case err = <-learnt:
			case <-ctx.Done():
				err = ctx.Err()
			}
		} else if err == nil {
			err = r.awaitSaved(streaming)
		}
		stop()
		showing.Wait()
		r.showAlerts()
		switch {
		case r.failure() != nil:
			err = nil // the learner's goroutine returns its error
		case err == nil:
			err = r.finish(ctx)
		}
		if cfg.Once || err != nil {
			stopServing()
		} else {
			r.announce(serving)
		}
		if stopped.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // an orderly stop; the learner reports what it could not save
		}
		return err
	})
	return g.Wait()
}

// awaitScorer returns once requests reach the scorer, when ctx ends, or after doorsWait.
func (cfg *Config) awaitScorer(ctx context.Context) {
	if cfg.Asked == nil {
		return
	}
	late := time.NewTimer(doorsWait)
	defer late.Stop()
	select {
	case <-cfg.Asked:
	case <-late.C:
	case <-ctx.Done():
	}
}

// outlive reports whether the doors go on without the learner, which has ended with err. It says
// so, and notes err for ready and standing. A learner that has never held a model ends all of
// it, unless the log is what ended it: who starts with a wrong flag is to see that at once.
func (r *run) outlive(ctx context.Context, err error) bool {
	ofLog := errors.Is(err, follow.ErrReplaced) || errors.Is(err, follow.ErrBehind) || errors.Is(err, follow.ErrGap)
	if ctx.Err() != nil || r.cfg.Once || r.cfg.Scorer == nil || !r.held.Load() && !ofLog {
		return false
	}
	if _, err := r.cfg.Store.Heading(ctx, state.Served); err != nil {
		return false // there is nothing to answer from
	}
	r.mu.Lock()
	r.failed = err
	r.mu.Unlock()
	r.cfg.Log.Error("the learner has ended: answers go on from the saved model, labels wait in the log; restart hamlet when this is mended",
		"error", err)
	return true
}

// failure returns the error that the learner has ended with, where the doors have outlived it.
func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// standing returns what /readyz adds where the doors are ready: how the learner stands.
func (r *run) standing() string {
	if err := r.failure(); err != nil {
		return fmt.Sprintf("answers only; the learner has ended, and labels wait in the log: %v", err)
	}
	return r.learner.Standing()
}

// ready reports why events can't be learnt or messages not be answered. A missing
// model is no reason before the first event: whoever sends it may wait for us to be
// ready.
func (r *run) ready() error {
	ended := r.failure() != nil // then answers are all that there is to be ready for
	var err error
	if !ended {
		err = r.learner.Ready()
	}
	if err != nil || r.cfg.Answers == nil {
		return err
	}
	err = r.cfg.Answers()
	var refused *nats.Error
	if errors.As(err, &refused) {
		if ended || r.learner.Status().Events > 0 {
			return err
		}
		return nil
	}
	return err
}

type run struct {
	cfg     Config
	learner *learner.Learner
	stats   ingest.Stats
	resumed uint64      // the events that the model had learnt before this run; awaitModel writes it
	held    atomic.Bool // the learner has held a model

	mu          sync.Mutex
	failed      error // of the learner, which the doors have outlived
	metrics     *eval.Metrics
	noChange    report.NoChange
	intervals   report.Intervals
	doubts      eval.Doubts
	first, last time.Time
	seen        int
	learned     int
	duplicates  int
	leftOut     int
	dead        int
	alerts      []stream.Alert  // not shown yet; alert adds, showAlerts takes
	diagnosis   drift.Diagnosis // at the end of the stream; noteStatus writes it
	gates       []model.Gate    // the same
}

// alert is called by the learner for every change of an alarm. Off a terminal the
// change is logged as by a learner.
func (r *run) alert(a *stream.Alert) {
	if !r.cfg.Progress.OnTerminal() {
		alert.Log(r.cfg.Log, a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alerts = append(r.alerts, *a)
}

// observe is called by the learner for every record.
func (r *run) observe(a learner.Applied) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	if r.first.IsZero() {
		r.first = r.last
	}
	r.seen++
	if a.Outcome.Taught() {
		r.doubts.Add(a.Event.Source, a.Effect.Phi)
	}
	switch a.Outcome {
	case learner.Learned:
		if r.learned++; r.learned > r.cfg.From {
			r.metrics.Add(a.Truth == stream.Spam, a.Effect.Prediction.LogOdds)
			r.intervals.Add(a.Effect.Prediction)
			r.noChange.Add(a.Truth == stream.Spam)
		}
	case learner.Relearned, learner.Unlearned, learner.Corrected, learner.Uncorrected, learner.Assumed, learner.Unassumed:
		r.learned++ // not scored: the model had seen or answered the event
	case learner.Duplicate:
		r.duplicates++
	case learner.LeftOut:
		r.leftOut++
	case learner.DeadLettered:
		r.dead++
	}
}

// stream publishes the source and waits until the learner has read all of it.
func (r *run) stream(ctx context.Context) error {
	if err := r.awaitModel(ctx); err != nil {
		return err
	}
	if r.cfg.Open != nil {
		cfg := r.cfg.Ingest
		var err error
		if cfg.Resume, err = ingest.FindEnd(ctx, r.cfg.Events, r.cfg.Log); err != nil {
			return err
		}
		if r.stats, err = ingest.Source(ctx, cfg, r.cfg.Open); err != nil {
			return err
		}
	}
	end, err := follow.Bounds(ctx, r.cfg.Events)
	if err != nil {
		return err
	}
	return r.await(ctx, func(s learner.Status) bool { return s.Next >= end.End })
}

// awaitModel waits until the learner holds the model.
func (r *run) awaitModel(ctx context.Context) error {
	return r.await(ctx, func(s learner.Status) bool {
		r.resumed = s.Resumed
		r.held.Store(true)
		return true
	})
}

func (r *run) awaitSaved(ctx context.Context) error {
	return r.await(ctx, func(s learner.Status) bool { return s.SavedEnd >= s.Next })
}

// await waits until the learner holds a model of which done is true.
func (r *run) await(ctx context.Context, done func(learner.Status) bool) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if s := r.learner.Status(); s.Loaded && done(s) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// noteStatus notes what the alarms say and how the gates stand, before the learner ends
// and takes its status with it.
func (r *run) noteStatus() {
	s := r.learner.Status()
	r.mu.Lock()
	r.diagnosis, r.gates = s.Reading, s.Gates
	r.mu.Unlock()
}

// finish reports the stream's figures and the model as it is saved.
func (r *run) finish(ctx context.Context) error {
	sum, err := ServedSHA256(ctx, r.cfg.Store)
	if err != nil && !errors.Is(err, state.ErrNone) {
		return err
	}
	r.mu.Lock()
	result := &report.Result{
		Summary: r.metrics.Summary(), Rejected: r.stats.Rejected + r.dead, Duplicates: r.duplicates, LeftOut: r.leftOut,
		ResumedAt: int(r.resumed), NoChangeError: r.noChange.Error(), Learned: r.learned,
	}
	if !r.cfg.Learner.Model.Alarms.Off {
		result.Reading = r.diagnosis.String()
	}
	result.AddGates(r.gates)
	if took := r.last.Sub(r.first); took > 0 {
		result.EventsPerSecond = float64(r.seen) / took.Seconds()
	}
	result.SetIntervals(&r.intervals)
	result.SetDoubts(&r.doubts)
	r.mu.Unlock()
	if err == nil {
		result.SetModel(sum)
	}
	if r.cfg.Done == nil {
		return nil
	}
	return r.cfg.Done(result)
}

// ServedSHA256 returns the SHA-256 of the saved model.
func ServedSHA256(ctx context.Context, store *redis.Store) ([sha256.Size]byte, error) {
	m, _, err := store.Manifest(ctx, state.Head)
	if errors.Is(err, state.ErrNone) {
		return [sha256.Size]byte{}, fmt.Errorf("no model was saved: %w", err)
	}
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return m.Model, nil
}

// show draws the progress twice a second. It takes at most a fiftieth of the time:
// on a stream of a million events the figures sort a million scores.
func (r *run) show(ctx context.Context) {
	if r.cfg.Progress == nil {
		return
	}
	timer := time.NewTimer(showEvery)
	defer timer.Stop()
	defer r.cfg.Progress.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			r.showAlerts()
			start := time.Now()
			r.cfg.Progress.Draw(r.snapshot())
			timer.Reset(max(showEvery, 50*time.Since(start)))
		}
	}
}

// showEvery is how often the progress and new alerts are shown.
const showEvery = 500 * time.Millisecond

// showAlerts writes a line for each alert since the last time.
func (r *run) showAlerts() {
	r.mu.Lock()
	alerts := r.alerts
	r.alerts = nil
	r.mu.Unlock()
	if r.cfg.Progress == nil {
		return
	}
	for i := range alerts {
		r.cfg.Progress.Say(alert.Sentence(&alerts[i]))
	}
}

// announce shows alerts until ctx ends.
func (r *run) announce(ctx context.Context) {
	ticker := time.NewTicker(showEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			r.showAlerts()
			return
		case <-ticker.C:
			r.showAlerts()
		}
	}
}

// A Snapshot is what the progress shows.
type Snapshot struct {
	Learned, Duplicates, Dead int
	Lag                       int64
	Epsilon                   float64
	Diagnosis                 drift.Diagnosis
	Summary                   eval.Summary
}

func (r *run) snapshot() Snapshot {
	status := r.learner.Status()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{Learned: r.learned, Duplicates: r.duplicates, Dead: r.dead, Summary: r.metrics.Summary()}
	s.Lag, s.Epsilon, s.Diagnosis = status.Lag(), status.Epsilon, status.Reading
	return s
}
