package page

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A Shared is read once for all who look, and again when its time has come: sooner after an error, but
// not after one that took all the time.
func TestSharedIsReadOnce(t *testing.T) {
	now, reads := time.Now(), 0
	var failed error
	s := Shared[int]{Now: func() time.Time { return now }, Again: time.Minute, Time: time.Minute,
		Read: func(context.Context, int) (int, error) {
			reads++
			return reads, failed
		}}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, one := range []struct {
		name  string
		later time.Duration
		ctx   context.Context
		fails error
		want  int
	}{
		{"first, by one who has left", 0, over, nil, 1},
		{"at once", 0, t.Context(), nil, 1},
		{"a minute later", time.Minute, t.Context(), errors.New("refused"), 2},
		{"soon after an error", failAgain, t.Context(), nil, 3},
		{"soon after none", failAgain, t.Context(), nil, 3},
	} {
		now, failed = now.Add(one.later), one.fails
		if got, err := s.Get(one.ctx); got != one.want || !errors.Is(err, one.fails) {
			t.Errorf("%s: %d, %v, want %d", one.name, got, err, one.want)
		}
	}
	s.Forget()
	if got, _ := s.Get(t.Context()); got != 4 {
		t.Errorf("after Forget: %d", got)
	}
	now, failed, s.Time = now.Add(time.Minute), context.DeadlineExceeded, time.Nanosecond
	if _, err := s.Get(t.Context()); err == nil {
		t.Error("no error")
	}
	now = now.Add(failAgain)
	if got, _ := s.Get(t.Context()); got != 5 {
		t.Errorf("a reading that took all its time was tried again after %v: %d", failAgain, got)
	}
}
