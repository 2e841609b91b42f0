package simulate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds    = flag.Int("seeds", 10, "how many seeds TestSeeds runs")
	minimise = flag.Bool("minimise", true, "look for the smallest plan that fails like one that fails")
	from     = flag.Uint64("from", 1, "the first of them")
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
	start := time.Now()
	next := *from
	var mu sync.Mutex
	take := func() (seed uint64, more bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= *from+uint64(*seeds)
	}
	t.Run("all", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
				t.Parallel()
				dir := temporary(t)
				for seed, more := take(); more; seed, more = take() {
					try(t, Draw(seed), begin, filepath.Join(dir, "run"))
				}
			})
		}
	})
	t.Logf("%d seeds, %.0f a minute", *seeds, float64(*seeds)/time.Since(start).Minutes())
}

// try runs a plan, and tells its story if it fails.
func try(t *testing.T, plan Plan, begin *Beginning, dir string) {
	t.Helper()
	violations, story := run(t, plan, begin, dir)
	if len(violations) == 0 {
		return
	}
	if *minimise {
		plan = Minimise(plan, func(p Plan) bool {
			less, told := run(t, p, begin, dir)
			if len(less) > 0 {
				violations, story = less, told
			}
			return len(less) > 0
		})
	}
	t.Errorf("%s\n%s\n%s", &plan, strings.Join(story, "\n"), strings.Join(violations, "\n"))
}
