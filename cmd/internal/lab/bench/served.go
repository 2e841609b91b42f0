package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hamlet/cmd/internal/lab/product"
)

// A server is an adapter that stays alive and answers line by line. Its processes are a
// group of their own.
type server struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *lockedTail
	cpu    time.Duration // of the group, after the last answer
	killed atomic.Bool   // an answer was not waited for
}

// startServer starts an adapter and waits until it is ready. ctx bounds its life.
func (o *externalFilter) startServer(ctx context.Context) (*server, error) {
	cmd := exec.CommandContext(ctx, o.command[0], append(o.command[1:len(o.command):len(o.command)], "serve")...)
	s := &server{cmd: cmd, stderr: new(lockedTail)}
	cmd.Dir, cmd.Stderr = o.dir, s.stderr
	inGroup(cmd)
	cmd.Cancel = func() error { return s.kill() }
	cmd.WaitDelay = time.Second
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("filter %s: %w", o.name, err)
	}
	s.in, s.out = in, bufio.NewReaderSize(out, maxOutput)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("filter %s: start: %w", o.name, err)
	}
	if line, err := s.answer(ctx, o.timeout); err != nil || string(line) != "ready" {
		if err == nil {
			err = fmt.Errorf("it printed %q, not ready", clip(line))
		}
		return nil, fmt.Errorf("filter %s: start: %w", o.name, s.fail(err))
	}
	s.cpu = groupTime(cmd.Process.Pid)
	return s, nil
}

// ask writes a command and returns the answer and the CPU time that the group has used.
func (s *server) ask(ctx context.Context, timeout time.Duration, words ...string) ([]byte, time.Duration, error) {
	if _, err := io.WriteString(s.in, strings.Join(words, " ")+"\n"); err != nil {
		return nil, 0, err
	}
	line, err := s.answer(ctx, timeout)
	if err != nil {
		return nil, 0, err
	}
	before := s.cpu
	s.cpu = groupTime(s.cmd.Process.Pid)
	return line, max(s.cpu-before, 0), nil
}

// answer reads a line. It kills the group at the deadline, so that the read ends.
func (s *server) answer(ctx context.Context, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no end after %v (--filter-timeout)", timeout))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		s.killed.Store(true)
		_ = s.kill()
	})
	line, err := s.out.ReadSlice('\n')
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it has ended")
	}
	return bytes.TrimSpace(line), err
}

// fail ends the adapter, and adds to err what it said on its standard error.
func (s *server) fail(err error) error {
	_ = s.in.Close()
	done := time.AfterFunc(killAfter, func() { _ = s.kill() })
	_ = s.cmd.Wait() // its status says less than what it said
	done.Stop()
	_ = s.kill() // what it has left behind
	if said := bytes.TrimSpace(s.stderr.bytes()); len(said) > 0 {
		return fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// killAfter is how long an adapter may take to end.
const killAfter = 10 * time.Second

func (s *server) kill() error { return killGroup(s.cmd) }

// stop ends the adapter and returns the memory that its group had.
func (s *server) stop() (memory int64, err error) {
	memory = groupMemory(s.cmd.Process.Pid)
	_ = s.in.Close()
	done := time.AfterFunc(killAfter, func() { _ = s.kill() })
	defer done.Stop()
	if err := s.cmd.Wait(); err != nil && !s.killed.Load() {
		return memory, fmt.Errorf("end: %w", err)
	}
	return memory, nil
}

// groupTime is the CPU time that the living processes of a group, and the children that
// they waited for, have used. It has a resolution of 10 ms. Without /proc it is 0.
func groupTime(group int) (sum time.Duration) {
	eachOfGroup(group, func(_ string, fields []string) {
		for _, f := range fields[11:15] { // utime, stime, cutime, cstime
			ticks, _ := strconv.ParseInt(f, 10, 64)
			sum += time.Duration(ticks) * (time.Second / product.TicksPerSecond)
		}
	})
	return sum
}

// groupMemory is the resident memory of a group in bytes. Pages that processes share count
// once. Without /proc it is 0.
func groupMemory(group int) (sum int64) {
	eachOfGroup(group, func(dir string, _ []string) {
		text, err := os.ReadFile(dir + "/smaps_rollup")
		if err != nil {
			return // it has ended
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "Pss:" {
				kib, _ := strconv.ParseInt(f[1], 10, 64)
				sum += kib << 10
			}
		}
	})
	return sum
}

// eachOfGroup calls f for each process of a group, with its directory and the fields of its
// stat from the state on.
func eachOfGroup(group int, f func(dir string, fields []string)) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, p := range processes {
		if name := p.Name(); name[0] < '0' || name[0] > '9' {
			continue
		}
		// An error is that of a process that has ended.
		if fields, err := product.Stat(p.Name()); err == nil && fields[2] == strconv.Itoa(group) {
			f("/proc/"+p.Name(), fields)
		}
	}
}

// A lockedTail is a tail that one goroutine writes and another reads.
type lockedTail struct {
	mu sync.Mutex
	t  tail
}

func (l *lockedTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.t.Write(p)
}

func (l *lockedTail) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.t.b)
}
