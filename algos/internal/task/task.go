// Package task runs slow work in the background. Work begins at one event count. Its result
// takes effect at a later one, which waits for it. So no bit depends on the work's speed.
package task

import "hamlet/algos/internal/defect"

// A Runner does slow work. Go starts it, in a goroutine or not, and returns a function that
// waits until it is done. The goroutine that applies events calls wait once. Work must
// not depend on anything that the model changes later.
type Runner interface {
	Go(work func()) (wait func())
}

// A Task is work whose result is needed later.
type Task[T any] struct {
	result T
	failed *defect.Error // a panic of the work; nil: there was none
	wait   func()
}

// Begin starts work. Without a Runner, Result does the work.
func Begin[T any](r Runner, work func() T) *Task[T] {
	t := new(Task[T])
	do := func() {
		defer func() {
			if value := recover(); value != nil {
				t.failed = defect.Recovered("work in the background", value)
			}
		}()
		t.result = work()
	}
	if r == nil {
		t.wait = do
	} else {
		t.wait = r.Go(do)
	}
	return t
}

// Result waits for the result. It may be called once. A panic of the work is Result's, at the
// same event for every Runner.
func (t *Task[T]) Result() T {
	t.wait()
	if t.failed != nil {
		panic(t.failed)
	}
	return t.result
}
