// Package replay runs labelled events through a model without brokers: each is scored
// first and learnt afterwards, in order, by the code of the services.
//
//	s, err := source.Open(source.Config{Paths: []string{"rows.csv"}})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	result, m, err := replay.Run(ctx, replay.Config{Model: model.Config{Dense: s.Dense()}, Scores: out}, s.Events())
//	if err != nil {
//		return err
//	}
//	return result.WriteTable(os.Stdout)
package replay

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/wire"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// A Config says what is learnt when, and what is measured.
type Config struct {
	Model         model.Config
	Delay         int              // an event is learnt after so many further ones were scored
	TeachFirst    int              // only the first so many events are learnt; 0: all
	From          int              // metrics leave out the first so many events
	Scores        io.Writer        // a CSV line for each event, as predicted before it was learnt; may be nil
	Alerts        io.Writer        // a line of JSON for each change of an alarm; may be nil
	Runner        model.Runner     // runs slow work beside the stream; nil: within it
	RebuildFailed func(error)      // called for each ensemble that could not be rebuilt; may be nil
	Rejected      func(error)      // called for each item that cannot be learnt from; may be nil
	Progress      func(scored int) // called now and then; may be nil
	Observer      Observer         // may be nil

	// SetAside is called for each event whose learning ended in a panic, before the replay
	// begins again without it; may be nil.
	SetAside func(*model.PanicError)
}

// An Observer sees a replay as it goes. Its methods are called one at a time.
type Observer interface {
	// Scored is called for each event that is measured, before it is learnt. n counts the
	// scored events from 1.
	Scored(n int, source string, spam bool, logOdds float64)
	// Alerted is called for each step of an incident. It must not keep a.
	Alerted(a *stream.Alert)
}

// Run replays items and returns the result and the model. It does not learn the last
// Delay events. If ctx or an error among items ends it early, scores and alerts still
// end with whole lines.
//
// An event whose learning ends in a panic is set aside, as a learner does: Run reads items from
// their beginning again, by a new model whose configuration names the event. What was handed
// out before is not handed out again: up to that event nothing is different.
func Run(ctx context.Context, cfg Config, items iter.Seq2[source.Item, error]) (*report.Result, *model.Model, error) {
	var said emitted
	for {
		result, m, err := once(ctx, cfg, &said, items)
		var broken *model.PanicError
		if !errors.As(err, &broken) || len(cfg.Model.SetAside) >= model.MostSetAside {
			return result, m, err
		}
		if cfg.SetAside != nil {
			cfg.SetAside(broken)
		}
		cfg.Model.SetAside = append(slices.Clone(cfg.Model.SetAside), broken.Key)
		said.again()
	}
}

func once(ctx context.Context, cfg Config, said *emitted,
	items iter.Seq2[source.Item, error]) (*report.Result, *model.Model, error) {
	m, err := model.New(cfg.Model)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration of the model: %w", err)
	}
	r := &replay{cfg: cfg, said: said, model: m, predictor: m.NewPredictor(), metrics: eval.New()}
	if cfg.Scores != nil {
		r.scores = csv.NewWriter(bufio.NewWriterSize(cfg.Scores, 1<<16))
		if said.first(aScore) {
			_ = r.scores.Write([]string{"id", "label", "p", "log_odds", "lo", "hi"}) // flush returns the first error
		}
	}
	if cfg.Runner != nil {
		m.SetRunner(cfg.Runner)
	}
	if cfg.Alerts != nil {
		r.alerts = bufio.NewWriter(cfg.Alerts)
	}
	start := time.Now()
	err = r.run(ctx, items)
	took := time.Since(start)
	if err := errors.Join(err, r.flush()); err != nil {
		return nil, nil, err
	}
	result := &report.Result{
		Summary: r.metrics.Summary(), Rejected: r.rejected, Duplicates: r.duplicates, LeftOut: r.leftOut,
		NoChangeError: r.guess.Error(), EventsPerSecond: float64(r.scored) / took.Seconds(), Learned: r.scored,
	}
	if !m.Config().Alarms.Off {
		result.Reading = m.Diagnosis().String()
	}
	result.AddGates(m.Gates())
	b, err := m.AppendBinary(nil)
	if err != nil {
		return nil, nil, err
	}
	result.SetModel(sha256.Sum256(b))
	result.SetIntervals(&r.intervals)
	result.SetDoubts(&r.doubts)
	return result, m, nil
}

// An output is something that a replay hands out.
type output uint8

const (
	aScore output = iota
	aScored
	anAlert
	anAlerted
	aRejection
	aFailure
	sayings
)

// An emitted counts what a replay that begins again has handed out.
type emitted struct{ before, now [sayings]int }

// first counts one more, and reports whether it was not handed out before.
func (s *emitted) first(what output) bool {
	s.now[what]++
	return s.now[what] > s.before[what]
}

func (s *emitted) again() {
	for i := range s.now {
		s.before[i], s.now[i] = max(s.before[i], s.now[i]), 0
	}
}

type replay struct {
	cfg       Config
	said      *emitted
	model     *model.Model
	predictor *model.Predictor
	metrics   *eval.Metrics
	guess     report.NoChange
	intervals report.Intervals
	doubts    eval.Doubts
	scores    *csv.Writer   // nil: not wanted
	alerts    *bufio.Writer // nil: not wanted
	csvRow    []string      // scratch: a line of scores
	line      []byte        // scratch: a line of alerts

	passed int       // with a delay: events that the model did not refuse
	late   []waiting // scored, not yet learnt, in order

	scored, taught, rejected, duplicates, leftOut int
}

// A parsed is an item as the model takes it, or the reason why it cannot be.
type parsed struct {
	example  model.Example
	standing *stream.Standing // nil: an event
	truth    stream.Label
	rejected error
}

// A waiting is an event that is learnt once Delay more have passed, or a standing that holds
// from there on.
type waiting struct {
	example  model.Example
	standing *stream.Standing // nil: an event
	since    int              // passed when it was scored, itself included
}

// flush writes what is buffered. It returns the first error of each output.
func (r *replay) flush() error {
	var errs []error
	if r.scores != nil {
		r.scores.Flush()
		if err := r.scores.Error(); err != nil {
			errs = append(errs, fmt.Errorf("write scores: %w", err))
		}
	}
	if r.alerts != nil {
		if err := r.alerts.Flush(); err != nil {
			errs = append(errs, fmt.Errorf("write alerts: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Batches are batchSize items, and there are at most maxBatches: one is read, one learnt, the
// others wait between.
const batchSize, maxBatches = 16, 4

// A batch is some items, with memory for what the model reads of them.
type batch struct {
	items    []parsed
	readings [batchSize]model.Extract
}

// run parses items ahead of the model, and reads them for it if there is a second processor.
func (r *replay) run(ctx context.Context, items iter.Seq2[source.Item, error]) error {
	g, ctx := errgroup.WithContext(ctx)
	free, full := make(chan *batch, maxBatches), make(chan *batch, maxBatches)
	for range maxBatches {
		free <- &batch{items: make([]parsed, 0, batchSize)}
	}
	var reader *model.Extractor // nil: the model reads
	if runtime.GOMAXPROCS(0) > 1 {
		reader = r.model.NewExtractor()
	}
	g.Go(func() error {
		defer close(full)
		to := <-free
		for item, err := range items {
			var rejected *source.Rejection
			switch {
			case errors.As(err, &rejected):
				to.items = append(to.items, parsed{rejected: err})
			case err != nil:
				return err
			case item.Standing != nil:
				to.items = append(to.items, parsed{standing: item.Standing})
			default:
				e, _, err := example.Of(&item.Event)
				if reader != nil && err == nil {
					reader.Read(&to.readings[len(to.items)], &e.Body)
				}
				to.items = append(to.items, parsed{example: e, truth: item.Truth, rejected: err})
			}
			if len(to.items) < batchSize {
				continue
			}
			full <- to // has room for all batches
			select {
			case to = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		full <- to
		return nil
	})
	g.Go(func() error {
		for from := range full {
			for i := range from.items {
				if err := r.step(&from.items[i]); err != nil {
					return err
				}
			}
			clear(from.items) // free their memory
			from.items = from.items[:0]
			free <- from // has room for all batches
			if r.cfg.Progress != nil {
				r.cfg.Progress(r.scored)
			}
		}
		return nil
	})
	return g.Wait()
}

// step returns an error if the model is lost. A rejected item is no error.
func (r *replay) step(p *parsed) error {
	switch {
	case p.rejected != nil:
	case p.standing != nil:
		p.rejected = r.follow(p.standing)
	default:
		p.rejected = r.score(p)
	}
	if broken := (*model.PanicError)(nil); errors.As(p.rejected, &broken) {
		return p.rejected
	}
	if p.rejected != nil {
		r.rejected++
		if r.cfg.Rejected != nil && r.said.first(aRejection) {
			r.cfg.Rejected(p.rejected)
		}
	}
	return nil
}

// score predicts p, learns what is due and measures. On an error the model has refused
// p, and nothing has changed.
func (r *replay) score(p *parsed) error {
	learn := r.cfg.TeachFirst == 0 || r.taught < r.cfg.TeachFirst
	if learn && r.cfg.Delay == 0 {
		effect, err := r.apply(&p.example)
		if err != nil {
			return err
		}
		switch {
		case effect.Duplicate:
			r.duplicates++
			return nil
		case effect.LeftOut:
			r.leftOut++
			return nil
		}
		r.taught++
		if effect.Receipt != nil || p.example.Action == model.Assume { // not scored: the model had answered before
			r.scored++
			return nil
		}
		r.measure(p, effect.Prediction)
		return nil
	}
	switch {
	case r.model.LeavesOut(p.example.Source):
		r.leftOut++
	case p.example.Action == model.Learn:
		prediction, err := r.predictor.Predict(&p.example.Body)
		if err != nil {
			return fmt.Errorf("event %s: %w", p.example.ID, err)
		}
		r.measure(p, prediction)
	}
	r.passed++
	if learn {
		r.taught++
		p.example.Body.Extract = nil // it is used again before the event is learnt
		r.late = append(r.late, waiting{example: p.example, since: r.passed})
	}
	return r.catchUp()
}

// follow gives a source its role: at once, or with a delay between the events that it came
// between. On an error nothing has changed.
func (r *replay) follow(s *stream.Standing) error {
	if r.cfg.Delay == 0 {
		return example.Follow(r.model, s)
	}
	r.late = append(r.late, waiting{standing: s, since: r.passed})
	return nil
}

// catchUp learns the event that is due, and follows the standings beside it. There is at
// most one event, as each has another since.
func (r *replay) catchUp() error {
	var errs []error
	for len(r.late) > 0 && r.passed-r.late[0].since >= r.cfg.Delay {
		due := r.late[0]
		r.late[0] = waiting{} // free its memory
		r.late = r.late[1:]
		if due.standing != nil {
			errs = append(errs, example.Follow(r.model, due.standing))
			continue
		}
		effect, err := r.apply(&due.example)
		errs = append(errs, err)
		if effect.Duplicate {
			r.duplicates++
		}
	}
	return errors.Join(errs...)
}

// apply learns e, counts the label if somebody gave it, and writes the alerts.
func (r *replay) apply(e *model.Example) (model.Effect, error) {
	effect, err := r.model.Attempt(e)
	if err != nil {
		return effect, fmt.Errorf("event %s: %w", e.ID, err)
	}
	if effect.Phi > 0 && e.Action != model.Assume { // somebody's label was learnt
		r.doubts.Add(e.Source, effect.Phi)
	}
	for i := range effect.Rebuilds {
		b := &effect.Rebuilds[i]
		if b.Err != nil && r.cfg.RebuildFailed != nil && r.said.first(aFailure) {
			r.cfg.RebuildFailed(fmt.Errorf("%s (%s) from %d rows at its event %d: %w",
				b.Ensemble, b.Body, b.Rows, b.Started, b.Err))
		}
	}
	if r.alerts == nil && r.cfg.Observer == nil {
		return effect, nil
	}
	for i := range effect.Alerts {
		a := wire.Alert(&effect.Alerts[i])
		if r.cfg.Observer != nil && r.said.first(anAlerted) {
			r.cfg.Observer.Alerted(&a)
		}
		if r.alerts == nil || !r.said.first(anAlert) {
			continue
		}
		if r.line, err = a.AppendJSON(r.line[:0]); err != nil {
			panic(err) // wire.Alert returns none that cannot be written
		}
		_, _ = r.alerts.Write(append(r.line, '\n')) // flush returns the first error
	}
	return effect, nil
}

func (r *replay) measure(p *parsed, prediction model.Prediction) {
	if r.scored++; r.scored > r.cfg.From {
		r.metrics.Add(p.truth == stream.Spam, prediction.LogOdds)
		r.intervals.Add(prediction)
		r.guess.Add(p.truth == stream.Spam)
		if r.cfg.Observer != nil && r.said.first(aScored) {
			r.cfg.Observer.Scored(r.scored, p.example.Source, p.truth == stream.Spam, prediction.LogOdds)
		}
	}
	if r.scores == nil || !r.said.first(aScore) {
		return
	}
	lo, hi := prediction.Interval(model.Z90)
	r.csvRow = append(r.csvRow[:0], p.example.ID, p.truth.String())
	for _, v := range [...]float64{prediction.P(), prediction.LogOdds, lo, hi} {
		r.csvRow = append(r.csvRow, strconv.FormatFloat(v, 'g', -1, 64))
	}
	_ = r.scores.Write(r.csvRow) // flush returns the first error
}
