package simulate

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	program "hamlet/cmd/internal/lab/simulate/seeds"
)

var (
	seeds    = flag.Int("seeds", 5, "how many seeds TestSeeds runs at most")
	lasts    = flag.Duration("for", 0, "how long it begins new ones; 0: until it has run them")
	with     = flag.String("with", "", "only seeds whose plan has this kind of incident")
	from     = flag.Uint64("from", 1, "the first of them")
	minimise = flag.Bool("minimise", true, "look for the smallest plan that fails like one that fails")
	repeat   = flag.Int("repeat", 0, "run a plan that fails so often again, and count how often it fails in the same way")
	plans    = flag.String("plans", "testdata/once.txt", "the plans that TestOnce runs")
	dir      = flag.String("dir", "", "where worlds keep their files (default: in memory)")
	lines    = flag.Bool("lines", false, "print a line of JSON for each seed, for hamlet-lab simulate")
)

// temporary returns a directory, in memory where the system has such a place.
func temporary(t *testing.T) string {
	t.Helper()
	if dir, err := os.MkdirTemp(cmp.Or(*dir, "/dev/shm"), "simulate-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// beginning makes the beginning of all worlds, once.
func beginning(t *testing.T) *Beginning {
	t.Helper()
	b, err := begun(t)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var theBeginning struct {
	sync.Mutex
	*Beginning
	dir string
}

func begun(t *testing.T) (*Beginning, error) {
	theBeginning.Lock()
	defer theBeginning.Unlock()
	if theBeginning.Beginning != nil {
		return theBeginning.Beginning, nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(temporary(t)), "simulate-")
	if err != nil {
		return nil, err
	}
	theBeginning.dir = dir
	synctest.Test(t, func(*testing.T) { theBeginning.Beginning, err = NewBeginning(dir) })
	return theBeginning.Beginning, err
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // a world is small, and collecting it takes a tenth of the time
	code := m.Run()
	if dir := theBeginning.dir; dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// hangsAfter is how long a run may take by the wall clock. One takes a second.
const hangsAfter = 10 * time.Minute

// run runs a plan. What is left running in the bubble is a violation.
func run(t *testing.T, plan Plan, begin *Beginning, dir string) Outcome {
	t.Helper()
	var out Outcome
	var err error
	bubble(t, &out, plan.String, func() { out, err = Run(plan, begin, dir) })
	if err != nil { // of the simulator itself: a night goes on after it
		out.Violations = append(out.Violations, fmt.Sprintf("the simulator fails: %v", err))
		out.Kinds = append(out.Kinds, "the simulator fails")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return out
}

// bubble runs f in a bubble. Goroutines that f leaves behind are a violation. A bubble whose time does
// not pass ends the program with the stacks and what is said of it.
func bubble(t *testing.T, out *Outcome, of func() string, f func()) {
	t.Helper()
	hangs := time.AfterFunc(hangsAfter, func() {
		fmt.Fprintf(os.Stderr, "%sit hangs for %v:\n%s\n", of(), hangsAfter, stacks())
		os.Exit(1)
	})
	defer hangs.Stop()
	defer func() {
		if r := recover(); r != nil {
			left := stacks()
			out.Violations = append(out.Violations, fmt.Sprintf("goroutines are left: %v\n%s", r, left))
			out.Kinds = append(out.Kinds, "goroutines are left")
		}
	}()
	synctest.Test(t, func(*testing.T) { f() })
}

// A goroutine that is left is told with its stack, and does not end the tests.
func TestLeftGoroutinesAreTold(t *testing.T) {
	var out Outcome
	free := make(chan struct{})
	bubble(t, &out, func() string { return "" }, func() {
		never := make(chan struct{})
		go leftBehind(never, free)
	})
	close(free)
	if len(out.Violations) != 1 || !strings.Contains(out.Violations[0], "leftBehind") {
		t.Errorf("told: %q", out.Violations)
	}
}

func leftBehind(never, _ chan struct{}) { <-never }

// TestSeeds runs worlds that break as their seeds say.
func TestSeeds(t *testing.T) {
	begin := beginning(t)
	start := time.Now()
	next, ran := *from, 0
	var mu sync.Mutex
	var longest Outcome
	take := func() (seed uint64, more bool) {
		mu.Lock()
		defer mu.Unlock()
		if ran == *seeds || *lasts > 0 && time.Since(start) > *lasts {
			return 0, false
		}
		next++
		ran++
		return next - 1, true
	}
	t.Run("all", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
				t.Parallel()
				dir := temporary(t)
				for seed, more := take(); more; seed, more = take() {
					plan := Draw(seed)
					if *with != "" && !plan.has(Kind(*with)) {
						continue
					}
					out := try(t, plan, begin, filepath.Join(dir, "run"))
					mu.Lock()
					longest.Succession = max(longest.Succession, out.Succession)
					longest.Stop = max(longest.Stop, out.Stop)
					longest.Post = max(longest.Post, out.Post)
					longest.Ask = max(longest.Ask, out.Ask)
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d seeds from %d, %.0f a minute; the longest: %v until one learner was active, %v to end, %v for a label, "+
		"%v for a question", ran, *from, float64(ran)/time.Since(start).Minutes(),
		longest.Succession, longest.Stop, longest.Post, longest.Ask)
	t.Log("seeds in which each had its effect:", done.String())
	if never := done.never(); ran >= enough && *with == "" && len(never) > 0 {
		t.Errorf("in %d seeds none had an effect of %q", ran, never)
	}
}

// A tally counts the seeds in which something happened.
type tally struct {
	mu sync.Mutex
	of map[Kind]int
}

var done = tally{of: map[Kind]int{}}

// take counts what an outcome has.
func (c *tally) take(did []Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(did)
	for _, kind := range slices.Compact(did) {
		c.of[kind]++
	}
}

// enough is in how many seeds each kind of incident has its effect at least once.
const enough = 2000

// never lists the kinds that had no effect.
func (c *tally) never() (all []Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range kinds {
		if c.of[kind] == 0 {
			all = append(all, kind)
		}
	}
	return all
}

// String lists the counts.
func (c *tally) String() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		all = append(all, fmt.Sprintf("%s %d", what, c.of[what]))
	}
	return strings.Join(all, ", ")
}

// try runs a plan, and tells its story if it fails.
func try(t *testing.T, plan Plan, begin *Beginning, dir string) Outcome {
	t.Helper()
	out := run(t, plan, begin, dir)
	done.take(out.Did)
	said := program.Done{Seed: plan.Seed, Violations: out.Violations}
	for _, kind := range out.Did {
		said.Did = append(said.Did, string(kind))
	}
	if len(out.Violations) > 0 {
		if *repeat > 0 {
			repeats(t, plan, out, begin, dir)
		}
		if *minimise {
			plan = Minimise(plan, func(p Plan) bool {
				less := run(t, p, begin, dir)
				if len(less.Violations) > 0 {
					out = less
				}
				return len(less.Violations) > 0
			})
		}
		said.Plan, said.Story, said.Violations = plan.String(), out.Story, out.Violations
		t.Errorf("%s\n%s\n%s", &plan, strings.Join(out.Story, "\n"), strings.Join(out.Violations, "\n"))
	}
	if *lines {
		b, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s\n", b)
	}
	return out
}

// repeats counts how often a plan fails again, and in the same way.
func repeats(t *testing.T, plan Plan, before Outcome, begin *Beginning, dir string) {
	t.Helper()
	fails, same, story := 0, 0, 0
	for range *repeat {
		again := run(t, plan, begin, dir)
		if len(again.Violations) == 0 {
			continue
		}
		fails++
		if slices.Equal(again.Kinds, before.Kinds) {
			same++
		}
		if slices.Equal(again.Story, before.Story) {
			story++
		}
	}
	t.Logf("seed %d fails in %d of %d runs: in %d of them in the same way, in %d with the same story",
		plan.Seed, fails, *repeat, same, story)
}

// What once failed does not fail again. testdata/once.txt has the plans, and what mended them.
func TestOnce(t *testing.T) {
	text, err := os.ReadFile(*plans)
	if err != nil {
		t.Fatal(err)
	}
	begin, dir := beginning(t), temporary(t)
	for one := range strings.SplitSeq(string(text), "\n\n") {
		plan, err := Parse(one)
		if err != nil {
			t.Fatal(err)
		}
		if out := run(t, plan, begin, filepath.Join(dir, "run")); len(out.Violations) > 0 {
			if *repeat > 0 {
				repeats(t, plan, out, begin, filepath.Join(dir, "run"))
			}
			t.Errorf("%s\n%s\n%s", one, strings.Join(out.Story, "\n"), strings.Join(out.Violations, "\n"))
		}
	}
}

// Many worlds take no more memory than a few, and leave no goroutine behind.
func TestMemoryIsFlat(t *testing.T) {
	few, many := 3, 9
	if os.Getenv("HAMLET_NIGHTLY") != "" {
		few, many = 10, 300
	}
	begin, dir := beginning(t), temporary(t)
	var heap [2]uint64
	var goroutines [2]int
	for i, seed := 0, uint64(1); i < 2; i++ {
		for ; seed <= uint64([]int{few, many}[i]); seed++ {
			run(t, Draw(seed), begin, filepath.Join(dir, "run"))
		}
		runtime.GC()
		runtime.GC() // what pools held is gone after the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap[i], goroutines[i] = m.HeapAlloc, runtime.NumGoroutine()
	}
	t.Logf("after %d seeds %d KB and %d goroutines, after %d seeds %d KB and %d", few, heap[0]>>10, goroutines[0],
		many, heap[1]>>10, goroutines[1])
	// A world holds some 10 MB: one that is kept shows.
	if heap[1] > heap[0]+4<<20 {
		t.Errorf("the heap grows from %d to %d KB", heap[0]>>10, heap[1]>>10)
	}
	if goroutines[1] > goroutines[0] {
		t.Errorf("there were %d goroutines, and there are %d", goroutines[0], goroutines[1])
	}
}

// The alerts of a second model that is promoted are out. The seeds rarely promote one before labels are wrong.
func TestPromotedIsHeard(t *testing.T) {
	plan := Plan{Seed: 45, Incidents: []Incident{{At: 2 * time.Second, Kind: Shadow}, {At: 8 * time.Second, Kind: Promote}}}
	out := run(t, plan, beginning(t), filepath.Join(temporary(t), "run"))
	if len(out.Violations) > 0 {
		t.Errorf("%s\n%s", strings.Join(out.Story, "\n"), strings.Join(out.Violations, "\n"))
	} else if !slices.Contains(out.Did, Heard) {
		t.Errorf("no alert was to be out: what had an effect is %q", out.Did)
	}
}

// A plan is read as it was written, whatever it has.
func TestParse(t *testing.T) {
	seen := map[Kind]bool{}
	for seed := range uint64(3000) {
		p := Draw(seed)
		for _, i := range p.Incidents {
			seen[i.Kind] = true
		}
		got, err := Parse("# why\n" + p.String())
		if err != nil || got.String() != p.String() || !slices.Equal(got.Incidents, p.Incidents) || got.Rates != p.Rates ||
			got.Named != p.Named || got.Files != p.Files {
			t.Fatalf("%s is read as %s: %v", &p, &got, err)
		}
	}
	for _, kind := range kinds {
		if !seen[kind] {
			t.Errorf("no seed draws %q", kind)
		}
	}
	for _, bad := range []string{
		"", "seed 1", "seed x: a log in files; of the calls 0 fail, 0 lose their answer, 0 are slow, 0 stall",
		"seed 1: a log; of the calls 0 fail, 0 lose their answer, 0 are slow, 0 stall",
		"seed 1: a log in files; of the calls 0 fail, 0 lose their answer, 0 are slow, 0 stall\n1s nothing",
		"seed 1: a log in files; of the calls 0 fail, 0 lose their answer, 0 are slow, 0 stall\nkill learner-1",
		"seed 1: a log in files; of the calls 0 fail, 0 lose their answer, 0 are slow, 0 stall\n1s kill a b",
	} {
		if p, err := Parse(bad); err == nil {
			t.Errorf("%q is read as %s", bad, &p)
		}
	}
}
