package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"hamlet/cmd/internal/process/clock"
	"hamlet/cmd/internal/process/secretfile"
	"hamlet/state"
	"hamlet/stream"
)

// socketName is the file of the socket in a directory.
const socketName = "socket"

// Serve lets other programs of this user use the directory until ctx ends. Where there can be no socket, as on
// a full disk, it tries again.
func (d *Dir) Serve(ctx context.Context) error {
	l := d.listenUntil(ctx)
	if l == nil {
		return nil
	}
	reading, end := context.WithCancel(context.Background())
	defer end()
	s := &http.Server{
		Handler:           d.handler(reading),
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(d.cfg.Log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		end() // of what waits for records
		stop, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if s.Shutdown(stop) != nil {
			_ = s.Close()
		}
	})()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the socket of %s: %w", d.path, err)
	}
	<-stopped // calls under way have ended
	return nil
}

// listenUntil returns the socket once it is open; nil if ctx ends before.
func (d *Dir) listenUntil(ctx context.Context) net.Listener {
	const again = time.Second
	for said := false; ; {
		l, err := d.listen()
		switch {
		case err == nil && said:
			d.cfg.Log.Info("operators' commands reach this program")
			return l
		case err == nil:
			return l
		case !said:
			said = true
			d.cfg.Log.Error("operators' commands cannot reach this program: its socket is tried again", "error", err)
		}
		if !clock.Sleep(ctx, again) {
			return nil
		}
	}
}

// listen opens the socket. What is there of an earlier program is deleted: the lock is ours.
func (d *Dir) listen() (net.Listener, error) {
	path := filepath.Join(d.path, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var l net.Listener
	if err := short(d.path, func(dir string) (err error) {
		l, err = secretfile.Listen(filepath.Join(dir, socketName), 0o600)
		return err
	}); err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its name may be another program's by then
	return l, nil
}

// longest is the longest path of a socket that every system takes.
const longest = 100

// short calls do with a path of the directory that a socket's name has room behind.
func short(dir string, do func(dir string) error) error {
	if len(dir)+1+len(socketName) <= longest {
		return do(dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(fmt.Sprintf("/proc/self/fd/%d", f.Fd())) // of Linux; elsewhere the system says what is wrong
}

// Arguments of calls.
type (
	onLog struct {
		Log string
	}
	reads struct {
		Log  string
		From int64
		Most stream.Limit
		Wait time.Duration
	}
	hasRead struct {
		Records []stream.Record
		End     int64
	}
	since struct {
		Log string
		At  time.Time
	}
	appends struct {
		Log     string
		Records []stream.Record
	}
	ensures struct {
		Log         string
		Replication int
		Retention   time.Duration
	}
	retains struct {
		Keep    time.Duration
		Bounded bool
	}
	skips struct {
		Log      string
		From, To int64
	}
	onModel[T any] struct {
		Model string
		Arg   T
	}
	numbered[T any] struct {
		Value  *T
		Number int64
	}
	manifest  state.Manifest // without its methods, of which gob would use one
	promotion state.Promotion
	acquires  struct {
		Seen   state.Lease
		Writer string
	}
	stepsBack struct {
		Mine state.Lease
		To   int64
	}
)

// none stands where there is no value: gob needs one.
type none = bool

func nothing(err error) (none, error) { return true, err }

// handler answers calls. Reads that wait end with reading.
func (d *Dir) handler(reading context.Context) http.Handler {
	mux := http.NewServeMux()
	handle(mux, "ping", func(ctx context.Context, _ none) (none, error) { return nothing(d.Ping(ctx)) })
	handle(mux, "partitions", func(ctx context.Context, a onLog) (int, error) { return d.Partitions(ctx, a.Log) })
	handle(mux, "ensure", func(ctx context.Context, a ensures) (none, error) {
		return nothing(d.Ensure(ctx, a.Log, a.Replication, a.Retention))
	})
	handle(mux, "retention", func(ctx context.Context, a onLog) (r retains, err error) {
		r.Keep, r.Bounded, err = d.Retention(ctx, a.Log)
		return r, err
	})
	handle(mux, "skip", func(ctx context.Context, a skips) (none, error) {
		return nothing(d.Skip(ctx, a.Log, a.From, a.To))
	})
	handle(mux, "bounds", func(ctx context.Context, a onLog) (stream.Bounds, error) {
		return (&topic{d, a.Log}).Bounds(ctx)
	})
	handle(mux, "read", func(ctx context.Context, a reads) (r hasRead, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(reading, cancel)()
		r.Records, r.End, err = (&topic{d, a.Log}).Read(ctx, a.From, a.Most, a.Wait)
		return r, err
	})
	handle(mux, "since", func(ctx context.Context, a since) (int64, error) { return (&topic{d, a.Log}).Since(ctx, a.At) })
	handle(mux, "append", func(ctx context.Context, a appends) (none, error) {
		return nothing((&topic{d, a.Log}).Append(ctx, a.Records...))
	})
	d.handleModels(mux)
	return mux
}

// A storeCall is a method of a store, or what is called like one.
type storeCall[A, R any] func(s state.Store, ctx context.Context, arg A) (R, error)

// onStore has a server answer a call about a model.
func onStore[A, R any](d *Dir, mux *http.ServeMux, name string, do storeCall[A, R]) {
	handle(mux, "model/"+name, func(ctx context.Context, a onModel[A]) (value R, err error) {
		s, err := d.Store(a.Model)
		if err != nil {
			return value, err
		}
		return do(s, ctx, a.Arg)
	})
}

// toNothing makes a method without a value one with none.
func toNothing[A any](do func(s state.Store, ctx context.Context, arg A) error) storeCall[A, none] {
	return func(s state.Store, ctx context.Context, arg A) (none, error) { return nothing(do(s, ctx, arg)) }
}

// ofNothing makes a method without an argument one with none.
func ofNothing[R any](do func(s state.Store, ctx context.Context) (R, error)) storeCall[none, R] {
	return func(s state.Store, ctx context.Context, _ none) (R, error) { return do(s, ctx) }
}

func (d *Dir) handleModels(mux *http.ServeMux) {
	onStore(d, mux, "save", state.Store.Save)
	onStore(d, mux, "load", func(s state.Store, ctx context.Context, p state.Pointer) (numbered[state.Checkpoint], error) {
		c, number, err := s.Load(ctx, p)
		return numbered[state.Checkpoint]{c, number}, err
	})
	onStore(d, mux, "version", func(s state.Store, ctx context.Context, number int64) (numbered[state.Checkpoint], error) {
		c, err := s.LoadVersion(ctx, number)
		return numbered[state.Checkpoint]{Value: c}, err
	})
	onStore(d, mux, "manifest", func(s state.Store, ctx context.Context, which state.Pointer) (numbered[manifest], error) {
		m, number, err := s.Manifest(ctx, which)
		return numbered[manifest]{(*manifest)(m), number}, err
	})
	onStore(d, mux, "heading", state.Store.Heading)
	onStore(d, mux, "versions", ofNothing(state.Store.Versions))
	onStore(d, mux, "models", ofNothing(state.Store.Models))
	onStore(d, mux, "pinned", ofNothing(state.Store.Pinned))
	onStore(d, mux, "promotion", func(s state.Store, ctx context.Context, _ none) (promotion, error) {
		p, err := s.Promotion(ctx)
		return promotion(p), err
	})
	onStore(d, mux, "lease", ofNothing(state.Store.Lease))
	onStore(d, mux, "acquire", func(s state.Store, ctx context.Context, a acquires) (state.Lease, error) {
		return s.Acquire(ctx, a.Seen, a.Writer)
	})
	onStore(d, mux, "seize", state.Store.Seize)
	onStore(d, mux, "beat", state.Store.Beat)
	onStore(d, mux, "release", state.Store.Release)
	onStore(d, mux, "step-back", toNothing(func(s state.Store, ctx context.Context, a stepsBack) error {
		return s.StepBack(ctx, a.Mine, a.To)
	}))
	onStore(d, mux, "pin", toNothing(state.Store.Pin))
	onStore(d, mux, "unpin", toNothing(func(s state.Store, ctx context.Context, _ none) error { return s.Unpin(ctx) }))
	onStore(d, mux, "mark-replaced", toNothing(state.Store.MarkReplaced))
	onStore(d, mux, "promote", toNothing(func(s state.Store, ctx context.Context, p promotion) error {
		return s.Promote(ctx, state.Promotion(p))
	}))
}
