package follow_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// filled returns a log of n records.
func filled(t testing.TB, n int) *logtest.Memory {
	t.Helper()
	log := new(logtest.Memory)
	if err := log.Append(t.Context(), numbered(0, n)...); err != nil {
		t.Fatal(err)
	}
	return log
}

// settle follows a log until nothing happens any more, and returns Run's error. What is in the
// bubble waits.
func (k *keeper) settle(t *testing.T, cfg follow.Config, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return k.run(ctx, t, cfg)
}

// A handler begins where its position says, and with a log that it has not read at the beginning.
func TestBegins(t *testing.T) {
	for _, c := range []struct {
		name   string
		k      *keeper
		first  int64 // of the log, which ends at 20
		cfg    follow.Config
		begins int64 // the first record handed over; −1: none
		want   error
		says   string
	}{
		{"no position", newKeeper(), 0, follow.Config{}, 0, nil, ""},
		{"within", at(7), 0, follow.Config{}, 7, nil, ""},
		{"at the end", at(20), 0, follow.Config{}, -1, nil, ""},
		{"at the beginning", at(5), 5, follow.Config{}, 5, nil, ""},
		{"a gap", at(3), 5, follow.Config{}, -1, follow.ErrGap, "2 offsets are gone"},
		{"an accepted gap", at(3), 5, follow.Config{AcceptGap: true}, 5, nil, ""},
		{"a lost beginning", newKeeper(), 5, follow.Config{AcceptGap: true}, -1, follow.ErrNoBeginning, "offset 5"},
		{"an accepted lost beginning", newKeeper(), 5, follow.Config{AcceptLostBeginning: true}, 5, nil, ""},
		{"beyond the end", at(21), 0, follow.Config{}, -1, follow.ErrBehind, "ends at 20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := filled(t, 20)
				log.Retain(c.first)
				c.cfg.Log, c.cfg.Name = log, "topic t"
				err := c.k.settle(t, c.cfg, 10*time.Second)
				if !errors.Is(err, c.want) || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "topic t: ")) {
					t.Fatalf("Run = %v, want %v with %q", err, c.want, c.says)
				}
				if got := len(c.k.taken); c.begins < 0 && got > 0 || c.begins >= 0 && (got != int(20-c.begins) || c.k.taken[0].Offset != c.begins || c.k.end != 20) {
					t.Errorf("%d records were handed over, the log's end as %d; want those from %d on", got, c.k.end, c.begins)
				}
				if !slices.Contains(c.k.log, "close") {
					t.Errorf("the handler was not closed: %v", c.k.log)
				}
			})
		})
	}
}

// The record before the position is shown to the handler, once. One that is gone cannot be.
func TestFollowsTheSameLog(t *testing.T) {
	for _, c := range []struct {
		name    string
		next    int64
		prepare func(*logtest.Memory)
		asked   []int64
	}{
		{"the record", 10, func(*logtest.Memory) {}, []int64{9}},
		{"at the end", 20, func(*logtest.Memory) {}, []int64{19}},
		{"retention took it", 10, func(log *logtest.Memory) { log.Retain(10) }, nil},
		{"compaction took it", 10, func(log *logtest.Memory) { log.Compact(9) }, nil},
		{"compaction took all that follows", 10, func(log *logtest.Memory) { log.Compact(9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := filled(t, 20)
				c.prepare(log)
				k := at(c.next)
				if err := k.settle(t, follow.Config{Log: log}, 30*time.Second); err != nil {
					t.Fatal(err)
				}
				var asked []int64
				for _, r := range k.asked {
					asked = append(asked, r.Offset)
				}
				if !slices.Equal(asked, c.asked) {
					t.Errorf("asked about %v, want %v", asked, c.asked)
				}
			})
		})
	}
}

// A position beyond the end of a log that recovers is right again within the grace period.
func TestFollowsWhenTheEndIsBackAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := filled(t, 15)
		k := at(20)
		stop := k.start(t, follow.Config{Log: log})
		time.Sleep(time.Second)
		synctest.Wait()
		if err := log.Append(t.Context(), numbered(15, 10)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := stop(); err != nil || len(k.taken) != 5 || len(k.unfit) != 0 {
			t.Errorf("Run = %v after %d records, stepped back for %v", err, len(k.taken), k.unfit)
		}
	})
}

// A log that has lost its end, or is another one from some record on, is gone on with from an older
// state that it still has. If there is none, Run ends and says what the handler said.
func TestStepsBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		older   []int64
		change  func(*testing.T, *logtest.Memory) // before the second run, from 20
		want    error
		begins  int64
		because error
	}{
		{"its end is lost", []int64{16, 12, 8}, func(_ *testing.T, log *logtest.Memory) { log.Cut(13) }, nil, 12, follow.ErrBehind},
		{"its end is another one", []int64{16, 12, 8}, func(t *testing.T, log *logtest.Memory) {
			log.Cut(10)
			if err := log.Append(t.Context(), numbered(100, 30)...); err != nil {
				t.Fatal(err)
			}
		}, nil, 8, follow.ErrReplaced},
		{"nothing is left of it", []int64{16, 12, 8}, func(_ *testing.T, log *logtest.Memory) { log.Replace("", numbered(100, 3)...) }, follow.ErrBehind, -1, follow.ErrBehind},
		{"another log, and longer", []int64{16, 12, 8}, func(_ *testing.T, log *logtest.Memory) { log.Replace("", numbered(100, 50)...) }, follow.ErrReplaced, -1, follow.ErrReplaced},
		{"no older state", nil, func(_ *testing.T, log *logtest.Memory) { log.Cut(13) }, follow.ErrBehind, -1, follow.ErrBehind},
		{"all older states are beyond the end", []int64{16}, func(_ *testing.T, log *logtest.Memory) { log.Cut(13) }, follow.ErrBehind, -1, follow.ErrBehind},
	} {
		for _, running := range []bool{false, true} {
			name := c.name + map[bool]string{false: " before it is read", true: " while it is read"}[running]
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					log, k := filled(t, 20), newKeeper()
					k.idle = func(h *handler) error {
						if err := h.save(t.Context()); !errors.Is(err, follow.ErrUnconfirmed) {
							return err
						}
						return nil
					}
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					follows := func() { ended <- k.run(ctx, t, follow.Config{Log: log}) }
					go follows()
					time.Sleep(3 * time.Second)
					synctest.Wait()
					if !running {
						cancel()
						if err := <-ended; err != nil {
							t.Fatal(err)
						}
						ctx, cancel = context.WithCancel(t.Context())
					}
					defer func() { cancel() }()
					if k.now().next != 20 {
						t.Fatalf("saved up to %d, want 20", k.next)
					}
					k.change(func() { k.older = c.older })
					c.change(t, log)
					if !running {
						go follows()
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if len(k.now().unfit) != 1 || !errors.Is(k.now().unfit[0], c.because) {
						t.Errorf("stepped back because of %v, want once, because of %v", k.now().unfit, c.because)
					}
					if c.want != nil {
						err := <-ended
						if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "start with an empty one") {
							t.Errorf("Run = %v, want %v and what the handler said", err, c.want)
						}
						return
					}
					cancel()
					if err := <-ended; err != nil {
						t.Fatal(err)
					}
					bounds, _ := log.Bounds(t.Context())
					if k.now().next != bounds.End || int64(len(k.now().taken)) != bounds.End {
						t.Errorf("it has come to %d with %d records, want %d: %v", k.now().next, len(k.now().taken), bounds.End, k.now().log)
					}
					all, _, _ := log.Read(t.Context(), 0, stream.Limit{}, 0)
					if !slices.EqualFunc(k.now().taken, all, func(a, b stream.Record) bool { return a.Offset == b.Offset && sameContent(&a, &b) }) {
						t.Error("what was handed over is not the log")
					}
				})
			})
		}
	}
}

// A handler that says that it stepped back, and did not, is not asked for ever.
func TestStepsBackNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow.New(follow.Config{Log: filled(t, 5)})
		err := f.Run(t.Context(), func(context.Context) (follow.Handler, error) { return stubborn{}, nil })
		if !errors.Is(err, follow.ErrBehind) || !strings.Contains(err.Error(), "stepped back") {
			t.Errorf("Run = %v", err)
		}
	})
}

type stubborn struct{}

func (stubborn) Position(func(context.Context) error) (int64, bool)   { return 9, true }
func (stubborn) Follows(stream.Record) bool                           { return true }
func (stubborn) Handle(context.Context, []stream.Record, int64) error { return nil }
func (stubborn) Idle(context.Context) error                           { return nil }
func (stubborn) Close(context.Context) error                          { return nil }
func (stubborn) StepBack(context.Context, stream.Bounds, error, follow.RecordAt) error {
	return nil
}

// Records that retention takes under the reader are a gap.
func TestGapWhileReading(t *testing.T) {
	for _, accept := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			log, k := filled(t, 20), newKeeper()
			k.handle = func(_ *handler, batch []stream.Record) error {
				if batch[0].Offset == 0 {
					log.Retain(15)
				}
				return nil
			}
			var lines strings.Builder
			cfg := follow.Config{Log: log, MaxBatch: 5, AcceptGap: accept, Logger: slog.New(slog.NewTextHandler(&lines, nil))}
			err := k.settle(t, cfg, 10*time.Second)
			if want := map[bool]error{false: follow.ErrGap}[accept]; !errors.Is(err, want) {
				t.Fatalf("Run = %v, want %v", err, want)
			}
			// One batch was read ahead.
			if n := len(k.taken); !accept && n != 10 || accept && (n != 15 || k.taken[10].Offset != 15 || !strings.Contains(lines.String(), "lost to retention")) {
				t.Errorf("%d records were handed over; %s", n, &lines)
			}
			if !slices.Contains(k.log, "close") {
				t.Error("what was read before the gap was not saved")
			}
		})
	}
}
