package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hamlet/cmd/internal/lab/product"
)

// A service is a process of hamlet, or a server of the caller's.
type service struct {
	name  string
	pid   int
	http  string        // where hamlet serves its metrics
	ended chan struct{} // closed when hamlet has ended

	before float64 // processor time up to mark, in seconds
}

// startService starts a command or a service of hamlet and waits until it answers 200 at a path. It
// ends with ctx.
func startService(ctx context.Context, dir, name, path string, args ...string) (*service, error) {
	hamlet, err := product.Path()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &service{name: name, http: product.FreeAddress(), ended: make(chan struct{})}
	cmd := product.Command(ctx, hamlet, name, append([]string{"--http", s.http}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, product.Environment()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.pid = cmd.Process.Pid
	var end error
	go func() {
		end = cmd.Wait()
		close(s.ended)
	}()
	for {
		select {
		case <-s.ended:
			said, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("%s ended before it was ready: %w\n%s", name, errors.Join(end, ctx.Err()),
				bytes.TrimSpace(said))
		case <-time.After(50 * time.Millisecond):
		}
		if response, err := http.Get("http://" + s.http + path); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return s, nil
			}
		}
	}
}

// learnt waits until n labels are learnt and saved, and returns how many saves there were.
func (s *service) learnt(ctx context.Context, client *http.Client, n int) (saves float64, err error) {
	for {
		m, err := product.Metrics(ctx, client, s.http)
		if err != nil {
			return 0, err
		}
		if m["hamlet_learner_records_total"] >= float64(n) && m["hamlet_learner_unsaved_records"] == 0 {
			return m["hamlet_learner_save_seconds_count"], nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(200 * time.Millisecond): // a scrape takes a millisecond of the learner
		}
	}
}

// serversOf returns the processes that deploy/servers runs in dir.
func serversOf(dir string) (all []*service) {
	for _, name := range []string{"kafka", "nats", "redis"} {
		text, err := os.ReadFile(filepath.Join(dir, name, "pid"))
		if err != nil {
			continue
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			all = append(all, &service{name: name, pid: pid})
		}
	}
	return all
}

// mark notes what the process has used until now.
func (s *service) mark() (err error) {
	s.before = 0
	s.before, _, err = s.since()
	return err
}

// since returns the processor time since mark in seconds, and the most memory since the start in
// bytes. Without /proc there is an error.
func (s *service) since() (cpu, memory float64, err error) {
	pid := strconv.Itoa(s.pid)
	fields, err1 := product.Stat(pid)
	status, err2 := os.ReadFile("/proc/" + pid + "/status")
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("what %s uses: %w", s.name, err)
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "VmHWM:" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			memory = kib * 1024
		}
	}
	return (user+system)/product.TicksPerSecond - s.before, memory, nil
}
