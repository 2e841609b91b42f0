package leak

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// slow leaves a goroutine that runs longer than goleak waits.
type slow struct{ after time.Duration }

func (s slow) Run() int {
	go func() { <-time.After(s.after) }()
	return 0
}

func TestWaitsForWhatEnds(t *testing.T) {
	if code := (waiting{slow{time.Second}}).Run(); code != 0 {
		t.Errorf("code %d", code)
	}
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
}
