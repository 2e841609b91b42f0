package simulate

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds = flag.Int("seeds", 20, "how many seeds TestSeeds runs")
	from  = flag.Uint64("from", 1, "the first of them")
)

// temporary returns a directory, in memory where the system has such a place.
func temporary(t *testing.T) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "simulate-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// beginning makes the beginning of all worlds.
func beginning(t *testing.T) (b *Beginning) {
	t.Helper()
	dir := temporary(t)
	synctest.Test(t, func(t *testing.T) {
		var err error
		if b, err = NewBeginning(dir); err != nil {
			t.Fatal(err)
		}
	})
	return b
}

// run runs a plan.
func run(t *testing.T, plan Plan, begin *Beginning, dir string) (violations, story []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if violations, story, err = Run(plan, begin, dir); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return violations, story
}

// TestSeeds runs worlds that break as their seeds say.
func TestSeeds(t *testing.T) {
	begin := beginning(t)
	dir := temporary(t)
	start := time.Now()
	for seed := *from; seed < *from+uint64(*seeds); seed++ {
		plan := Draw(seed)
		violations, story := run(t, plan, begin, filepath.Join(dir, "run"))
		if len(violations) == 0 {
			continue
		}
		if len(story) > 400 {
			story = story[len(story)-400:]
		}
		t.Errorf("%s\n%s\n%s", &plan, strings.Join(story, "\n"), strings.Join(violations, "\n"))
	}
	t.Logf("%d seeds, %.0f a minute", *seeds, float64(*seeds)/time.Since(start).Minutes())
}
