package experiment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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
	Done func(*Result)
}

// A Progress says how far all experiments are.
type Progress struct {
	Ended, Of    int           // experiments
	Running      string        // one that runs
	Steps, Known int           // of that one: done, and announced so far
	Left         time.Duration // an estimate; 0 if unknown
}

// Run computes the experiments, as many at a time as there are cores, and returns how
// each ended, in the order given. It returns an error only if ctx ended. An experiment
// that failed says so in its result; the others go on.
func (n *Runner) Run(ctx context.Context, experiments []*Experiment) ([]*Result, error) {
	results := make([]*Result, len(experiments))
	slots := make(chan struct{}, n.Cores)
	clock := newClock(experiments, n.Cores, n.Progress)
	next := make(chan int)
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range n.Cores {
		wait.Go(func() {
			for i := range next {
				results[i] = n.one(ctx, experiments[i], slots, clock.advance)
				mu.Lock()
				clock.ended(experiments[i])
				if n.Done != nil && ctx.Err() == nil {
					n.Done(results[i])
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
	return results, ctx.Err()
}

// one computes an experiment.
func (n *Runner) one(ctx context.Context, e *Experiment, slots chan struct{}, progress func(advance)) *Result {
	r := &Result{Name: e.Name, Title: e.Title, Where: e.Where, Claim: e.Claim, Seed: n.Seed, Report: new(Report)}
	report := new(Report)
	r.Seconds, r.Err = n.compute(ctx, e, report, slots, progress)
	if r.Err == nil {
		r.Verdict, r.Err = report.Judge()
	}
	r.Date = time.Now().UTC().Format(time.RFC3339)
	var missing *MissingError
	switch {
	case errors.As(r.Err, &missing):
		r.Missing = missing.Error()
	case r.Err != nil:
		r.Err = fmt.Errorf("%s: %w", e.Name, r.Err)
		r.Failed = r.Err.Error()
	default:
		r.Report, r.Count = report, report.Count()
	}
	return r
}

// compute runs an experiment, with the steps that an earlier run left. It returns the seconds of
// all steps, those of earlier runs included.
func (n *Runner) compute(ctx context.Context, e *Experiment, p *Report, slots chan struct{},
	progress func(advance)) (spent float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	key, err := n.key(e)
	if err != nil {
		return 0, err
	}
	path := ""
	if n.Folder != "" {
		path = e.stepsFile(n.Folder)
	}
	steps, err := openSteps(path, stepsOf{Experiment: e.Name, Key: key})
	if err != nil {
		return 0, err
	}
	err = e.Run(ctx, &Run{Data: n.Data, name: e.Name, seed: n.Seed, steps: steps, slots: slots, progress: progress}, p)
	return steps.spent(), errors.Join(err, steps.close())
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
		c.report(Progress{Ended: c.ends, Of: len(c.all), Running: a.name, Steps: p.done, Known: p.known,
			Left: c.left()})
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

// A Result is how an experiment ended, as a file holds it.
type Result struct {
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Where   string  `json:"where"`
	Claim   string  `json:"claim"`
	Verdict Verdict `json:"verdict,omitempty"`
	Count   Count   `json:"count"`
	Seed    uint64  `json:"seed"`
	Date    string  `json:"date"`              // of the computation, RFC 3339
	Seconds float64 `json:"seconds"`           // by the clock, of all steps, those of earlier runs too
	Missing string  `json:"missing,omitempty"` // which file, and where it may be had
	Failed  string  `json:"failed,omitempty"`
	*Report         // without a row if it was not computed

	Err error `json:"-"` // why not; a *MissingError if a data set is not there
}

// Write writes the result into the folder: SOURCE/WHAT.json, its rows as SOURCE/WHAT.csv, and its
// pictures as SOURCE/WHAT-1.svg and so on.
func (r *Result) Write(folder string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	path := filepath.Join(folder, filepath.FromSlash(r.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".json", append(text, '\n'), 0o644); err != nil {
		return err
	}
	rows, err := r.csv()
	if err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	if err := os.WriteFile(path+".csv", rows, 0o644); err != nil {
		return err
	}
	for i := range r.Charts {
		var b bytes.Buffer
		if err := r.Charts[i].WriteSVG(&b); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if err := os.WriteFile(fmt.Sprintf("%s-%d.svg", path, i+1), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// csv returns the rows as a table of numbers.
func (r *Result) csv() ([]byte, error) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	lines := [][]string{{"group", "what", "ours", "standard_error", "repetitions", "relation", "source", "verdict",
		"reason"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		reason := ""
		if row.Verdict == NotReproduced {
			reason = row.Reason
		}
		lines = append(lines, []string{row.Group, row.What, number(row.Ours.Value), number(row.Ours.SE),
			strconv.Itoa(row.Ours.N), string(row.Relation), row.Paper, string(row.Verdict), reason})
	}
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(lines)
	return b.Bytes(), err
}
