package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A Runner computes experiments.
type Runner struct {
	Data  *Data
	Seed  uint64
	Cores int    // steps at a time
	Code  string // identifies the program: steps of another program are computed again
	// Folder keeps steps and results; "" keeps nothing.
	Folder string
	// Progress is called often, by one goroutine at a time. It may be nil.
	Progress func(Progress)
	// Done is called when an experiment ended, by one goroutine at a time. It may be nil.
	Done func(Outcome)
}

// A Progress says how far all experiments are.
type Progress struct {
	Ended, Of    int           // experiments
	Running      string        // one that runs
	Steps, Known int           // of that one: done, and announced so far
	Left         time.Duration // an estimate; 0 if unknown
}

// An Outcome is how an experiment ended.
type Outcome struct {
	Experiment *Experiment
	Report     *Report // nil if Err is not nil
	Verdict    Verdict
	Seconds    float64 // summed over all steps, those of earlier runs included; by the wall clock
	Err        error   // a *MissingError if a data set is not there
}

// Run computes the experiments, as many at a time as there are cores, and returns how
// each ended, in the order given. It returns an error only if ctx ended. An experiment
// that failed says so in its outcome; the others go on.
func (n *Runner) Run(ctx context.Context, experiments []*Experiment) ([]Outcome, error) {
	outcomes := make([]Outcome, len(experiments))
	slots := make(chan struct{}, n.Cores)
	clock := newClock(experiments, n.Cores, n.Progress)
	next := make(chan int)
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range n.Cores {
		wait.Go(func() {
			for i := range next {
				outcomes[i] = n.one(ctx, experiments[i], slots, clock.advance)
				mu.Lock()
				clock.ended(experiments[i])
				if n.Done != nil && ctx.Err() == nil {
					n.Done(outcomes[i])
				}
				mu.Unlock()
			}
		})
	}
	for i := range experiments {
		next <- i
	}
	close(next)
	wait.Wait()
	return outcomes, ctx.Err()
}

func (n *Runner) one(ctx context.Context, e *Experiment, slots chan struct{}, progress func(advance)) (o Outcome) {
	o.Experiment = e
	if o.Err = ctx.Err(); o.Err != nil {
		return o
	}
	key, err := n.key(e)
	if err != nil {
		o.Err = err
		return o
	}
	path := ""
	if n.Folder != "" {
		path = e.stepsFile(n.Folder)
	}
	steps, err := openSteps(path, stepsOf{Experiment: e.Name, Key: key})
	if err != nil {
		o.Err = err
		return o
	}
	run := &Run{Data: n.Data, name: e.Name, seed: n.Seed, steps: steps, slots: slots, progress: progress}
	report, err := e.Run(ctx, run)
	if err == nil && report == nil {
		err = errors.New("it returned no report")
	}
	if err == nil {
		o.Verdict, err = report.Judge()
	}
	o.Seconds = steps.spent()
	if err = errors.Join(err, steps.close()); err != nil {
		o.Err = fmt.Errorf("%s: %w", e.Name, err)
		return o
	}
	o.Report = report
	return o
}

func (e *Experiment) stepsFile(folder string) string {
	return filepath.Join(folder, "steps", strings.ReplaceAll(e.Name, "/", "-")+".jsonl")
}

// Forget removes the steps of the experiment that earlier runs left in a Runner's folder.
func (e *Experiment) Forget(folder string) error {
	if err := os.Remove(e.stepsFile(folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// key identifies what the steps of an experiment depend on.
func (n *Runner) key(e *Experiment) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%d\n", n.Code, e.Name, n.Seed)
	for _, set := range e.Sets {
		sum, err := n.Data.Hash(set)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %s\n", set, sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// CodeOf returns what identifies the running program: the hash of its file.
func CodeOf(executable string) (string, error) {
	text, err := os.ReadFile(executable)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// A clock estimates the remaining time.
type clock struct {
	report func(Progress)
	cores  int

	mu    sync.Mutex
	all   []*Experiment
	state map[string]*progressOf
	ends  int
	cost  time.Duration // that was stated for the steps that were computed
	spent time.Duration // that they took
}

type progressOf struct {
	known, done int
	spent       time.Duration
	cost        time.Duration
	ended       bool
}

func newClock(all []*Experiment, cores int, report func(Progress)) *clock {
	c := &clock{report: report, cores: cores, all: all, state: map[string]*progressOf{}}
	for _, e := range all {
		c.state[e.Name] = &progressOf{cost: e.Cost}
	}
	return c
}

func (c *clock) advance(a advance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.state[a.name]
	p.known += a.more
	p.done += a.done
	p.spent += a.spent
	if c.report != nil {
		c.report(Progress{Ended: c.ends, Of: len(c.all), Running: a.name, Steps: p.done, Known: p.known, Left: c.left()})
	}
}

func (c *clock) ended(e *Experiment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.state[e.Name]
	p.ended = true
	c.ends++
	if p.spent > 0 {
		c.cost += e.Cost
		c.spent += p.spent
	}
	if c.report != nil {
		c.report(Progress{Ended: c.ends, Of: len(c.all), Left: c.left()})
	}
}

// left adds the stated costs of what is not done, times how much slower this machine was
// so far.
func (c *clock) left() time.Duration {
	var rest float64
	for _, p := range c.state {
		switch {
		case p.ended:
		case p.known == 0:
			rest += p.cost.Seconds()
		default:
			rest += p.cost.Seconds() * float64(p.known-p.done) / float64(p.known)
		}
	}
	slower := 1.0
	if c.cost > 0 {
		slower = c.spent.Seconds() / c.cost.Seconds()
	}
	return time.Duration(rest * slower / float64(c.cores) * float64(time.Second))
}

// A Result is an outcome as a file holds it.
type Result struct {
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Where   string  `json:"where"`
	Claim   string  `json:"claim"`
	Verdict Verdict `json:"verdict,omitempty"`
	Count   Count   `json:"count"`
	Seed    uint64  `json:"seed"`
	Date    string  `json:"date"` // of the computation, RFC 3339
	Seconds float64 `json:"seconds"`
	Missing string  `json:"missing,omitempty"` // which file, and where it may be had
	Failed  string  `json:"failed,omitempty"`
	*Report
}

// ResultOf returns the outcome as a file holds it.
func ResultOf(o Outcome, seed uint64, now time.Time) Result {
	e := o.Experiment
	r := Result{Name: e.Name, Title: e.Title, Where: e.Where, Claim: e.Claim, Verdict: o.Verdict, Seed: seed,
		Date: now.UTC().Format(time.RFC3339), Seconds: o.Seconds, Report: o.Report}
	var missing *MissingError
	switch {
	case errors.As(o.Err, &missing):
		r.Missing = missing.Error()
	case o.Err != nil:
		r.Failed = o.Err.Error()
	default:
		r.Count = o.Report.Count()
	}
	if r.Report == nil {
		r.Report = &Report{}
	}
	return r
}

// Write writes the result into the folder, as SOURCE/WHAT.json.
func (r *Result) Write(folder string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	path := filepath.Join(folder, filepath.FromSlash(r.Name)+".json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
