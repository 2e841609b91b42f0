package task

import "testing"

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
