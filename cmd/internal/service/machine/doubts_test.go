package machine

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"
)

// A clock that jumps by years is not believed for a day, while a program runs and between two programs. One
// that goes on is.
func TestDoubts(t *testing.T) {
	path := filepath.Join(t.TempDir(), lookedName)
	var d *doubts
	start := func() { d = &doubts{path: path, log: slog.New(slog.DiscardHandler)} }
	wall := time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)
	const hour, year = time.Hour, 365 * 24 * time.Hour
	for i, c := range []struct {
		start bool
		after time.Duration // by the wall clock, since the step before
		ran   time.Duration // by the monotonic clock, since the start
		want  bool
	}{
		{true, 0, 0, false}, // nobody knows when it was last right
		{false, 23 * hour, 23 * hour, false},
		{false, hour, 24 * hour, true},
		{true, 10 * hour, 0, true}, // a night
		{false, hour, hour, true},
		{false, year, 2 * hour, false}, // it is set forth
		{true, hour, 0, false},         // a new program does not forget it
		{false, -year, hour, false},    // it is set right
		{false, 23 * hour, 24 * hour, false},
		{false, hour, 25 * hour, true},
		{true, -year, 0, false}, // set back between two programs
		{true, year, 0, true},   // set right between two
		{false, hour + jumps, hour, true},
		{false, hour + jumps + time.Second, 2 * hour, false},
	} {
		wall = wall.Add(c.after)
		if c.start {
			start()
		}
		got := d.believed(wall, c.ran)
		if got.IsZero() == c.want || c.want && !got.Equal(wall) {
			t.Errorf("step %d: %v is believed: %v, want %v", i, wall, !got.IsZero(), c.want)
		}
	}
}
