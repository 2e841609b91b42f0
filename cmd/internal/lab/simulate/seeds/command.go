// Laboratory: whole hamlets in virtual time that break as seeds say.

// Package seeds is `hamlet-lab simulate`: it runs the worlds of package simulate, seed after seed, and
// keeps what came of them. Virtual time needs a test, so the worlds are in a test binary, which is
// built first.
package seeds

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/progress"
)

// Done is what came of a seed: a line that the test binary prints.
type Done struct {
	Seed       uint64   `json:"seed"`
	Violations []string `json:"violations,omitempty"` // none: all held
	Plan       string   `json:"plan,omitempty"`       // the smallest that was found
	Story      []string `json:"story,omitempty"`
	Did        []string `json:"did,omitempty"` // the incidents that had their effect, each once
}

// A Night is what one run has done: a line of the file that --keep names.
type Night struct {
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	From    uint64    `json:"from"`
	Seeds   uint64    `json:"seeds"` // all from From on
	Failed  []Done    `json:"failed,omitempty"`

	// In how many of the seeds each kind of incident had its effect, at least once.
	Did map[string]int `json:"did,omitempty"`
}

// effects lists in how many seeds each kind of incident had its effect.
func (n *Night) effects() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(n.Did)) {
		all = append(all, fmt.Sprintf("%s %d", kind, n.Did[kind]))
	}
	return strings.Join(all, ", ")
}

// Command is `hamlet-lab simulate`.
type Command struct {
	Seeds  int           `help:"Run so many seeds at most." default:"1000" placeholder:"N"`
	From   *uint64       `help:"The first seed (default: where the last run of --keep has ended, or 1)." placeholder:"S"`
	For    time.Duration `help:"Begin no seed after this long (default: until all have run)." placeholder:"D"`
	Keep   string        `help:"Append what was done to this file, and go on from there." type:"path" placeholder:"FILE"`
	Source string        `help:"Hamlet's source tree, of which the simulator is built." default:"." type:"path" placeholder:"DIR"`
	Binary string        `help:"The simulator, built by go test -c (default: build it)." type:"path" placeholder:"FILE"`
}

// Help is shown by kong below the flags.
func (Command) Help() string {
	return `Examples:
  hamlet-lab simulate                          seeds 1 to 1000
  hamlet-lab simulate --from 4711 --seeds 1    one of them again
  hamlet-lab simulate --for 2h --keep nights   a night; the next one goes on

Each seed is a whole hamlet in one process and in virtual time: ingests, learners,
scorers and clients, whose calls of log, store, alerts and questions are slow,
fail, or lose their answer as the seed says, and incidents such as the end of a
process or the loss of power. Then all is healed, and must be right: the model is
the replay of the log, nothing acknowledged is lost, every alert is out, exactly
one learner is active, nothing hangs.

A seed that fails prints its plan, made as small as it still fails, and its story.
It fails (exit status 1) if a seed does. Without --binary it needs Go.`
}

const simulator = "./cmd/internal/lab/simulate"

// Run runs the seeds, and keeps what was done, also if it is interrupted.
func (c *Command) Run(ctx context.Context, stdio cli.IO) error {
	if c.Seeds <= 0 {
		return cli.Usagef("--seeds: %d is not above zero", c.Seeds)
	}
	if c.For < 0 {
		return cli.Usagef("--for: %v is below zero", c.For)
	}
	night := Night{Began: time.Now().UTC().Truncate(time.Second), From: 1, Did: map[string]int{}}
	if c.Keep != "" {
		next, err := goesOn(c.Keep)
		if err != nil {
			return err
		}
		night.From = next
	}
	if c.From != nil {
		night.From = *c.From
	}
	dir, err := inMemory()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := c.Binary
	if binary == "" {
		binary = filepath.Join(dir, "simulate.test")
		if err := c.build(ctx, binary, stdio.Err); err != nil {
			return err
		}
	}
	began := time.Now()
	ran := c.run(ctx, binary, dir, &night, stdio)
	night.Seconds = time.Since(began).Seconds()
	fmt.Fprintf(stdio.Out, "%d seeds from %d in %v, %.0f a minute: %d failed\n", night.Seeds, night.From,
		time.Since(began).Round(time.Second), float64(night.Seeds)/time.Since(began).Minutes(), len(night.Failed))
	if len(night.Did) > 0 {
		fmt.Fprintf(stdio.Out, "seeds in which each had its effect: %s\n", night.effects())
	}
	if c.Keep != "" && night.Seeds > 0 {
		ran = errors.Join(ran, night.keep(c.Keep))
	}
	if n := len(night.Failed); n > 0 {
		ran = errors.Join(ran, fmt.Errorf("simulate: %d seeds failed", n))
	}
	return ran
}

// inMemory makes a directory, in memory where the system has such a place.
func inMemory() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "simulate-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "simulate-")
}

func (c *Command) build(ctx context.Context, to string, out io.Writer) error {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", to, simulator)
	build.Dir, build.Stdout, build.Stderr = c.Source, out, out
	if err := build.Run(); err != nil {
		return fmt.Errorf("build %s in %s: %w", simulator, c.Source, err)
	}
	return nil
}

// run runs the binary, and notes what it has done in the night: the seeds up to the first that is not done.
func (c *Command) run(ctx context.Context, binary, dir string, night *Night, stdio cli.IO) error {
	program := exec.CommandContext(ctx, binary, "-test.run=^TestSeeds$", "-test.timeout=0", "-lines", "-dir="+dir,
		fmt.Sprint("-seeds=", c.Seeds), fmt.Sprint("-from=", night.From), fmt.Sprint("-for=", c.For))
	program.Dir, program.Stderr, program.WaitDelay = dir, stdio.Err, time.Minute
	lines, err := program.StdoutPipe()
	if err != nil {
		return err
	}
	if err := program.Start(); err != nil {
		return fmt.Errorf("start the simulator: %w", err)
	}
	done := map[uint64]bool{}
	began, bar := time.Now(), progress.NewLine(stdio.Err)
	defer bar.Clear()
	var said []string // what is no line of a seed, the last of it
	from := bufio.NewScanner(lines)
	from.Buffer(nil, 64<<20)
	for from.Scan() {
		var one Done
		if !bytes.HasPrefix(from.Bytes(), []byte(`{"seed"`)) || json.Unmarshal(from.Bytes(), &one) != nil {
			said = append(said[max(0, len(said)-50):], from.Text())
			continue
		}
		done[one.Seed] = true
		slices.Sort(one.Did)
		for _, kind := range slices.Compact(one.Did) {
			night.Did[kind]++
		}
		one.Did = nil
		for done[night.From+night.Seeds] {
			delete(done, night.From+night.Seeds)
			night.Seeds++
		}
		if len(one.Violations) > 0 {
			bar.Clear()
			fmt.Fprintf(stdio.Out, "%s%s\n%s\n\n", one.Plan, strings.Join(one.Story, "\n"), strings.Join(one.Violations, "\n"))
			one.Story = nil
			night.Failed = append(night.Failed, one)
		}
		bar.Draw(fmt.Sprintf("%d of %d seeds from %d", night.Seeds, c.Seeds, night.From),
			fmt.Sprintf("%d failed", len(night.Failed)),
			fmt.Sprintf("%.0f a minute", float64(night.Seeds)/time.Since(began).Minutes()))
	}
	err = errors.Join(from.Err(), program.Wait())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(night.Failed) > 0 {
		return nil // it says so
	}
	if err != nil {
		return fmt.Errorf("the simulator: %w\n%s", err, strings.Join(said, "\n"))
	}
	return nil
}

// keep appends the night to a file.
func (n *Night) keep(path string) error {
	// What failed beyond the seeds that are done is run again by the next night.
	n.Failed = slices.DeleteFunc(n.Failed, func(d Done) bool { return d.Seed >= n.From+n.Seeds })
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep what was done: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// goesOn returns the seed after the last that a file has kept; 1 if there is none.
func goesOn(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	next := uint64(1)
	for number, line := range bytes.Split(b, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		var n Night
		if err := json.Unmarshal(line, &n); err != nil {
			return 0, fmt.Errorf("%s, line %d: %w", path, number+1, err)
		}
		next = n.From + n.Seeds
	}
	return next, nil
}
