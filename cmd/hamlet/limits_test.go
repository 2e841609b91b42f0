package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/program"
)

// The environment variables limitFiles and limitSize make this test binary a program
// that may have so many files open, or write files of so many bytes.
const (
	limitFiles = "HAMLET_TEST_LIMIT_FILES"
	limitSize  = "HAMLET_TEST_LIMIT_SIZE"
)

// TestProgramUnderLimit is the process that limited starts: its arguments are those
// behind --, and the first names the program. In any other run it does nothing.
func TestProgramUnderLimit(t *testing.T) {
	limits := 0
	for name, resource := range map[string]int{limitFiles: syscall.RLIMIT_NOFILE, limitSize: syscall.RLIMIT_FSIZE} {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			signal.Ignore(syscall.SIGXFSZ)
			if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
				t.Fatal(err)
			}
			limits++
		}
	}
	if limits == 0 {
		return
	}
	args := os.Args[1+slices.Index(os.Args, "--"):]
	programs := map[string]func(context.Context, []string, cli.IO) error{
		"hamlet": run, "ingest": program.Ingest, "learner": program.Learner, "scorer": program.Scorer,
	}
	cli.Main(args[0], func(ctx context.Context, _ []string, stdio cli.IO) error {
		return programs[args[0]](ctx, args[1:], stdio)
	})
}

// limited runs a program under a limit. It returns its exit status, -1 if it did not
// end in time, and what it wrote.
func limited(t *testing.T, limit string, n int, args ...string) (status int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], append([]string{"-test.run=^TestProgramUnderLimit$", "--"}, args...)...)
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", limit, n))
	var stdout, stderr bytes.Buffer
	child.Stdout, child.Stderr = &stdout, &stderr
	err := child.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return child.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// Too few open files are an error at the start, not a program that never works.
func TestTooFewOpenFiles(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"hamlet up --once --limit=10", "learner --kafka=127.0.0.1:1 --redis=127.0.0.1:1",
		"scorer --nats=nats://127.0.0.1:1 --redis=127.0.0.1:1", "ingest --kafka=127.0.0.1:1 --http=127.0.0.1:0 --token=t",
	} {
		status, _, errs := limited(t, limitFiles, 24, strings.Fields(command)...)
		if status != cli.StatusFailed || !strings.Contains(errs, "the limit is 24: raise it (ulimit -n 1024") {
			t.Errorf("%s: status %d, %s", command, status, errs)
		}
	}
}

// A disk that is full ends up --once with an error that names the folder. With space again, the same
// command goes on to the model of a run that was never stopped.
func TestFullDiskEndsUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1)) // does not compress
	var texts strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&texts, "%s\t%016x %016x %016x %016x\n", []string{"spam", "ham"}[i%2], random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64())
	}
	file := filepath.Join(t.TempDir(), "texts.txt")
	if err := os.WriteFile(file, []byte(texts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := mustUp(t, "--format=text", file)
	for _, c := range []struct {
		full  string
		bytes int
		says  string
	}{
		{"models", 8 << 10, "file too large"},              // less than a chunk
		{"logs", 60 << 10, "no space is left for the log"}, // less than the log
	} {
		data := filepath.Join(t.TempDir(), "data")
		args := []string{"--format=text", "--data", data, file}
		if c.full == "models" {
			args = append(args, "--limit=20")
		}
		command := append([]string{"hamlet", "up", "--once", "--json", "--experts=lean", "--table-bits=8", "--no-alarms", "--log-level=error", "--save-every=50ms"}, args...)
		status, out, errs := limited(t, limitSize, c.bytes, command...)
		if status != cli.StatusFailed || !strings.Contains(errs, filepath.Join(data, c.full)) || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("%s: status %d, printed %q, said %s", c.full, status, out, errs)
		}
		if again := mustUp(t, "--format=text", "--data", data, file); again.ModelSHA256 != whole.ModelSHA256 {
			t.Errorf("%s: with space again it has model %s, want %s", c.full, again.ModelSHA256, whole.ModelSHA256)
		}
	}
}
