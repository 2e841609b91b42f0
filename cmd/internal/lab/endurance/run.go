package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"hamlet/algos/blr"
	"hamlet/algos/model"
)

// Config says what a run is.
type Config struct {
	Model  model.Config
	Seed   uint64
	Events uint64 // of the stream
	Every  uint64 // events from a check to the next
}

const (
	// A model that was restored learns this many events beside the one that was saved: two
	// rebuilds of its ensembles and more.
	twinEvents = 1200
	// Before a check, V is measured as far from its last factoring as it comes: the head's is
	// computed again after 1,000 events. watched is longer than that, with what is not learnt.
	watched   = 1100
	cycle     = 1000
	lastSteps = 50 // of a cycle
)

// What must hold. MEASURED.md has what was seen.
const (
	mostResidue = 1e-8
	// Heap after a collection, against the first check with full windows.
	mostGrowth, mostGrowthBytes = 1.05, 2 << 20
)

// A State is what a run consists of beside its model. It is stored with each checkpoint.
type State struct {
	Seed     uint64
	Position uint64 // events of the stream
	Chain    string // SHA-256 over each event's answer and effect
	Duplicates, Refused, Corrections, Withdrawals,
	Alerts, Rebuilds, RebuildsFailed uint64
	LogLoss  float64 // sum since the last check, of Scored events
	Scored   uint64
	FullHeap uint64             // bytes after a collection, at the first check with full windows
	Before   map[string]float64 // max|VΛ−I| in the watched events of this check so far
	Worst    map[string]float64 // of all checks
}

// A Check is a line of checks.jsonl.
type Check struct {
	Position, Learnt uint64
	Seconds          float64 // since the last check of this process
	PerSecond        float64
	LogLoss          float64            // nats an event, since the last check
	Before, After    map[string]float64 // max|VΛ−I|: the largest before V is computed again, and now
	Factorings       map[string]blr.Factorings
	Heap, RSS        uint64 // bytes; heap after a collection
	Goroutines       int
	Image            int    // bytes
	SHA256           string // of the image
	Alerts, Rebuilds uint64
	Duplicates       uint64
	Refused          uint64
}

// A Run is a stream that goes through a model.
type Run struct {
	cfg    Config
	state  State
	chain  [sha256.Size]byte
	model  *model.Model
	stream *synthetic
	twin   *twin // nil: no model is compared with a restored one
	image  []byte
	since  time.Time

	save   func(State, []byte) error // stores a checkpoint
	report func(*Check) error
}

// A twin is the model that was saved, beside the one that was restored from its bytes.
type twin struct {
	model *model.Model
	until uint64 // position at which their bytes are compared
}

// newRun returns a run at its beginning.
func newRun(cfg Config) (*Run, error) {
	m, err := model.New(cfg.Model)
	if err != nil {
		return nil, err
	}
	m.SetRunner(background{})
	r := &Run{cfg: cfg, model: m, stream: newSynthetic(cfg.Seed), state: State{Seed: cfg.Seed}}
	r.begin()
	return r, nil
}

// resumed returns a run that goes on from a checkpoint.
func resumed(cfg Config, state State, image []byte) (*Run, error) {
	if state.Seed != cfg.Seed {
		return nil, fmt.Errorf("a checkpoint of seed %d, this run has %d", state.Seed, cfg.Seed)
	}
	m, err := model.Restore(image)
	if err != nil {
		return nil, err
	}
	m.SetRunner(background{})
	r := &Run{cfg: cfg, model: m, stream: newSynthetic(cfg.Seed), state: state}
	chain, err := hex.DecodeString(state.Chain)
	if err != nil || len(chain) != len(r.chain) {
		return nil, fmt.Errorf("a checkpoint with the chain %q", state.Chain)
	}
	copy(r.chain[:], chain)
	r.begin()
	return r, nil
}

func (r *Run) begin() {
	r.since = time.Now()
	for _, m := range []*map[string]float64{&r.state.Before, &r.state.Worst} {
		if *m == nil {
			*m = map[string]float64{}
		}
	}
	r.save = func(State, []byte) error { return nil }
	r.report = func(*Check) error { return nil }
}

// background is a model.Runner with a goroutine for each piece of work.
type background struct{}

func (background) Go(work func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	return func() { <-done }
}

// Run runs to the end, or until ctx is done: then it saves, and returns ctx's cause.
func (r *Run) Run(ctx context.Context) error {
	for r.state.Position < r.cfg.Events {
		if r.state.Position%256 == 0 && ctx.Err() != nil {
			image, err := r.model.AppendBinary(r.image[:0])
			if err == nil {
				err = r.save(r.now(), image)
			}
			return errors.Join(context.Cause(ctx), err)
		}
		if err := r.step(); err != nil {
			return fmt.Errorf("event %d: %w", r.state.Position, err)
		}
		if at := r.state.Position; at%r.cfg.Every == 0 || at == r.cfg.Events {
			if err := r.check(); err != nil {
				return fmt.Errorf("at event %d: %w", at, err)
			}
		}
	}
	return nil
}

// now returns the state.
func (r *Run) now() State {
	r.state.Chain = hex.EncodeToString(r.chain[:])
	return r.state
}

// step passes one event to the model.
func (r *Run) step() error {
	ex := r.stream.event(r.state.Position)
	effect, err := r.model.Apply(&ex)
	if err := r.count(&ex, &effect, err); err != nil {
		return err
	}
	if err := r.link(&effect, err != nil); err != nil {
		return err
	}
	r.state.Position++
	if t := r.twin; t != nil {
		_, other := t.model.Apply(&ex)
		if fmt.Sprint(other) != fmt.Sprint(err) {
			return fmt.Errorf("the restored model says %v, the saved one %v", err, other)
		}
		if r.state.Position == t.until {
			if err := r.compare(); err != nil {
				return err
			}
		}
	}
	if left := r.cfg.Every - r.state.Position%r.cfg.Every; left <= watched || r.cfg.Events-r.state.Position <= watched {
		r.watch()
	}
	return nil
}

// count counts what became of ex. A refused event is no error.
func (r *Run) count(ex *model.Example, effect *model.Effect, err error) error {
	s := &r.state
	var refused *model.RefusedError
	switch {
	case errors.As(err, &refused):
		s.Refused++
		return nil
	case err != nil:
		return err
	case effect.Duplicate:
		s.Duplicates++
		return nil
	}
	switch ex.Action {
	case model.Correct:
		s.Corrections++
	case model.Unlearn:
		s.Withdrawals++
	case model.Learn:
		z := effect.Prediction.LogOdds
		if ex.Spam {
			z = -z
		}
		s.LogLoss += math.Max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) // is shown alone
		s.Scored++
	}
	s.Alerts += uint64(len(effect.Alerts))
	for _, b := range effect.Rebuilds {
		s.Rebuilds++
		if b.Err != nil {
			s.RebuildsFailed++
		}
	}
	return nil
}

// link extends the chain by an event's answer and effect.
func (r *Run) link(effect *model.Effect, refused bool) error {
	var b [2*sha256.Size + 64]byte
	text := append(b[:0], r.chain[:]...)
	flags := byte(0)
	for k, is := range []bool{refused, effect.Duplicate, effect.Accused, effect.Receipt != nil} {
		if is {
			flags |= 1 << k
		}
	}
	text = append(text, flags)
	for _, v := range []float64{effect.Prediction.LogOdds, effect.Prediction.Mean, effect.Prediction.Variance,
		effect.Phi, effect.Standing, effect.Epsilon} {
		text = binary.LittleEndian.AppendUint64(text, math.Float64bits(v))
	}
	for _, a := range effect.Alerts {
		alert, err := json.Marshal(a)
		if err != nil {
			return err
		}
		text = append(text, alert...)
	}
	r.chain = sha256.Sum256(text)
	return nil
}

// watch measures V while it is farthest from its last factoring.
func (r *Run) watch() {
	all := r.model.Regressions()
	if len(all) == 0 || all[0].Posterior.Updates()%cycle < cycle-lastSteps {
		return
	}
	r.measure(r.state.Before)
}

// measure sets each of into to the larger of it and max|VΛ−I|.
func (r *Run) measure(into map[string]float64) {
	for _, p := range r.model.Regressions() {
		into[p.Name] = max(into[p.Name], residue(p.Posterior))
	}
}

// compare compares the model with its twin, and drops the twin.
func (r *Run) compare() error {
	saved, err := r.twin.model.AppendBinary(nil)
	if err != nil {
		return err
	}
	if r.image, err = r.model.AppendBinary(r.image[:0]); err != nil {
		return err
	}
	if !bytes.Equal(saved, r.image) {
		return fmt.Errorf("%d events after a checkpoint, the model that was restored from it has other bytes", twinEvents)
	}
	r.twin = nil
	return nil
}

// check measures, saves, and goes on with the model that is restored from the saved bytes.
func (r *Run) check() error {
	s := &r.state
	r.twin, r.image = nil, nil // so that the heap is the model's; the last check may be near
	runtime.GC()
	runtime.GC() // the second one frees what the first one found, finalizers included
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	c := Check{
		Position: s.Position, Learnt: r.model.Events() - r.model.Unlearnt(), Seconds: time.Since(r.since).Seconds(),
		LogLoss: s.LogLoss / float64(max(1, s.Scored)), Before: s.Before, After: map[string]float64{},
		Factorings: map[string]blr.Factorings{}, Heap: memory.HeapAlloc, RSS: resident(),
		Goroutines: runtime.NumGoroutine(), Alerts: s.Alerts, Rebuilds: s.Rebuilds,
		Duplicates: s.Duplicates, Refused: s.Refused,
	}
	r.measure(c.After)
	for _, p := range r.model.Regressions() {
		c.Factorings[p.Name] = p.Posterior.Factorings()
		s.Worst[p.Name] = max(s.Worst[p.Name], c.Before[p.Name], c.After[p.Name])
	}
	var err error
	if r.image, err = r.model.AppendBinary(nil); err != nil {
		return err
	}
	c.Image = len(r.image)
	sum := sha256.Sum256(r.image)
	c.SHA256 = hex.EncodeToString(sum[:])
	restored, err := model.Restore(r.image)
	if err != nil {
		return err
	}
	again, err := restored.AppendBinary(nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, r.image) {
		return errors.New("the model that was restored from the checkpoint has other bytes")
	}
	restored.SetRunner(background{})
	r.twin = &twin{r.model, s.Position + twinEvents}
	r.model = restored

	own := r.model.Config()
	full := s.Position >= 2*uint64(max(own.DuplicateWindow, own.Window+own.Rebuild))
	if full && s.FullHeap == 0 {
		s.FullHeap = c.Heap
	}
	s.Before, s.LogLoss, s.Scored = map[string]float64{}, 0, 0
	if err := r.save(r.now(), r.image); err != nil {
		return err
	}
	if err := r.report(&c); err != nil {
		return err
	}
	r.since = time.Now()
	return s.holds(&c)
}

// holds returns what does not hold at a check.
func (s *State) holds(c *Check) error {
	var errs []error
	for name, worst := range s.Worst {
		if !(worst <= mostResidue) {
			errs = append(errs, fmt.Errorf("%s: max|VΛ−I| = %.3g, want at most %g", name, worst, mostResidue))
		}
	}
	if most := float64(s.FullHeap)*mostGrowth + mostGrowthBytes; s.FullHeap > 0 && float64(c.Heap) > most {
		errs = append(errs, fmt.Errorf("the heap has %d bytes, and %d when the windows were full", c.Heap, s.FullHeap))
	}
	if s.RebuildsFailed > s.Rebuilds/100 {
		errs = append(errs, fmt.Errorf("%d of %d rebuilds failed", s.RebuildsFailed, s.Rebuilds))
	}
	return errors.Join(errs...)
}
