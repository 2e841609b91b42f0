package follow_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
	"hamlet/stream/logtest"
)

// A log that is deleted and created again under a handler that waits for records ends Run, as it
// cannot step back. No state with records of the new log is saved: the new log may be there and
// longer before the next read.
func TestReplacedUnderAReader(t *testing.T) {
	for name, more := range map[string][]int{
		"longer at once":  {300},
		"longer in steps": {50, 250}, // first the position is beyond the end
		"as long":         {100},
		"never as long":   {50},
	} {
		for _, id := range []string{"", "another"} {
			t.Run(name+" "+id, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					log, k := filled(t, 100), newKeeper()
					if id != "" {
						log.ID = "first"
					}
					k.idle = func(h *handler) error { return h.save(t.Context()) }
					ended := make(chan error, 1)
					go func() { ended <- k.run(t.Context(), t, follow.Config{Log: log, PollInterval: 50 * time.Millisecond}) }()
					time.Sleep(time.Second)
					synctest.Wait()
					if k.now().next != 100 {
						t.Fatalf("saved up to %d", k.now().next)
					}
					log.Replace(id, numbered(1000, more[0])...)
					for _, n := range more[1:] {
						time.Sleep(time.Second)
						synctest.Wait()
						if err := log.Append(t.Context(), numbered(1000+more[0], n)...); err != nil {
							t.Fatal(err)
						}
					}
					if err := <-ended; !errors.Is(err, follow.ErrReplaced) && (name != "never as long" || !errors.Is(err, follow.ErrBehind)) {
						t.Errorf("Run = %v, want ErrReplaced", err)
					}
					if k.now().next != 100 {
						t.Errorf("saved up to %d, want 100: the first log", k.now().next)
					}
				})
			})
		}
	}
}

// The log is replaced between two reads, and the new one is longer: no read fails. A handler that
// asks before it saves is told. One that has saved nothing reads the new log then, from its
// beginning.
func TestReplacedBetweenTwoReads(t *testing.T) {
	for _, id := range []string{"", "another"} {
		synctest.Test(t, func(t *testing.T) {
			const others = 900
			log, k := filled(t, 400), newKeeper()
			confirmed := 0
			k.handle = func(h *handler, batch []stream.Record) error {
				if string(batch[0].Value) == "0" {
					log.Replace(id, numbered(1000, others)...)
					return nil
				}
				// Of both logs, before this call.
				mixed := slices.ContainsFunc(k.now().taken, func(r stream.Record) bool { return len(r.Value) > 3 }) &&
					slices.ContainsFunc(k.now().taken, func(r stream.Record) bool { return len(r.Value) <= 3 })
				err := h.confirm(t.Context())
				if err == nil {
					confirmed++
				}
				if mixed && err == nil {
					t.Error("a mixed state was confirmed")
				}
				if errors.Is(err, follow.ErrReplaced) {
					k.change(func() { k.taken = nil }) // nothing was saved
				}
				return err
			}
			if err := k.settle(t, follow.Config{Log: log, MaxBatch: 100}, 10*time.Second); err != nil {
				t.Fatal(err)
			}
			if n := len(k.now().taken); n != others || string(k.now().taken[0].Value) != "1000" || k.now().next != others || confirmed == 0 {
				t.Errorf("%d records in the end, saved up to %d, %d times confirmed; want the other log from its beginning: %v", n, k.now().next, confirmed, k.now().log)
			}
		})
	}
}

// Nor does a stop between two reads save what is of both logs.
func TestReplacedBeforeTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k := filled(t, 400), newKeeper()
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		k.handle = func(_ *handler, batch []stream.Record) error {
			if batch[0].Offset == 300 {
				log.Replace("", numbered(1000, 900)...)
				stop()
				time.Sleep(time.Second)
			}
			return nil
		}
		go func() { stopped <- k.run(ctx, t, follow.Config{Log: log, MaxBatch: 100}) }()
		if err := <-stopped; !errors.Is(err, follow.ErrReplaced) {
			t.Errorf("Run = %v, want ErrReplaced", err)
		}
		if k.saved || slices.Contains(k.log, "close") {
			t.Errorf("a handler with another log's records was closed, so it saved: %v", k.log)
		}
	})
}

// A log that goes back in its offsets ends Run.
func TestTheLogWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k := backwards{filled(t, 20)}, newKeeper()
		if err := k.settle(t, follow.Config{Log: log}, 10*time.Second); err == nil || len(k.taken) != 0 {
			t.Errorf("Run = %v, %d records", err, len(k.taken))
		}
	})
}

// A backwards log returns its records from the newest to the oldest.
type backwards struct{ *logtest.Memory }

func (b backwards) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) ([]stream.Record, int64, error) {
	records, end, err := b.Memory.Read(ctx, from, most, wait)
	slices.Reverse(records)
	return records, end, err
}

// A log loses its end between two reads and grows beyond the position again, as one in Kafka does where
// a replica that is behind becomes the leader. No read fails, and no end moves back. What was read
// of the lost end is not kept.
func TestCutBetweenTwoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, k := filled(t, 400), newKeeper()
		cut := false
		k.handle = func(_ *handler, batch []stream.Record) error {
			switch {
			case batch[0].Offset == 0: // opened again: nothing was saved
				k.change(func() { k.taken = nil })
			case batch[0].Offset == 300 && !cut:
				cut = true
				stays, _, err := log.Read(t.Context(), 0, stream.Limit{Records: 350}, 0)
				if err != nil {
					return err
				}
				log.Replace("", slices.Concat(stays, numbered(2000, 550))...)
			}
			return nil
		}
		if err := k.settle(t, follow.Config{Log: log, MaxBatch: 100}, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		want, _, err := log.Read(t.Context(), 0, stream.Limit{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.now().taken; !slices.EqualFunc(got, want, func(a, b stream.Record) bool { return a.Offset == b.Offset && sameContent(&a, &b) }) {
			t.Errorf("%d records were taken, the log has %d others", len(got), len(want))
		}
	})
}

// A log loses its end between the two calls of an opening, the one for its bounds and the one for the record
// before the position, and grows beyond the position again. What the handler had learnt of the lost end is not kept.
func TestCutInAnOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &cutting{Memory: filled(t, 20), at: 19}
		k := at(20)
		taken, _, err := log.Memory.Read(t.Context(), 0, stream.Limit{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		k.taken, k.older = taken, []int64{19}
		if err := k.settle(t, follow.Config{Log: log}, 20*time.Second); err != nil {
			t.Fatal(err)
		}
		want, _, err := log.Memory.Read(t.Context(), 0, stream.Limit{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.now().taken; !slices.EqualFunc(got, want, func(a, b stream.Record) bool { return a.Offset == b.Offset && sameContent(&a, &b) }) {
			t.Errorf("%d records were taken, the log has %d others; %q", len(got), len(want), k.now().log)
		}
	})
}

// A cutting log loses its end before the first read of an offset, and half a second later has other records there.
type cutting struct {
	*logtest.Memory
	at   int64
	once sync.Once
}

func (c *cutting) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) ([]stream.Record, int64, error) {
	if from == c.at {
		c.once.Do(func() {
			c.Cut(c.at)
			time.AfterFunc(500*time.Millisecond, func() {
				if err := c.Append(context.WithoutCancel(ctx), numbered(2000, 10)...); err != nil {
					panic(err)
				}
			})
		})
	}
	return c.Memory.Read(ctx, from, most, wait)
}
