package machine

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A clock that jumps by years is not believed for a day, while a program runs and between two programs. One
// that goes on is. The day is one of running time, over all programs.
func TestDoubts(t *testing.T) {
	const hour, year = time.Hour, 365 * 24 * time.Hour
	type step struct {
		start bool
		after time.Duration // by the wall clock, since the step before
		ran   time.Duration // by the monotonic clock, since the start
		want  bool
	}
	for name, steps := range map[string][]step{
		"jumps": {
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
		},
		"started again each night": {
			{true, 0, 0, false},
			{false, 23 * hour, 23 * hour, false},
			{true, hour, 0, false},
			{false, hour - time.Second, hour - time.Second, false},
			{false, time.Second, hour, true},
			{false, 22 * hour, 23 * hour, true},
			{true, hour, 0, true},
		},
		"on from 8 to 18, and off at the weekend": {
			{true, 0, 0, false},
			{false, 10 * hour, 10 * hour, false},
			{true, 14 * hour, 0, false},
			{false, 10 * hour, 10 * hour, false},
			{true, 14 * hour, 0, false},
			{false, 10 * hour, 10 * hour, true}, // Friday
			{true, 62 * hour, 0, false},         // like a clock that has jumped
			{false, 10 * hour, 10 * hour, false},
			{true, 14 * hour, 0, false},
			{false, 10 * hour, 10 * hour, false},
			{true, 14 * hour, 0, false},
			{false, 4 * hour, 4 * hour, true}, // Wednesday
			{true, 20 * hour, 0, true},
		},
		"a jump within the doubt begins it again": {
			{true, 0, 0, false},
			{false, 23 * hour, 23 * hour, false},
			{true, year, 0, false},
			{false, 23 * hour, 23 * hour, false},
			{true, hour, 0, false},
			{false, hour, hour, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), lookedName)
			wall := time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)
			var d *doubts
			for i, c := range steps {
				wall = wall.Add(c.after)
				if c.start {
					d = &doubts{path: path, log: slog.New(slog.DiscardHandler)}
				}
				got := d.believed(wall, c.ran)
				if got.IsZero() == c.want || c.want && !got.Equal(wall) {
					t.Errorf("step %d: %v is believed: %v, want %v", i, wall, !got.IsZero(), c.want)
				}
			}
		})
	}
}

// A program that begins in doubt says so, and for how much longer.
func TestDoubtsAreSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), lookedName)
	wall := time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)
	for i, c := range []struct {
		after, ran time.Duration
		want       string // part of the line; empty: no line
	}{
		{0, 10 * time.Hour, "INFO msg=\"no record of a log is deleted by age yet: the clock is watched first\" left=24h0m0s\n"},
		{time.Hour, 14 * time.Hour, "INFO msg=\"no record of a log is deleted by age yet: the clock is watched first\" left=14h0m0s\n"},
		{time.Hour, time.Hour, ""},
		{48 * time.Hour, time.Hour, "WARN msg=\"the clock may be wrong: for a day no record of a log is deleted by age\" jumped_by=48h0m0s\n"},
	} {
		var said bytes.Buffer
		d := &doubts{path: path, log: slog.New(slog.NewTextHandler(&said, nil))}
		wall = wall.Add(c.after)
		d.believed(wall, 0)
		wall = wall.Add(c.ran)
		d.believed(wall, c.ran)
		lines := strings.Count(said.String(), "\n")
		if c.want == "" && lines > 0 || c.want != "" && (lines != 1 || !strings.Contains(said.String(), c.want)) {
			t.Errorf("start %d says %q, want %q", i, said.String(), c.want)
		}
	}
}
