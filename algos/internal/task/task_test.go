package task

import (
	"strings"
	"testing"

	"hamlet/algos/internal/defect"
)

// early runs work when it is given; later runs it when its result is wanted.
type early struct{}

func (early) Go(work func()) func() { work(); return func() {} }

type later struct{}

func (later) Go(work func()) func() { return work }

func TestResultIsTheWorks(t *testing.T) {
	for name, c := range map[string]struct {
		runner Runner
		begun  int // how often the work has run before its result is wanted
	}{"no runner": {nil, 0}, "early": {early{}, 1}, "later": {later{}, 0}} {
		ran := 0
		task := Begin(c.runner, func() int { ran++; return 7 })
		if ran != c.begun {
			t.Errorf("%s: ran %d times before Result, want %d", name, ran, c.begun)
		}
		if got := task.Result(); got != 7 || ran != 1 {
			t.Errorf("%s: result %d after %d runs, want 7 after 1", name, got, ran)
		}
	}
}

// A panic of the work is one of Result, whichever goroutine worked, and keeps its stack.
func TestPanicsAreResults(t *testing.T) {
	for name, r := range map[string]Runner{"no runner": nil, "early": early{}, "later": later{}, "goroutine": goroutine{}} {
		task := Begin(r, func() int { panic("a defect") })
		func() {
			defer func() {
				failed, ok := recover().(*defect.Error)
				if !ok || failed.Error() != defect.Prefix+"work in the background: a defect" || !strings.Contains(string(failed.Stack), "TestPanicsAreResults") {
					t.Errorf("%s: %v", name, failed)
				}
			}()
			task.Result()
			t.Errorf("%s: no panic", name)
		}()
	}
}

// goroutine runs work in one.
type goroutine struct{}

func (goroutine) Go(work func()) func() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	return func() { <-done }
}
