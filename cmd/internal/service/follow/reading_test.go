package follow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// Idle is called in quiet times, also while the log does not answer and while a read hangs: a
// handler saves then.
func TestIdle(t *testing.T) {
	for name, disturb := range map[string]func(*logtest.Memory){
		"quiet":   func(*logtest.Memory) {},
		"away":    func(log *logtest.Memory) { log.Fail(fmt.Errorf("%w: nobody is there", stream.ErrAway)) },
		"hanging": func(log *logtest.Memory) { log.Stick(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, k := filled(t, 3), newKeeper()
				var times atomic.Int64
				k.idle = func(*handler) error { times.Add(1); return nil }
				stop := k.start(t, follow.Config{Log: log, PollInterval: 100 * time.Millisecond})
				time.Sleep(time.Second)
				synctest.Wait()
				disturb(log)
				before := times.Load()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if n := times.Load() - before; len(k.now().taken) != 3 || n < 98 || n > 101 {
					t.Errorf("%d records, and Idle was called %d times in 10 s, want 100", len(k.now().taken), n)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A wall clock that is set back does not hide that the log is silent: the time has a monotonic reading.
// It has none in a bubble of synctest.
func TestAnsweredIsMonotonic(t *testing.T) {
	log, k := filled(t, 1), newKeeper()
	handled := make(chan time.Time, 1)
	f := follow.New(follow.Config{Log: log})
	k.handle = func(*handler, []stream.Record) error { handled <- f.Answered(); return nil }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, k.open) }()
	if at := <-handled; !strings.Contains(at.String(), " m=") {
		t.Errorf("the log answered at %v, without a monotonic reading", at)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Answered tells when the log answered last, also while it is quiet and while the handler is busy.
func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k := filled(t, 300), newKeeper()
		entered, leave := make(chan struct{}, 3), make(chan struct{})
		k.handle = func(_ *handler, batch []stream.Record) error { entered <- struct{}{}; <-leave; return nil }
		f := follow.New(follow.Config{Log: log, PollInterval: 100 * time.Millisecond})
		if !f.Answered().IsZero() {
			t.Error("the log has answered before it was asked")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx, k.open) }()
		age := func(what string, want time.Duration) {
			t.Helper()
			if got := time.Since(f.Answered()); got > want {
				t.Errorf("%s, the log answered %v ago, want at most %v", what, got, want)
			}
		}
		<-entered
		time.Sleep(time.Minute)
		synctest.Wait()
		age("while the handler is busy", 200*time.Millisecond)
		close(leave)
		time.Sleep(time.Minute)
		synctest.Wait()
		age("in a quiet time", 200*time.Millisecond)
		log.Fail(stream.ErrAway)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := time.Since(f.Answered()); got < 50*time.Second {
			t.Errorf("the log is away, and answered %v ago", got)
		}
		log.Fail(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		age("when the log is back", 200*time.Millisecond)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// After a request to stop, a handler finishes its batch, under a deadline. Then it is closed, with
// a deadline of its own.
func TestDrain(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			log, k := filled(t, 1), newKeeper()
			entered := make(chan struct{})
			f := follow.New(follow.Config{Log: log, Name: "topic t", Drain: 300 * time.Millisecond})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- f.Run(ctx, func(ctx context.Context) (follow.Handler, error) {
					h, err := k.open(ctx)
					return patient{h, func(working context.Context) error {
						close(entered)
						<-working.Done()
						if late {
							return working.Err()
						}
						return nil
					}}, err
				})
			}()
			<-entered
			began := time.Now()
			cancel()
			err := <-ended
			if took := time.Since(began); took != 300*time.Millisecond {
				t.Errorf("drained for %v, want 300 ms", took)
			}
			if late {
				if err == nil || !strings.Contains(err.Error(), "offsets 0 to 0") || slices.Contains(k.log, "close") {
					t.Errorf("Run = %v, want the batch that was not finished: %v", err, k.log)
				}
			} else if err != nil || !slices.Contains(k.log, "close") || k.next != 1 {
				t.Errorf("Run = %v, log %v, saved position %d: want closed at 1", err, k.log, k.next)
			}
		})
	}
}

// A patient handler does something first with each batch.
type patient struct {
	follow.Handler
	first func(context.Context) error
}

func (p patient) Handle(ctx context.Context, batch []stream.Record, end int64) error {
	if err := p.first(ctx); err != nil {
		return err
	}
	return p.Handler.Handle(ctx, batch, end)
}

// A last save that fails at an orderly stop is Run's error.
func TestCloseErrorEndsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the state cannot be reached")
		k := newKeeper()
		f := follow.New(follow.Config{Log: filled(t, 1), Name: "topic t"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := f.Run(ctx, func(ctx context.Context) (follow.Handler, error) {
			h, err := k.open(ctx)
			return closer{h, broken}, err
		})
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "topic t: close at offset 1: ") {
			t.Errorf("Run = %v, want the error of Close", err)
		}
	})
}

type closer struct {
	follow.Handler
	err error
}

func (c closer) Close(context.Context) error { return c.err }

// A handler that asks for it is opened again, with a pause. Any other error of it ends Run, and it
// is dropped.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k, reloads := filled(t, 20), newKeeper(), 0
		broken := errors.New("broken")
		k.idle = func(h *handler) error { return h.save(t.Context()) }
		k.handle = func(_ *handler, batch []stream.Record) error {
			switch {
			case reloads < 5:
				reloads++
				return fmt.Errorf("another learner saved first: %w", follow.ErrReload)
			case batch[0].Offset == 20:
				return broken
			}
			return nil
		}
		began := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- k.run(t.Context(), t, follow.Config{Log: log, Name: "topic t"}) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []string{"open", "open", "open", "open", "open", "open"}; !slices.Equal(k.now().log, want) || k.now().next != 20 || len(k.now().taken) != 20 {
			t.Fatalf("log %v, saved position %d, %d records", k.now().log, k.now().next, len(k.now().taken))
		}
		if err := log.Append(t.Context(), numbered(20, 1)...); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "topic t: offsets 20 to 20: ") || slices.Contains(k.log, "close") {
			t.Errorf("Run = %v after %v, want the handler's error, and no close: %v", err, time.Since(began), k.log)
		}
	})
}

// A log that is away for too long ends Run, after what was read is saved.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k := filled(t, 20), newKeeper()
		var lines strings.Builder
		cfg := follow.Config{Log: log, MaxOutage: time.Minute, Logger: slog.New(slog.NewTextHandler(&lines, nil))}
		ended := make(chan error, 1)
		go func() { ended <- k.run(t.Context(), t, cfg) }()
		away := func(d time.Duration) {
			log.Fail(fmt.Errorf("%w: nobody is there", stream.ErrAway))
			time.Sleep(d)
			synctest.Wait()
			log.Fail(nil)
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for range 5 {
			away(50 * time.Second) // each is short enough
		}
		if err := log.Append(t.Context(), numbered(20, 1)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := strings.Count(lines.String(), "the log answers again"); len(k.now().taken) != 21 || n != 5 {
			t.Errorf("%d records after five outages, %d of them over", len(k.now().taken), n)
		}
		began := time.Now()
		log.Fail(fmt.Errorf("%w: nobody is there", stream.ErrAway))
		err := <-ended
		if took := time.Since(began); !errors.Is(err, follow.ErrOutage) || !errors.Is(err, stream.ErrAway) || took < time.Minute || took > 62*time.Second {
			t.Errorf("Run = %v after %v, want ErrOutage after a minute", err, took)
		}
		if !slices.Contains(k.log, "close") || k.next != 21 {
			t.Errorf("what was read was not saved: %v, %d", k.log, k.next)
		}
	})
}

// What is final for a log ends Run at once.
func TestFinalErrors(t *testing.T) {
	for _, final := range []error{stream.ErrNoLog, stream.ErrDenied, errors.New("any other")} {
		for _, running := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				log, k := filled(t, 20), newKeeper()
				if !running {
					log.Fail(final)
				} else {
					time.AfterFunc(3*time.Second, func() { log.Fail(final) })
				}
				began := time.Now()
				err := k.run(t.Context(), t, follow.Config{Log: log, Name: "topic t"})
				if !errors.Is(err, final) || !strings.HasPrefix(err.Error(), "topic t: ") || time.Since(began) > 5*time.Second {
					t.Errorf("Run = %v after %v, want %v", err, time.Since(began), final)
				}
			})
		}
	}
}

// It waits for a log that is not there yet, and opens nothing before.
func TestWaitsForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k := filled(t, 20), newKeeper()
		log.Fail(stream.ErrAway)
		stop := k.start(t, follow.Config{Log: log})
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(k.log) > 0 {
			t.Errorf("a handler was opened: %v", k.log)
		}
		log.Fail(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := stop(); err != nil || len(k.taken) != 20 {
			t.Errorf("Run = %v, %d records", err, len(k.taken))
		}
	})
}

// Large records make small batches.
func TestBatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k := new(logtest.Memory), newKeeper()
		for i := range 300 {
			r := stream.Record{Value: make([]byte, 10)}
			if i >= 200 {
				r.Value = make([]byte, 900_000)
			}
			if err := log.Append(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		most, bytes := 0, 0
		k.handle = func(_ *handler, batch []stream.Record) error {
			size := 0
			for i := range batch {
				size += batch[i].Size()
			}
			most, bytes = max(most, len(batch)), max(bytes, size)
			return nil
		}
		if err := k.settle(t, follow.Config{Log: log}, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if len(k.taken) != 300 || most != 128 || bytes > 4<<20 || bytes < 3<<20 {
			t.Errorf("%d records, batches of up to %d records and %d bytes", len(k.taken), most, bytes)
		}
	})
}
