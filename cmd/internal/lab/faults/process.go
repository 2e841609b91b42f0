package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"hamlet/cmd/internal/lab/product"
	"hamlet/cmd/internal/process/cli"
)

// endWithin is how long a process may take to end after SIGTERM. A learner's last save may
// take four seconds; a scorer answers what it has taken within 5 s.
const endWithin = 30 * time.Second

// A process runs one of hamlet's programs, again and again: it is started after each of
// its ends until it is halted. A supervisor such as systemd does the same.
type process struct {
	name   string
	launch launcher
	args   []string
	clock  wallClock // "" if it cannot be set
	http   string    // where /readyz is served
	log    string    // the file that its standard error is appended to
	died   func(name, how string)

	mu    sync.Mutex
	cmd   *exec.Cmd     // nil while it does not run
	ended chan struct{} // closed when cmd has ended
	held  bool          // a fault or a halt has ended it: do not start it
	ready bool          // it has been ready since its start

	stopped chan struct{}
	wg      sync.WaitGroup
}

// A launcher starts hamlet's programs in a process group of their own.
type launcher struct {
	hamlet string // its path
	group  int    // of the guard
}

// command returns the program that args name, with the rest of args.
func (l launcher) command(args []string, log *os.File) *exec.Cmd {
	cmd := product.Command(context.Background(), l.hamlet, args[0], args[1:]...)
	cmd.Env = product.Environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = inGroup(l.group)
	return cmd
}

// start runs the process until halt.
func (p *process) start() {
	p.stopped = make(chan struct{})
	p.wg.Go(p.supervise)
	p.wg.Go(p.watch)
}

func (p *process) supervise() {
	for {
		select {
		case <-p.stopped:
			return
		default:
		}
		ended, err := p.run()
		if err != nil {
			p.died(p.name, err.Error())
		}
		if ended != nil {
			<-ended
		}
		select {
		case <-p.stopped:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// run starts the process unless it is held.
func (p *process) run() (ended chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		return nil, nil
	}
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := p.launch.command(p.args, log)
	if p.clock != "" {
		cmd.Env = append(cmd.Env, clockVariable+"="+string(p.clock))
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	ended = make(chan struct{})
	p.cmd, p.ended, p.ready = cmd, ended, false
	p.wg.Go(func() {
		_ = cmd.Wait() // ProcessState has the result
		p.mu.Lock()
		held, ready := p.held, p.ready
		p.cmd = nil
		p.mu.Unlock()
		// One that never became ready may lack a server that it needs at its start. Kafka takes no record
		// of a clock that is an hour ahead; the process ends with that, and another learner goes on.
		if !held && ready && !p.refusedClock() {
			p.died(p.name, "ended by itself ("+cmd.ProcessState.String()+")")
		}
		close(ended)
	})
	return ended, nil
}

// refusedClock reports whether the last that the process said is that Kafka does not take the times of a clock
// that the campaign has set.
func (p *process) refusedClock() bool {
	if p.clock == "" {
		return false
	}
	said, err := os.ReadFile(p.log)
	said = bytes.TrimSpace(said)
	return err == nil && bytes.Contains(said[bytes.LastIndexByte(said, '\n')+1:], []byte("see to the clock of this machine"))
}

// watch asks the process whether it is ready.
func (p *process) watch() {
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-p.stopped:
			return
		case <-time.After(100 * time.Millisecond):
		}
		p.mu.Lock()
		cmd := p.cmd
		ask := cmd != nil && !p.ready
		p.mu.Unlock()
		if !ask {
			continue
		}
		response, err := client.Get("http://" + p.http + "/readyz")
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			p.mu.Lock()
			p.ready = p.cmd == cmd
			p.mu.Unlock()
		}
	}
}

// Ready reports whether the process runs and has been ready since its start.
func (p *process) Ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && p.ready
}

// hold says that the process is to end, and returns what runs.
func (p *process) hold() (*exec.Cmd, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
	return p.cmd, p.ended
}

// release lets the process start again.
func (p *process) release() {
	p.mu.Lock()
	p.held = false
	p.mu.Unlock()
}

// Kill ends the process by SIGKILL.
func (p *process) Kill() {
	if cmd, ended := p.hold(); cmd != nil {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	}
}

// Terminate ends the process by SIGTERM. The error says that it did not end in time.
func (p *process) Terminate() error {
	cmd, ended := p.hold()
	if cmd == nil {
		return nil
	}
	_ = terminate(cmd.Process) // it may have ended
	select {
	case <-ended:
		return nil
	case <-time.After(endWithin):
	}
	_ = cmd.Process.Kill()
	<-ended
	return fmt.Errorf("%s did not end within %v of SIGTERM", p.name, endWithin)
}

// Pause stops the process by SIGSTOP until ctx ends or the hold is over.
func (p *process) Pause(ctx context.Context, hold time.Duration) error {
	pid, err := p.freeze()
	if err != nil {
		return err
	}
	wait(ctx, hold)
	return resume(pid)
}

// Freeze stops the process by SIGSTOP.
func (p *process) Freeze() error {
	_, err := p.freeze()
	return err
}

func (p *process) freeze() (pid int, err error) {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd == nil {
		return 0, errNotRunning
	}
	return cmd.Process.Pid, pause(cmd.Process.Pid)
}

var errNotRunning = errors.New("the process does not run")

// halt ends the process for good, by SIGTERM if it is in order.
func (p *process) halt() {
	close(p.stopped)
	_ = p.Terminate() // it is killed if it does not end
	p.wg.Wait()
}

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// A guard is a process that ends what a campaign started if the campaign dies without
// doing so, for instance by SIGKILL. It leads the group of all processes, and reads a
// pipe whose other end only the campaign holds.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// startGuard starts the guard of the servers in dir; script is "" without servers. It unmounts the disk
// beside them, and removes the directory removed, if that is not empty.
func startGuard(script, dir, removed string) (*guard, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{GuardName, script, dir}
	if removed != "" {
		args = append(args, removed)
	}
	cmd := exec.Command(executable, args...)
	cmd.Env = product.Environment()
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

// GuardName is the first argument with which the laboratory's program is a guard.
const GuardName = "guard"

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
		if script == "" {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		_ = exec.CommandContext(ctx, script, "kill", name, dir).Run() // it may not run
		cancel()
	}
	fmt.Fprintln(stdio.Err, "the campaign died: its processes are killed")
	_ = unmount(mountPoint(filepath.Dir(dir))) // there may be none
	if len(args) > 2 {
		_ = os.RemoveAll(args[2])
	}
	return killGroup()
}
