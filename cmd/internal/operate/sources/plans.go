package sources

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hamlet/cmd/internal/operate/withdraw"
)

const (
	planTime  = 10 * time.Minute // to make a plan
	keepPlan  = 15 * time.Minute // once it is made
	mostPlans = 16               // beyond them the oldest is dropped
)

// A job makes a plan, and holds it until it is confirmed or forgotten.
//
//	making ──> ready ──> written
//	   └─────> failed
type job struct {
	ID           string
	Source       string
	Since, Until string // as they were asked for
	By           string
	Began        time.Time

	cancel context.CancelFunc
	ended  chan struct{} // closed when it is made or has failed

	// Under plans.mu.
	made     time.Time // zero: it is being made
	progress withdraw.Progress
	plan     *withdraw.Plan // nil unless it is ready; one goroutine uses it at a time, see writing
	err      error
	writing  bool
	written  int
	done     bool // all is written
}

// plans are the jobs of a model. One plan is made at a time.
type plans struct {
	now  func() time.Time
	base context.Context // of the jobs
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	jobs   []*job // the oldest first
	wait   sync.WaitGroup
}

func newPlans(now func() time.Time) *plans {
	p := &plans{now: now}
	p.base, p.stop = context.WithCancel(context.Background())
	return p
}

// run ends the jobs when ctx ends.
func (p *plans) run(ctx context.Context) error {
	<-ctx.Done()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.wait.Wait()
	return nil
}

// start begins to make a plan. It returns an error while another one is being made.
func (p *plans) start(j *job, plan func(ctx context.Context, progress func(withdraw.Progress)) (*withdraw.Plan, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("the console is stopping")
	}
	p.forget()
	for _, other := range p.jobs {
		if other.made.IsZero() {
			return fmt.Errorf("%s is having a plan made, for source %q: wait for it, or cancel it", other.By, other.Source)
		}
	}
	if len(p.jobs) >= mostPlans {
		if i := slices.IndexFunc(p.jobs, func(j *job) bool { return !j.writing }); i >= 0 {
			p.jobs = slices.Delete(p.jobs, i, i+1)
		}
	}
	ctx, cancel := context.WithTimeout(p.base, planTime)
	j.ID, j.Began, j.cancel, j.ended = rand.Text(), p.now(), cancel, make(chan struct{})
	p.jobs = append(p.jobs, j)
	p.wait.Go(func() {
		defer cancel()
		made, err := plan(ctx, func(at withdraw.Progress) {
			p.mu.Lock()
			j.progress = at
			p.mu.Unlock()
		})
		if err != nil && ctx.Err() != nil {
			err = errors.New("it was cancelled")
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("it was not made within %v: name a later time to begin with", planTime)
			}
		}
		p.mu.Lock()
		j.plan, j.err, j.made = made, err, p.now()
		p.mu.Unlock()
		close(j.ended)
	})
	return nil
}

// forget drops what was made long ago. The caller holds mu.
func (p *plans) forget() {
	p.jobs = slices.DeleteFunc(p.jobs, func(j *job) bool {
		return !j.made.IsZero() && !j.writing && p.now().Sub(j.made) > keepPlan
	})
}

// find returns a job, nil if it is not known any more.
func (p *plans) find(id string) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	for _, j := range p.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// take gives the plan of a job to one who writes it, until put.
func (p *plans) take(j *job) (*withdraw.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case j.plan == nil:
		return nil, errors.New("there is no plan")
	case j.done:
		return nil, errors.New("this plan is written already")
	case j.writing:
		return nil, errors.New("this plan is being written")
	}
	j.writing = true
	return j.plan, nil
}

func (p *plans) put(j *job, written int, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.writing, j.written, j.done = false, written, done
}

// A jobView is a job as pages show it.
type jobView struct {
	*job
	Link     string
	Making   bool
	Ready    bool
	Writing  bool
	Done     bool
	Problem  string
	Plan     *withdraw.Plan
	Progress withdraw.Progress
	Written  int
	Made     time.Time
}

func (p *plans) viewOf(j *job) jobView {
	v := jobView{job: j, Link: planURL(j.ID), Making: j.made.IsZero(), Writing: j.writing, Done: j.done, Plan: j.plan,
		Progress: j.progress, Written: j.written, Made: j.made}
	v.Ready = v.Plan != nil && !v.Writing && !v.Done
	if j.err != nil {
		v.Problem = j.err.Error()
	}
	return v
}

// view returns all jobs, the newest first.
func (p *plans) view() (all []jobView) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	for _, j := range slices.Backward(p.jobs) {
		all = append(all, p.viewOf(j))
	}
	return all
}

// one returns a job as it is now.
func (p *plans) one(j *job) jobView {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.viewOf(j)
}
