package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/service/ingest"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/predictions"
)

// quiet is how long a healed world may take until everything is learnt, saved and published.
const quiet = 3 * time.Minute

// An Outcome is what came of a plan.
type Outcome struct {
	Violations []string // what does not hold
	Kinds      []string // the same without numbers and names
	Story      []string
	Did        []Kind // the operators' work and the faults that had their effect, each time

	// The longest in virtual time.
	Succession time.Duration // from when all is healed and each learner runs until exactly one is active
	Stop       time.Duration // from when a process is asked to end until it has
	Post       time.Duration // of a request to ingest
	Ask        time.Duration // of a question
}

// How long these may take.
const (
	succeeds  = 3 * time.Second
	doubts    = 7 * time.Second  // a log without its end is doubted for 2 s: by who reads it, and by two openings
	stops     = 31 * time.Second // a call may stall for 30 s
	posts     = ingest.Deadline + time.Second
	asks      = 6 * time.Second // a client waits up to 5 s
	endsAfter = time.Minute     // all that still runs once the world has ended
)

// Run runs the plan. It is called in a bubble of testing/synctest. dir is an empty directory.
func Run(plan Plan, begin *Beginning, dir string) (Outcome, error) {
	w, err := newWorld(plan, begin, filepath.Join(dir, "world"))
	if err != nil {
		return Outcome{}, err
	}
	for _, name := range learners {
		w.supervise(name, w.runLearner)
	}
	for _, name := range scorers {
		w.supervise(name, w.runScorer)
	}
	for _, name := range ingests {
		w.supervise(name, w.runIngest)
	}
	var clients [2]chan struct{}
	for i := range clients {
		clients[i] = make(chan struct{})
		w.all.Go(func() { defer close(clients[i]); w.labelling(i) })
	}
	asked := make(chan struct{})
	w.all.Go(func() { defer close(asked); w.asking() })
	err = w.incidents()
	if err == nil {
		w.succession()
		for _, c := range [](<-chan struct{}){clients[0], clients[1], asked} {
			select {
			case <-c:
			case <-time.After(quiet):
				w.violate("a client hangs")
			}
		}
		w.settle()
	}
	records, readErr := all(&w.events)
	if errors.Is(readErr, stream.ErrDamaged) {
		w.violate("what was left out of the log, or never was damaged, cannot be read: %v", readErr)
	} else if err == nil {
		err = readErr
	}
	if ended := w.rest(); !ended {
		return w.result(), err
	}
	if err == nil && len(w.violations) == 0 {
		err = w.check(records, filepath.Join(dir, "calm"))
	}
	return w.result(), errors.Join(err, w.vault.close(), w.events.close())
}

// result is what came of the world so far.
func (w *World) result() Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.Violations = slices.Clone(w.violations)
	if len(w.violations) > 0 {
		w.outcome.Story = w.story()
	}
	return w.outcome
}

// rest ends the world, and reports whether all that ran has ended.
func (w *World) rest() bool {
	w.end()
	ended := make(chan struct{})
	go func() { w.all.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(endsAfter):
		w.violate("%v after the end of the world something runs:\n%s", endsAfter, stacks())
		return false
	}
	for what, took := range map[string][2]time.Duration{
		"a process to end": {w.outcome.Stop, stops},
		"a label":          {w.outcome.Post, posts},
		"a question":       {w.outcome.Ask, asks},
	} {
		if took[0] > took[1] {
			w.violate("%s took %v", what, took[0])
		}
	}
	return true
}

// stacks returns the goroutines of bubbles.
func stacks() string {
	b := make([]byte, 4<<20)
	b = b[:runtime.Stack(b, true)]
	var all []string
	for g := range strings.SplitSeq(string(b), "\n\n") {
		if head, _, _ := strings.Cut(g, "\n"); strings.Contains(head, "synctest bubble") {
			all = append(all, g)
		}
	}
	return strings.Join(all, "\n\n")
}

// succession waits until exactly one learner is active, once all of them run.
func (w *World) succession() {
	began := time.Now()
	for up := began; ; _ = sleep(w.ctx, 20*time.Millisecond) {
		running, active := w.running()
		took := time.Since(up)
		switch {
		case running < len(learners):
			up = time.Now()
		case active == 1:
			within := succeeds
			if w.plan.Rates.Stall > 0 { // a call that stalled before the world healed still does
				within += stalled
			}
			if slices.ContainsFunc(w.plan.Incidents, func(i Incident) bool {
				return slices.Contains([]Kind{CutLog, Replace, Power}, i.Kind) && i.At > lasting-doubts
			}) {
				within += doubts
			}
			if w.outcome.Succession = took; took > within {
				w.violate("no learner alone was active for %v", took)
			}
			return
		}
		if time.Since(began) > 2*quiet {
			w.violate("%d of %d learners run, and %d are active, %v after all was healed", running, len(learners), active, 2*quiet)
			return
		}
		if took > quiet || w.asksOperator() { // it takes long for a reason
			return
		}
	}
}

// running returns how many learners run, and how many are active.
func (w *World) running() (running, active int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range learners {
		if l := w.processes[name].learner; l != nil {
			running++
			if l.Status().Active {
				active++
			}
		}
	}
	return running, active
}

// settle waits until one learner is active, and all is learnt, saved and published.
func (w *World) settle() {
	deadline := time.Now().Add(quiet)
	for why := ""; ; _ = sleep(w.ctx, 250*time.Millisecond) {
		if why = w.unsettled(); why == "" {
			break
		}
		if time.Now().After(deadline) {
			w.violate("it does not come to rest: %s", why)
			return
		}
		w.operate()
	}
	if !w.ask(5 * time.Second) {
		w.violate("nobody answers questions")
	}
	w.atRest()
}

// unsettled says what is still to come; "": nothing.
func (w *World) unsettled() string {
	bounds, _ := w.events.Bounds(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.commands.Load() > 0 {
		return "operators are at work"
	}
	active := 0
	for _, name := range learners {
		l := w.processes[name].learner
		if l == nil {
			return name + " does not run"
		}
		s := l.Status()
		switch {
		case !s.Loaded:
			return name + " has no model"
		case s.Next != bounds.End:
			return fmt.Sprintf("%s is at %d of %d", name, s.Next, bounds.End)
		case !s.Active && s.Backlog > 0:
			return fmt.Sprintf("%s keeps %d", name, s.Backlog)
		case !s.Active:
			continue
		case s.SavedEnd != bounds.End:
			return fmt.Sprintf("%s has saved up to %d of %d", name, s.SavedEnd, bounds.End)
		case s.PendingAlerts > 0:
			return fmt.Sprintf("%s has %d alerts to publish", name, s.PendingAlerts)
		}
		active++
	}
	if active != 1 {
		return fmt.Sprintf("%d learners are active", active)
	}
	if why := w.unsettledCandidate(bounds.End); why != "" {
		return why
	}
	why := w.unsound(stream.DefaultName, bounds.End)
	if why == "" && w.shadowed {
		why = w.unsound(candidate, bounds.End)
	}
	return why
}

// unsound says what is wrong with a model's newest checkpoint; "": nothing. An active learner looks at it
// from time to time, and saves again what is damaged.
func (w *World) unsound(model string, end int64) string {
	w.vault.mu.RLock()
	defer w.vault.mu.RUnlock()
	store, err := w.vault.dir.Store(model)
	if err == nil {
		var c *state.Checkpoint
		if c, _, err = store.Load(context.Background(), state.Head); err == nil && c.Position.Next != end {
			err = fmt.Errorf("the newest that is whole is of offset %d", c.Position.Next)
		}
	}
	if err != nil {
		return fmt.Sprintf("what is saved of %s: %v", model, err)
	}
	return ""
}

// operate does what a learner that ended asked its operator for: where no kept version follows from
// the log, it begins again with an empty store.
func (w *World) operate() {
	if !w.asksOperator() {
		return
	}
	w.mu.Lock()
	for _, p := range w.processes {
		p.ended = nil
	}
	w.mu.Unlock()
	w.tell("operator", "empties the store")
	defer w.hold(slices.Concat(learners, shadows)...)()
	w.emptyStore()
	if w.base != w.begin {
		w.rebase(false)
	}
}

// asksOperator reports whether a learner has ended because no kept version follows from the log.
func (w *World) asksOperator() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	const lost = "no kept version of the model follows from this log"
	return w.commands.Load() == 0 && slices.ContainsFunc(slices.Concat(learners, shadows), func(name string) bool {
		p := w.processes[name]
		return p != nil && p.ended != nil && strings.Contains(p.ended.Error(), lost)
	})
}

// check compares what came of the world with what comes of the same log where nothing breaks.
func (w *World) check(records []stream.Record, dir string) error {
	there := map[string]bool{}
	for _, r := range records {
		there[identity(&r)] = true
	}
	for id := range w.acknowledged {
		if !there[id] && !w.lost[id] {
			w.violate("the acknowledged label %s is not in the log", id)
		}
	}
	store, err := w.vault.dir.Store(stream.DefaultName)
	if err != nil {
		return err
	}
	c, version, err := store.Load(context.Background(), state.Head)
	if err != nil {
		return err
	}
	var calm *calmed
	for replay, replayErr := range w.replays(records, dir) {
		if calm, err = replay, replayErr; err != nil || replay.sum == c.ModelSHA256 {
			break
		}
	}
	if err == nil {
		err = w.checkReceipts(records)
	}
	if err == nil {
		err = w.checkCandidate(records, calm, dir+" second")
	}
	if err != nil {
		return err
	}
	if end := len(records) + len(w.rotten); c.ModelSHA256 != calm.sum || c.Position.Next != int64(end) {
		w.violate("version %d, up to %d of %d, is not the replay of the log", version, c.Position.Next, end)
	}
	for id, p := range calm.alerts {
		was, out := w.alerts[id]
		if !out {
			w.violate("the alert %s (%s %s) is not out", id, p.alert.State, p.alert.Kind)
			continue
		}
		for _, s := range w.saves {
			if w.oneLog() && s.events >= p.alert.Event && s.at.Before(was.at) {
				w.violate("version %d of %s covers the alert %s, which was not out", s.number, s.by, id)
				break
			}
		}
	}
	for name, logs := range map[string][2]*disk{
		"letter": {&calm.letters, &w.letters}, "receipt": {&calm.receipts, &w.receipts},
		"prediction": {&calm.predictions, &w.predictions},
	} {
		if err := w.compare(name, logs[0], logs[1]); err != nil {
			return err
		}
	}
	return nil
}

// oneLog reports whether the log has lost nothing.
func (w *World) oneLog() bool {
	return !slices.ContainsFunc(w.plan.Incidents, func(i Incident) bool {
		return i.Kind == CutLog || i.Kind == Replace || i.Kind == NewLog
	})
}

// compare looks for records that are in one log and not in the other.
func (w *World) compare(name string, want, got *disk) error {
	wants, err := all(want)
	if err != nil {
		return err
	}
	has, err := all(got)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for i := range has {
		for _, c := range contents(&has[i]) {
			there[c] = true
		}
	}
	for i := range wants {
		for _, c := range contents(&wants[i]) {
			if !there[c] {
				w.violate("the %s %q is not out", name, c)
				return nil
			}
		}
	}
	return nil
}

// contents is what of a record does not depend on when it was written, and with what.
func contents(r *stream.Record) (all []string) {
	if block, err := predictions.Decode(r.Value); err == nil {
		for _, p := range block.Predictions {
			all = append(all, fmt.Sprintf("of offset %d, spam %v: log-odds %v", p.Offset, p.Spam, p.LogOdds))
		}
		return all
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s", r.Key, r.Value)
	for _, h := range r.Headers {
		if !strings.HasSuffix(h.Key, "-time") {
			fmt.Fprintf(&b, " %s=%s", h.Key, h.Value)
		}
	}
	return []string{b.String()}
}

// A calmed is what comes of a log where nothing breaks.
type calmed struct {
	*World
	sum [32]byte
}

// calm lets one learner learn a log from the world's beginning. Some of the records are left out.
func (w *World) calm(records []stream.Record, dir string, holes ...int64) (*calmed, error) {
	return w.alone(records, dir, stream.DefaultName, (*World).runLearner, holes...)
}

// alone is calm for the learner of a model that run runs.
func (w *World) alone(records []stream.Record, dir, model string,
	run func(*World, context.Context, *node, *process) error, holes ...int64) (*calmed, error) {
	c, err := newWorld(Plan{Seed: w.plan.Seed}, w.base, dir)
	if err != nil {
		return nil, err
	}
	if err := c.append(&c.events, records[len(w.base.records):]); err != nil {
		return nil, err
	}
	c.events.Compact(holes...)
	c.healed.Store(true)
	c.heard = true
	c.fromVersion = w.fromVersion
	c.supervise("calm", func(ctx context.Context, n *node, p *process) error { return run(c, ctx, n, p) })
	for deadline := time.Now().Add(quiet); ; {
		c.mu.Lock()
		l := c.processes["calm"].learner
		c.mu.Unlock()
		if l != nil {
			if s := l.Status(); s.Active && s.SavedEnd == int64(len(records)) && s.PendingAlerts == 0 {
				break
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("a learner alone does not learn the log")
		}
		_ = sleep(c.ctx, 100*time.Millisecond)
	}
	c.end()
	c.all.Wait()
	store, err := c.vault.dir.Store(model)
	if err != nil {
		return nil, err
	}
	head, _, err := store.Load(context.Background(), state.Head)
	if err != nil {
		return nil, err
	}
	return &calmed{c, head.ModelSHA256}, c.vault.close()
}
