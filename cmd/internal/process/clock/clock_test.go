package clock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if !Sleep(ctx, time.Second) || time.Since(began) != time.Second {
			t.Errorf("a pause of a second took %v", time.Since(began))
		}
		n := 0
		Every(ctx, 2*time.Second, func() { n++ })
		if n != 4 || time.Since(began) != 10*time.Second {
			t.Errorf("%d calls in %v", n, time.Since(began))
		}
		if Sleep(ctx, time.Hour) || time.Since(began) != 10*time.Second {
			t.Error("a pause outlasted its context")
		}
	})
}
