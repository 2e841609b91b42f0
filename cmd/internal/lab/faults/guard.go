package faults

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"hamlet/cmd/internal/cli"
)

// A guard is a process that ends what a campaign started if the campaign dies without
// doing so, for instance by SIGKILL. It leads the group of all processes, and reads a
// pipe whose other end only the campaign holds.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// startGuard starts the guard of the servers in dir. It removes the directory removed,
// if that is not empty.
func startGuard(executable, script, dir, removed string) (*guard, error) {
	args := []string{"lab", "process", "guard", script, dir}
	if removed != "" {
		args = append(args, removed)
	}
	cmd := exec.Command(executable, args...)
	cmd.Env = plainEnvironment()
	cmd.SysProcAttr = guardAttributes()
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	return &guard{cmd, pipe}, nil
}

// group is the group of the processes that the guard ends.
func (g *guard) group() int { return g.cmd.Process.Pid }

// dismiss ends the guard: everything has been stopped in order.
func (g *guard) dismiss() error {
	if _, err := g.pipe.Write([]byte(dismissed)); err != nil {
		return fmt.Errorf("the guard: %w", err)
	}
	g.pipe.Close()
	return g.cmd.Wait()
}

const dismissed = "dismissed"

// Guard is the guard's own program: guard SCRIPT DIR [REMOVED]. It waits until its
// standard input ends. Unless it was dismissed there, it kills the servers in DIR and
// its process group, and removes REMOVED.
func Guard(_ context.Context, args []string, stdio cli.IO) error {
	if len(args) < 2 {
		return cli.Usagef("guard: SCRIPT DIR [REMOVED] is wanted")
	}
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	words, _ := io.ReadAll(os.Stdin) // what was said before the campaign died
	if string(words) == dismissed {
		return nil
	}
	script, dir := args[0], args[1]
	for _, name := range []string{"kafka", "nats", "redis"} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		_ = exec.CommandContext(ctx, script, "kill", name, dir).Run() // it may not run
		cancel()
	}
	fmt.Fprintln(stdio.Err, "the campaign died: its processes are killed")
	if len(args) > 2 {
		_ = os.RemoveAll(args[2])
	}
	return killGroup()
}
