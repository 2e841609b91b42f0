package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A Run is what an experiment works with.
type Run struct {
	Data *Data

	name     string
	seed     uint64
	steps    *stepStore
	slots    chan struct{} // a step holds one while it computes
	progress func(advance) // may be nil

	mu    sync.Mutex
	names map[string]bool // of Steps, which are unique
}

// An advance says how far an experiment is. Steps that were on disk took no time now.
type advance struct {
	name  string
	more  int           // steps that were announced
	done  int           // steps that ended
	spent time.Duration // by the wall clock
}

// Rand returns the random numbers of one step. They depend on the run's seed, the
// experiment, what and i, and on nothing else.
func (r *Run) Rand(what string, i int) *rand.Rand {
	h := sha256.New()
	fmt.Fprintf(h, "%d/%s/%s/%d", r.seed, r.name, what, i)
	sum := h.Sum(nil)
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])))
}

// Steps calls f for 0…n−1, beside one another, and returns what it returned in that
// order. Results of an earlier run under the same name come from disk. name must be
// unique in the experiment. The first error ends all.
func Steps[T any](ctx context.Context, r *Run, name string, n int, f func(ctx context.Context, i int) (T, error)) ([]T, error) {
	if err := r.claim(name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.tell(advance{name: r.name, more: n})
	results, errs := make([]T, n), make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			if errs[i] = step(ctx, r, fmt.Sprintf("%s %d", name, i), i, f, &results[i]); errs[i] != nil {
				cancel()
			}
		})
	}
	wait.Wait()
	if err := firstError(errs); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return results, nil
}

// claim returns an error if Steps was called with the name before: the second call would
// read the results of the first.
func (r *Run) claim(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[name] {
		return fmt.Errorf("two groups of steps are called %q", name)
	}
	if r.names == nil {
		r.names = map[string]bool{}
	}
	r.names[name] = true
	return nil
}

// firstError returns the first error that is not the cancellation that another caused.
func firstError(errs []error) (first error) {
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

func step[T any](ctx context.Context, r *Run, key string, i int, f func(ctx context.Context, i int) (T, error), into *T) error {
	if kept, ok := r.steps.get(key); ok {
		if err := json.Unmarshal(kept.Value, into); err != nil {
			return fmt.Errorf("read a kept step: %w", err)
		}
		r.tell(advance{name: r.name, done: 1})
		return nil
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	begin := time.Now()
	value, err := f(ctx, i)
	if err != nil {
		return err
	}
	spent := time.Since(begin)
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("keep the result: %w", err)
	}
	// What goes on is what a later run would read.
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("keep the result: %w", err)
	}
	if err := r.steps.put(kept{Step: key, Seconds: spent.Seconds(), Value: text}); err != nil {
		return err
	}
	r.tell(advance{name: r.name, done: 1, spent: spent})
	return nil
}

func (r *Run) tell(a advance) {
	if r.progress != nil {
		r.progress(a)
	}
}
