package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
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
	http   string // where /readyz is served
	log    string // the file that its standard error is appended to
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
	executable string
	group      int // of the guard
}

// command returns `hamlet lab process PROGRAM args`.
func (l launcher) command(args []string, log *os.File) *exec.Cmd {
	cmd := exec.Command(l.executable, append([]string{"lab", "process"}, args...)...)
	cmd.Env = plainEnvironment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = inGroup(l.group)
	return cmd
}

// plainEnvironment is the environment without hamlet's own variables: the programs are
// configured by flags alone.
func plainEnvironment() (plain []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HAMLET_") {
			plain = append(plain, v)
		}
	}
	return plain
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
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	ended = make(chan struct{})
	p.cmd, p.ended, p.ready = cmd, ended, false
	p.wg.Go(func() {
		_ = cmd.Wait() // ProcessState has the result
		p.mu.Lock()
		asked, ready := p.held, p.ready
		p.cmd = nil
		p.mu.Unlock()
		// One that never became ready may lack a server that it needs at its start.
		if !asked && ready {
			p.died(p.name, "ended by itself ("+cmd.ProcessState.String()+")")
		}
		close(ended)
	})
	return ended, nil
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
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd == nil {
		return errNotRunning
	}
	if err := pause(cmd.Process.Pid); err != nil {
		return err
	}
	wait(ctx, hold)
	return resume(cmd.Process.Pid)
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
