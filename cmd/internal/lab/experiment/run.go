package experiment

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
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
func Steps[T any](ctx context.Context, r *Run, name string, n int,
	f func(ctx context.Context, i int) (T, error)) ([]T, error) {
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

func step[T any](ctx context.Context, r *Run, key string, i int, f func(ctx context.Context, i int) (T, error),
	into *T) error {
	if stored, ok := r.steps.get(key); ok {
		if err := json.Unmarshal(stored.Value, into); err != nil {
			return fmt.Errorf("read a stored step: %w", err)
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
		return fmt.Errorf("store the result: %w", err)
	}
	// What goes on is what a later run would read.
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("store the result: %w", err)
	}
	if err := r.steps.put(storedStep{Step: key, Seconds: spent.Seconds(), Value: text}); err != nil {
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

// A stepStore keeps the results of an experiment's steps in a file of JSON Lines. The
// first line says what they belong to: with other code, data or seed the file starts empty. A last line
// that was cut off is dropped.
type stepStore struct {
	mu      sync.Mutex
	file    *os.File // nil: nothing is stored
	byStep  map[string]storedStep
	seconds float64 // of all steps
}

// A storedStep is a line of the file.
type storedStep struct {
	Step    string          `json:"step"`
	Seconds float64         `json:"seconds"`
	Value   json.RawMessage `json:"value"`
}

// A stepsOf is the file's first line.
type stepsOf struct {
	Experiment string `json:"experiment"`
	Key        string `json:"key"`
}

// openSteps opens the file and reads what belongs to key. With an empty path steps are
// held in memory.
func openSteps(path string, of stepsOf) (*stepStore, error) {
	s := &stepStore{byStep: map[string]storedStep{}}
	if path == "" {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	s.file = file
	end, err := s.read(of)
	if err == nil {
		err = s.begin(end, of)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return s, nil
}

// read fills byStep and returns the offset behind the last whole line.
func (s *stepStore) read(of stepsOf) (end int64, err error) {
	in := bufio.NewReaderSize(s.file, 1<<16)
	for first := true; ; first = false {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		if first {
			var is stepsOf
			if json.Unmarshal(line, &is) != nil || is != of {
				return 0, nil
			}
		} else {
			var k storedStep
			if json.Unmarshal(line, &k) != nil || k.Step == "" {
				return end, nil
			}
			s.byStep[k.Step] = k
			s.seconds += k.Seconds
		}
		end += int64(len(line))
	}
}

// begin cuts the file off at end. It writes the first line into an empty file.
func (s *stepStore) begin(end int64, of stepsOf) error {
	if err := s.file.Truncate(end); err != nil {
		return err
	}
	if _, err := s.file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if end > 0 {
		return nil
	}
	return writeLine(s.file, of)
}

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(bytes.TrimSpace(line), '\n'))
	return err
}

func (s *stepStore) get(step string) (storedStep, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.byStep[step]
	return k, ok
}

func (s *stepStore) put(k storedStep) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byStep[k.Step] = k
	s.seconds += k.Seconds
	if s.file == nil {
		return nil
	}
	if err := writeLine(s.file, k); err != nil {
		return fmt.Errorf("store a step: %w", err)
	}
	return nil
}

// spent returns the time of all steps on one core, those of earlier runs included.
func (s *stepStore) spent() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seconds
}

func (s *stepStore) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
