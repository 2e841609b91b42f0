// Package up is `hamlet up`: ingest, learner, scorer, doors and the console in one process, on a log
// and models in files or on real servers. It watches a stream go through them.
package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/algos/drift"
	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/door/doors"
	"hamlet/cmd/internal/operate/console"
	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/process/httpd"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/alert"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/cmd/internal/show/report"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/questions"
)

// A config is everything that a run consists of, opened.
type config struct {
	set     *parts.Set     // which opened the parts
	learner learner.Config // Observe and Announce are up's own
	scorer  *scorer.Scorer
	http    *httpd.Server   // nil: none
	doors   *doors.Doors    // for mail servers; nil: none
	console *console.Served // nil: none
	dir     *machine.Dir    // nil: neither the log nor the models are this program's own
	relearn bool            // both are: see planRelearning

	input    *ingest.Input // whose Items are streamed; without any it only serves
	ingest   ingest.Config
	from     int                        // the metrics leave out the first so many events
	once     bool                       // end after the stream
	unasked  bool                       // nobody can ask it: the scorer does not run, and holds no model
	progress *progressLine              // shows alerts too; off a terminal they are logged
	done     func(*report.Result) error // called when the stream has been learnt and saved
	log      *slog.Logger
}

// doorsWait is how long doors wait for the scorer. Then they open without it, so that a
// Redis that does not answer is seen in the metrics.
const doorsWait = 10 * time.Second

// start starts everything and blocks until ctx ends or, with Once, the stream has
// been learnt and saved.
//
// Doors open after the scorer listens, and it answers until they have ended. So a restart
// refuses no request that a door took.
//
// Where the learner ends with an error, and a model is saved, the doors outlive it: answers come
// from that model, and labels wait in the log. start returns the learner's error once it is stopped.
func start(ctx context.Context, cfg config) error {
	again, err := planRelearning(ctx, &cfg)
	if err != nil {
		return err
	}
	r := &run{cfg: cfg, metrics: eval.New(), again: again, stopped: ctx, learnt: make(chan error, 1)}
	if again != nil {
		r.doing.Store("learning the log again")
	}
	lc := cfg.learner
	lc.Observe, lc.Announce = r.observe, r.alert
	if r.learner, err = learner.New(lc); err != nil {
		return err
	}

	g, ctx := errgroup.WithContext(ctx)
	learning, stopLearning := context.WithCancel(ctx)
	defer stopLearning()
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	streaming, stopStreaming := context.WithCancel(ctx)
	defer stopStreaming()
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAnswering()
	defer cfg.set.Notify(serving, func() error { return cmp.Or(r.failure(), r.ready()) })()

	g.Go(func() error {
		err := r.learn(learning)
		r.learnt <- err
		if err != nil && r.outlive(ctx, err) {
			stopStreaming()
			<-r.stopped.Done()
		}
		return err
	})
	g.Go(func() error { r.tend(serving); return nil })
	if !cfg.unasked {
		g.Go(func() error { return cfg.scorer.Run(answering) })
	}
	var taking sync.WaitGroup
	door := func(serve func(context.Context) error) {
		taking.Add(1)
		g.Go(func() error {
			defer taking.Done()
			cfg.awaitScorer(serving)
			return serve(serving)
		})
	}
	if cfg.http != nil {
		cfg.http.SetReady(r.ready, r.summary)
		door(cfg.http.Run)
	}
	if cfg.doors != nil {
		door(cfg.doors.Run)
	}
	g.Go(func() error {
		<-serving.Done()
		taking.Wait()
		stopAnswering()
		return nil
	})
	if cfg.console != nil {
		g.Go(func() error { return cfg.console.Run(serving) })
	}
	g.Go(func() error {
		err := r.follow(ctx, streaming, stopLearning)
		if cfg.once || err != nil {
			stopServing()
		} else {
			r.show(serving, false)
		}
		if r.stopped.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // an orderly stop; the learner reports what it could not save
		}
		return err
	})
	return g.Wait()
}

// learn runs the learner until ctx ends. Before it learns the log again, where it must.
func (r *run) learn(ctx context.Context) error {
	if r.again != nil {
		r.collectOften()
		err := r.again.run(ctx, func(text string) { r.doing.Store(text) })
		r.doing.Store("")
		if err != nil && ctx.Err() == nil {
			r.cfg.log.Warn("the model goes on under this program's numerics, and the next start may learn the log again",
				"error", err)
			r.learner.Adopt()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return r.cfg.set.Learn(r.learner)(ctx)
}

// tend deletes what is too old of this program's own log, until ctx ends. The log is learnt again first, where
// it must be.
func (r *run) tend(ctx context.Context) {
	if r.cfg.dir == nil {
		return
	}
	if r.again != nil {
		select {
		case <-r.again.read:
		case <-ctx.Done():
		}
	}
	if ctx.Err() == nil { // else the log may not have been read
		r.cfg.dir.Tend(ctx)
	}
}

// follow shows how the stream goes until it is learnt and saved, and reports the figures. With Once
// it has the learner stopped, which saves then.
func (r *run) follow(ctx, streaming context.Context, stopLearning func()) error {
	watch, stop := context.WithCancel(ctx)
	defer stop()
	var showing sync.WaitGroup
	showing.Go(func() { r.show(watch, true) })
	err := r.stream(streaming)
	r.noteStatus()
	if err == nil && r.cfg.once {
		stopLearning()
		select {
		case err = <-r.learnt:
		case <-ctx.Done():
			err = ctx.Err()
		}
	} else if err == nil {
		r.learner.Save()
		err = r.awaitSaved(streaming)
	}
	stop()
	showing.Wait()
	switch {
	case r.failure() != nil:
		return nil // learn returns its error
	case err != nil:
		return err
	}
	return r.finish(ctx)
}

// awaitScorer returns once requests reach the scorer, when ctx ends, or after doorsWait.
func (cfg *config) awaitScorer(ctx context.Context) {
	late := time.NewTimer(doorsWait)
	defer late.Stop()
	select {
	case <-cfg.scorer.Listening():
	case <-late.C:
	case <-ctx.Done():
	}
}

// outlive reports whether the doors go on without the learner, which has ended with err. It says
// so, and notes err for ready and summary. A learner that has never held a model ends all of
// it, unless the log is what ended it: who starts with a wrong flag is to see that at once.
func (r *run) outlive(ctx context.Context, err error) bool {
	err = advice.Add(err)
	ofLog := errors.Is(err, follow.ErrReplaced) || errors.Is(err, follow.ErrBehind) || errors.Is(err, follow.ErrGap) ||
		errors.Is(err, stream.ErrDamaged)
	if ctx.Err() != nil || r.cfg.once || !r.held.Load() && !ofLog {
		return false
	}
	if _, err := r.cfg.set.Store.Heading(ctx, state.Served); err != nil {
		return false // there is nothing to answer from
	}
	r.mu.Lock()
	r.failed = err
	r.mu.Unlock()
	r.cfg.log.Error("the learner has ended: answers go on from the saved model, labels wait in the log; "+
		"restart hamlet when this is mended", "error", err)
	return true
}

// failure returns the error that the learner has ended with, where the doors have outlived it.
func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// summary returns what /readyz adds where the doors are ready: how the learner stands.
func (r *run) summary() string {
	if err := r.failure(); err != nil {
		return fmt.Sprintf("answers only; the learner has ended, and labels wait in the log: %v", err)
	}
	text := r.learner.Summary()
	if doing, _ := r.doing.Load().(string); doing != "" {
		text = "answers come from the old version; " + doing
	}
	if r.cfg.dir != nil {
		if err := r.cfg.dir.Full(); err != nil {
			return fmt.Sprintf("answers only; labels are refused: %v; %s", err, text)
		}
	}
	return text
}

// ready reports why events can't be learnt or messages not be answered. A missing
// model is no reason before the first event: whoever sends it may wait for us to be
// ready.
func (r *run) ready() error {
	doing, _ := r.doing.Load().(string)
	ended := r.failure() != nil || doing != "" // then answers are all that there is to be ready for
	var err error
	if !ended {
		err = r.learner.Ready()
	}
	if err != nil {
		return err
	}
	err = r.cfg.scorer.Ready()
	var refused *questions.Refusal
	if errors.As(err, &refused) {
		if ended || r.learner.Status().Events > 0 {
			return err
		}
		return nil
	}
	return err
}

type run struct {
	cfg     config
	learner *learner.Learner
	again   *relearning     // before the learner; nil: nothing
	stopped context.Context // ends when the user stops it
	learnt  chan error      // takes what the learner ended with
	stats   ingest.Stats
	resumed uint64       // the events that the model had learnt before this run; awaitModel writes it
	held    atomic.Bool  // the learner has held a model
	doing   atomic.Value // string: what is done before the learner runs; "": it runs

	mu          sync.Mutex
	failed      error // of the learner, which the doors have outlived
	reported    bool  // nobody wants the figures any more, and metrics is nil
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
	if !r.cfg.progress.line.OnTerminal() {
		alert.Log(r.cfg.log, a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alerts = append(r.alerts, *a)
}

// collectOften is called once there is a model, or no stream from which one will be learnt at once. Most of the heap is
// its tables, which hold no pointers: to collect is cheap, and with Go's 100 the garbage may be as large as the
// tables. Before, the heap is small, and it would be collected eight times for nothing.
func (r *run) collectOften() {
	if r.cfg.dir != nil {
		debug.SetGCPercent(25)
	}
}

// observe is called by the learner for every record.
func (r *run) observe(a learner.Applied) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported {
		return
	}
	r.last = time.Now()
	if r.first.IsZero() {
		r.first = r.last
		r.collectOften()
	}
	r.seen++
	if a.Outcome.Taught() {
		r.doubts.Add(a.Event.Source, a.Effect.Phi)
	}
	switch a.Outcome {
	case learner.Learned:
		if r.learned++; r.learned > r.cfg.from {
			r.metrics.Add(a.Event.Label == stream.Spam, a.Effect.Prediction.LogOdds)
			r.intervals.Add(a.Effect.Prediction)
			r.noChange.Add(a.Event.Label == stream.Spam)
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
	if r.cfg.input.Items != nil {
		cfg := r.cfg.ingest
		var err error
		if cfg.Resume, err = ingest.FindEnd(ctx, r.cfg.learner.Follow, r.cfg.log); err != nil {
			return err
		}
		if r.stats, err = ingest.Send(ctx, cfg, r.cfg.input); err != nil {
			return err
		}
	}
	end, err := follow.Bounds(ctx, r.cfg.learner.Follow)
	if err != nil {
		return err
	}
	return r.await(ctx, func(s learner.Status) bool { return s.Next >= end.End })
}

// awaitModel waits until the learner holds the model.
func (r *run) awaitModel(ctx context.Context) error {
	return r.await(ctx, func(s learner.Status) bool {
		if r.resumed = s.Resumed; r.resumed > 0 || r.cfg.input.Items == nil {
			r.collectOften()
		}
		r.held.Store(true)
		return true
	})
}

func (r *run) awaitSaved(ctx context.Context) error {
	return r.await(ctx, func(s learner.Status) bool { return s.SavedEnd >= s.Next })
}

// await waits until the learner holds a model of which done is true.
func (r *run) await(ctx context.Context, done func(learner.Status) bool) error {
	for {
		if s := r.learner.Status(); s.Loaded && done(s) {
			return nil
		}
		if !clock.Sleep(ctx, 20*time.Millisecond) {
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
	saved, _, err := r.cfg.set.Store.Manifest(ctx, state.Head)
	if err != nil && !errors.Is(err, state.ErrNone) {
		return err
	}
	r.mu.Lock()
	result := &report.Result{
		Summary: r.metrics.Summary(), Rejected: r.stats.Rejected + r.dead, Duplicates: r.duplicates, LeftOut: r.leftOut,
		ResumedAt: int(r.resumed), NoChangeError: r.noChange.Error(), Learned: r.learned,
	}
	if !r.cfg.learner.Model.Alarms.Off {
		result.Reading = r.diagnosis.String()
	}
	result.AddGates(r.gates)
	if took := r.last.Sub(r.first); took > 0 {
		result.EventsPerSecond = float64(r.seen) / took.Seconds()
	}
	result.SetIntervals(&r.intervals)
	result.SetDoubts(&r.doubts)
	r.reported, r.metrics, r.intervals, r.doubts = true, nil, report.Intervals{}, eval.Doubts{}
	r.mu.Unlock()
	if err == nil {
		result.SetModel(saved.Model)
	}
	return r.cfg.done(result)
}

// show shows new alerts twice a second until ctx ends, and with draw how far the stream is. That takes at
// most a fiftieth of the time: on a stream of a million events the figures sort a million scores.
func (r *run) show(ctx context.Context, draw bool) {
	timer := time.NewTimer(showEvery)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		r.showAlerts()
		start := time.Now()
		if draw && ctx.Err() == nil && r.cfg.progress.due(start) {
			r.cfg.progress.draw(r.snapshot())
		}
		timer.Reset(max(showEvery, 50*time.Since(start)))
	}
	r.cfg.progress.line.Clear()
	r.showAlerts()
}

// showEvery is how often the progress and new alerts are shown.
const showEvery = 500 * time.Millisecond

// showAlerts writes a line for each alert since the last time.
func (r *run) showAlerts() {
	r.mu.Lock()
	alerts := r.alerts
	r.alerts = nil
	r.mu.Unlock()
	for i := range alerts {
		r.cfg.progress.line.Print(alert.Sentence(&alerts[i]))
	}
}

// A snapshot is what the progress shows.
type snapshot struct {
	Learned, Duplicates, Dead int
	Lag                       int64
	Epsilon                   float64
	Diagnosis                 drift.Diagnosis
	Summary                   eval.Summary
}

func (r *run) snapshot() snapshot {
	status := r.learner.Status()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := snapshot{Learned: r.learned, Duplicates: r.duplicates, Dead: r.dead, Summary: r.metrics.Summary()}
	s.Lag, s.Epsilon, s.Diagnosis = status.Lag(), status.Epsilon, status.Reading
	return s
}
