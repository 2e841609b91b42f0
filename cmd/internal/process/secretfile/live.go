package secretfile

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Live is what files say, as they were last read without a mistake. It may be used
// concurrently.
//
//	live, err := secretfile.Open(func() (table, error) { … }, path)
//	live.Get()                      // of a request
//	live.Watch(ctx, time.Tick(5*time.Second), nil, func(changed bool, err error) { … })
//
// A file has changed if it is another one, as after a rename, or has another size or time. What
// cannot be read changes nothing, and is read again at each Refresh: a chmod leaves the time.
type Live[T any] struct {
	read    func() (T, error)
	paths   []string
	current atomic.Pointer[T]

	mu    sync.Mutex    // held while files are read; it guards what follows
	files []fs.FileInfo // before the last reading
	err   error         // of the last reading; nil: current is of files
}

// Open calls read, which reads the files at paths.
func Open[T any](read func() (T, error), paths ...string) (*Live[T], error) {
	l := &Live[T]{read: read, paths: paths}
	if err := l.Reload(); err != nil {
		return nil, err
	}
	return l, nil
}

// Get returns what the files say. Nobody changes it.
func (l *Live[T]) Get() *T { return l.current.Load() }

// Reload reads the files. After an error all is as it was.
func (l *Live[T]) Reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load(l.stat())
	return l.err
}

// Refresh reads the files if one has changed, and reports whether they now say what Get
// returns. It returns the same mistake in the same files once. A nil Live never changes.
func (l *Live[T]) Refresh() (changed bool, err error) {
	if l == nil {
		return false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, was, told := l.stat(), l.files, l.err
	unchanged := slices.EqualFunc(now, was, same)
	if unchanged && told == nil {
		return false, nil
	}
	l.load(now)
	if unchanged && l.err != nil && l.err.Error() == told.Error() {
		return false, nil
	}
	return l.err == nil, l.err
}

// Watch calls Refresh at each tick, and Reload at each signal, until ctx ends. It tells took what
// came of it.
func (l *Live[T]) Watch(
	ctx context.Context, ticks <-chan time.Time, signals <-chan os.Signal, took func(changed bool, err error),
) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			err := l.Reload()
			took(err == nil, err)
		case <-ticks:
			took(l.Refresh())
		}
	}
}

// load reads the files. mu is held. files are from before: what changes meanwhile is read again.
func (l *Live[T]) load(files []fs.FileInfo) {
	value, err := l.read()
	l.files, l.err = files, err
	if err == nil {
		l.current.Store(&value)
	}
}

// stat returns nil for a file that is not there.
func (l *Live[T]) stat() []fs.FileInfo {
	files := make([]fs.FileInfo, len(l.paths))
	for i, path := range l.paths {
		if info, err := os.Stat(path); err == nil {
			files[i] = info
		}
	}
	return files
}

func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
