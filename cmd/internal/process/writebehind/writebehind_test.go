package writebehind

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Pauses double, to a bound that depends on the error. No pause is longer than stopping.
func TestPauses(t *testing.T) {
	lasting, final := errors.New("the server must be changed"), errors.New("too large")
	retry := Retry{First: FirstPause, Lasting: lasting, Final: []error{final}}
	for name, c := range map[string]struct {
		err   error
		tries int           // that fail
		want  time.Duration // until a success
	}{
		"passing": {errors.New("away"), 8, 250*time.Millisecond*(1+2+4+8+16+32) + 2*LastPause},
		"lasting": {lasting, 13, 250*time.Millisecond*(1<<11-1) + 2*longPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, n := time.Now(), 0
			err := retry.Do(t.Context(), func() error {
				if n++; n > c.tries {
					return nil
				}
				return c.err
			})
			if took := time.Since(began); err != nil || took != c.want {
				t.Errorf("%s: %v after %v, want %v", name, err, took, c.want)
			}
			if err := retry.Do(t.Context(), func() error { return final }); err != final || time.Since(began) != c.want {
				t.Errorf("%s: what is final is tried again: %v", name, err)
			}
			stopping, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := retry.Do(stopping, func() error { return c.err }); err != c.err || time.Since(began) != c.want+time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began)-c.want)
			}
		})
	}
}

// What is queued when ctx ends is written; a write that hangs ends a flush later.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := make(chan int, 3)
		for i := range 3 {
			queue <- i
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began, n := time.Now(), 0
		Run(ctx, Flush, 1, queue, func(work context.Context, item *int) {
			n++
			if *item == 1 {
				<-work.Done()
			}
		})
		if took := time.Since(began); n != 3 || took != Flush {
			t.Errorf("%d written in %v", n, took)
		}
	})
}
