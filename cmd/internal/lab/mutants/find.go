package mutants

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// simulator is the package of the simulated worlds.
const simulator = "./cmd/internal/lab/simulate"

// A Finder runs laws and the simulator on a tree with a mutant.
type Finder struct {
	Root  string        // of the module
	Seeds int           // that the simulator runs; 0: it runs none
	Law   time.Duration // that a law may take; what lasts longer hangs
	All   time.Duration // that the simulator may take
}

// A Find is who found a mutant.
type Find struct {
	By    string // the test that failed first; "" nobody did
	Seed  int    // of the simulator's world that failed; 0: a law found it
	Said  string // what the failure said, on a line
	After time.Duration
	CPU   time.Duration // that compiling and running took: on a busy machine After says little
}

// Find compiles the tests with the mutant, and runs them until one fails. A mutant that does not compile is
// an error. A nil mutant is the tree as it is.
func (f *Finder) Find(ctx context.Context, m *Mutant, laws []Law) (found Find, err error) {
	began, cpu := time.Now(), time.Duration(0)
	defer func() { found.After, found.CPU = time.Since(began), found.CPU+cpu }()
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return found, err
	}
	defer os.RemoveAll(dir)
	overlay, err := f.overlay(m, dir)
	if err != nil {
		return found, err
	}
	built := map[string]string{}
	build := func(path string) (string, error) {
		if built[path] == "" {
			built[path] = filepath.Join(dir, fmt.Sprint("test-", len(built)))
			compile := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay,
				"-o", built[path], path)
			compile.Dir = f.Root
			out, err := compile.CombinedOutput()
			cpu += used(compile)
			if err != nil {
				return "", fmt.Errorf("%s does not compile: %w\n%s", path, err, out)
			}
		}
		return built[path], nil
	}
	for _, law := range laws {
		program, err := build(law.Package)
		if err != nil {
			return found, err
		}
		run := exec.CommandContext(ctx, program, "-test.run", law.Tests, "-test.timeout", f.Law.String(), "-test.failfast")
		run.Env = append(os.Environ(), "RAPID_NOFAILFILE=true") // else what failed stays in the tree
		run.Dir = filepath.Join(f.Root, law.Package)
		out, err := run.CombinedOutput()
		cpu += used(run)
		switch {
		case ctx.Err() != nil:
			return found, ctx.Err()
		case err != nil:
			found.By, found.Said = failed(out)
			found.By = strings.TrimPrefix(law.Package, "./") + " " + found.By
			return found, nil
		case bytes.Contains(out, []byte("no tests to run")):
			return found, fmt.Errorf("%v: there are no tests to run", law)
		}
	}
	if f.Seeds == 0 {
		return found, nil
	}
	program, err := build(simulator)
	if err != nil {
		return found, err
	}
	return f.simulate(ctx, program)
}

// used returns how much of a processor a command that has ended took, with the commands that it ran.
func used(c *exec.Cmd) time.Duration {
	if c.ProcessState == nil {
		return 0
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}

// simulate runs worlds until one fails.
func (f *Finder) simulate(ctx context.Context, program string) (found Find, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run := exec.CommandContext(ctx, program, "-test.run", "^TestSeeds$", "-test.v", "-test.timeout", f.All.String(),
		"-seeds", strconv.Itoa(f.Seeds), "-minimise=false")
	run.Dir = filepath.Join(f.Root, simulator)
	pipe, err := run.StdoutPipe()
	if err != nil {
		return found, err
	}
	var crash bytes.Buffer
	run.Stderr = &crash
	if err := run.Start(); err != nil {
		return found, err
	}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if seed := failedSeed.FindStringSubmatch(lines.Text()); seed != nil && found.By == "" {
			found.By = "simulator"
			found.Seed, _ = strconv.Atoi(seed[1])
		}
		if _, what, ok := strings.Cut(lines.Text(), "VIOLATION: "); ok && found.By != "" {
			found.Said = what
			cancel()
			break
		}
	}
	_, _ = io.Copy(io.Discard, pipe)
	err = run.Wait()
	found.CPU = used(run)
	switch {
	case found.By != "":
		return found, nil
	case ctx.Err() != nil:
		return found, ctx.Err()
	case err != nil:
		_, said := failed(crash.Bytes())
		found.By, found.Said = "simulator", said
	}
	return found, nil
}

var (
	failedSeed = regexp.MustCompile(`\bseed (\d+): `)
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	failedLine = regexp.MustCompile(`(?m)^ +(\S+\.go:\d+: .*)$`)
	panicked   = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)$`)
	running    = regexp.MustCompile(`(?m)^\t+(Test\S+) \(`)
)

// failed returns which test failed first, and what it said.
func failed(out []byte) (test, said string) {
	first := func(pattern *regexp.Regexp) string {
		if is := pattern.FindSubmatch(out); is != nil {
			return string(is[1])
		}
		return ""
	}
	test, said = first(failedTest), first(failedLine)
	if broke := first(panicked); broke != "" {
		said = broke
	}
	if test == "" {
		test = first(running) // it hung
	}
	return test, said
}

// overlay writes the mutant's files, and the file that -overlay takes.
func (f *Finder) overlay(m *Mutant, dir string) (path string, err error) {
	var replace struct{ Replace map[string]string }
	replace.Replace = map[string]string{}
	if m != nil {
		changed, err := m.Plant(f.Root)
		if err != nil {
			return "", err
		}
		for name, text := range changed {
			to := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace.Replace), filepath.Base(name)))
			if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
				return "", err
			}
			replace.Replace[filepath.Join(f.Root, name)] = to
		}
	}
	b, err := json.Marshal(replace)
	path = filepath.Join(dir, "overlay.json")
	return path, errors.Join(err, os.WriteFile(path, b, 0o600))
}
