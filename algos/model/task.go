package model

// A task is work that is under way beside the stream, or will be done where its
// result is wanted.
type task[T any] struct {
	result T
	wait   func()
}

// begin lets r take up work.
func begin[T any](r Runner, work func() T) *task[T] {
	t := new(task[T])
	do := func() { t.result = work() }
	if r == nil {
		t.wait = do
	} else {
		t.wait = r.Go(do)
	}
	return t
}

// get waits for the result.
func (t *task[T]) get() T {
	t.wait()
	return t.result
}
