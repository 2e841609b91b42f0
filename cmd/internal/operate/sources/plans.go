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
	jobState // beside its first fields, which stay as they are, under plans.mu
	cancel   context.CancelFunc
	ended    chan struct{} // closed when it is made or has failed
}

// A jobState is what pages show of a job.
type jobState struct {
	ID           string
	Source       string
	Since, Until string // as they were asked for
	By           string
	Began        time.Time

	Made     time.Time // zero: it is being made
	Progress withdraw.Progress
	Plan     *withdraw.Plan // nil unless it was made; one goroutine uses it at a time, see Writing
	Problem  string         // why it could not be made
	Writing  bool
	Written  int
	Done     bool // all is written
}

// Link is the page about the job.
func (s *jobState) Link() string { return planURL(s.ID) }

// Making reports whether the plan is being made.
func (s *jobState) Making() bool { return s.Made.IsZero() }

// Ready reports whether the plan can be written.
func (s *jobState) Ready() bool { return s.Plan != nil && !s.Writing && !s.Done }

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
func (p *plans) start(j *job,
	plan func(ctx context.Context, progress func(withdraw.Progress)) (*withdraw.Plan, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("the console is stopping")
	}
	p.forget()
	for _, other := range p.jobs {
		if other.Making() {
			return fmt.Errorf("%s is having a plan made, for source %q: wait for it, or cancel it", other.By, other.Source)
		}
	}
	if len(p.jobs) >= mostPlans {
		if i := slices.IndexFunc(p.jobs, func(j *job) bool { return !j.Writing }); i >= 0 {
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
			j.Progress = at
			p.mu.Unlock()
		})
		if err != nil && ctx.Err() != nil {
			err = errors.New("it was cancelled")
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("it was not made within %v: name a later time to begin with", planTime)
			}
		}
		p.mu.Lock()
		if j.Plan, j.Made = made, p.now(); err != nil {
			j.Plan, j.Problem = nil, err.Error()
		}
		p.mu.Unlock()
		close(j.ended)
	})
	return nil
}

// forget drops what was made long ago. The caller holds mu.
func (p *plans) forget() {
	p.jobs = slices.DeleteFunc(p.jobs, func(j *job) bool {
		return !j.Making() && !j.Writing && p.now().Sub(j.Made) > keepPlan
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
	case j.Plan == nil:
		return nil, errors.New("there is no plan")
	case j.Done:
		return nil, errors.New("this plan is written already")
	case j.Writing:
		return nil, errors.New("this plan is being written")
	}
	j.Writing = true
	return j.Plan, nil
}

func (p *plans) put(j *job, written int, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.Writing, j.Written, j.Done = false, written, done
}

func (p *plans) view() (all []*jobState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	for _, j := range slices.Backward(p.jobs) {
		all = append(all, p.copyOf(j))
	}
	return all
}

// one returns a job as it is now.
func (p *plans) one(j *job) *jobState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copyOf(j)
}

// copyOf returns a job as it is now. The caller holds mu.
func (p *plans) copyOf(j *job) *jobState {
	now := j.jobState
	return &now
}
