package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"hamlet/cmd/internal/lab/product"
)

// servers are a real Kafka, NATS and Redis that deploy/servers runs. Kafka tells its
// clients an address of the caller's, so that they come through a proxy.
type servers struct {
	script string
	dir    string // the script's DIR
	env    []string

	kafka, nats, redis string // where the servers listen themselves

	mu sync.Mutex // held while the script runs: it is for one caller at a time
}

// scriptWithin bounds one run of the script. Kafka takes some 3 s to start, and ten times
// that on a machine that does much else; a first start fetches it from Maven.
const scriptWithin = 5 * time.Minute

// newServers starts the servers on free ports, with data in dir.
func newServers(script, dir, advertised string, ports *ports) (*servers, error) {
	info, err := os.Stat(script)
	if err != nil || info.IsDir() {
		return nil, fmt.Errorf("no script %s, which starts Kafka, NATS and Redis: run this in hamlet's source tree, "+
			"or name the tree's deploy/servers with --servers", script)
	}
	if script, err = filepath.Abs(script); err != nil {
		return nil, err
	}
	k, err := ports.pair()
	if err != nil {
		return nil, err
	}
	n, r := ports.one(), ports.one()
	_, advertisedPort, err := net.SplitHostPort(advertised)
	if err != nil {
		return nil, err
	}
	s := &servers{
		script: script, dir: dir,
		kafka: loopback(k), nats: loopback(n), redis: loopback(r),
		env: append(product.Environment(), "KAFKA_PORT="+strconv.Itoa(k), "KAFKA_ADVERTISED_PORT="+advertisedPort,
			"NATS_PORT="+strconv.Itoa(n), "REDIS_PORT="+strconv.Itoa(r), "START_TIMEOUT=240"),
	}
	return s, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// run runs the script.
func (s *servers) run(ctx context.Context, args ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runLocked(ctx, args...)
}

// runLocked runs the script. The caller holds mu.
func (s *servers) runLocked(ctx context.Context, args ...string) error {
	// An interrupt must not leave a server half started: the script goes on to its end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scriptWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.script, append(args, s.dir)...)
	cmd.Env = s.env
	cmd.SysProcAttr = inGroup(0)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%s %s: %w: %s", s.script, strings.Join(args, " "), err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}

// Start starts what does not run, and waits until all answer.
func (s *servers) Start(ctx context.Context) error { return s.run(ctx, "start") }

// Kill ends a server by SIGKILL.
func (s *servers) Kill(ctx context.Context, name target) error {
	return s.run(ctx, "kill", string(name))
}

// Restart stops a server in order and starts it again.
func (s *servers) Restart(ctx context.Context, name target) error {
	return s.run(ctx, "restart", string(name))
}

// Stop stops all in order.
func (s *servers) Stop() error { return s.run(context.Background(), "stop") }

// Pause stops a server by SIGSTOP until ctx ends or the hold is over.
func (s *servers) Pause(ctx context.Context, name target, hold time.Duration) error {
	text, err := os.ReadFile(filepath.Join(s.dir, string(name), "pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err := pause(pid); err != nil {
		return err
	}
	wait(ctx, hold)
	return resume(pid)
}

// copyTries is how often CopyRedis begins again. Redis rewrites its files once in some
// minutes, and takes less than a second.
const copyTries = 200

// CopyRedis copies Redis' data. What Redis wrote before the call is in the copy. Redis
// lists its files in a manifest. If that changed meanwhile, the copy begins again: a
// Redis with a file missing does not start.
func (s *servers) CopyRedis() error {
	for range copyTries {
		before := s.redisManifest()
		if err := os.RemoveAll(s.redisCopy()); err != nil {
			return err
		}
		err := os.CopyFS(s.redisCopy(), os.DirFS(s.redisData()))
		if err == nil && bytes.Equal(before, s.redisManifest()) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("redis rewrites its files all the time: they cannot be copied")
}

// redisManifest returns Redis' list of its files. It is empty before Redis 7.
func (s *servers) redisManifest() []byte {
	b, _ := os.ReadFile(filepath.Join(s.redisData(), "appendonlydir", "appendonly.aof.manifest"))
	return b
}

// SetRedisBack kills Redis and starts it with the last copy. Nobody else starts it
// between.
func (s *servers) SetRedisBack(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.runLocked(ctx, "kill", string(redis)); err != nil {
		return err
	}
	err := os.RemoveAll(s.redisData())
	if err == nil {
		err = os.CopyFS(s.redisData(), os.DirFS(s.redisCopy()))
	}
	return errors.Join(err, s.runLocked(ctx, "start"))
}

func (s *servers) redisData() string { return filepath.Join(s.dir, "redis", "data") }
func (s *servers) redisCopy() string { return filepath.Join(s.dir, "redis", "copy") }

// ports finds free ports on loopback, below those that the system gives to outgoing
// connections: a server must find its port free at each restart.
type ports struct{ next int }

const leastPort, mostPort = 20_000, 29_000

func newPorts() *ports { return &ports{next: leastPort + rand.IntN(mostPort-leastPort)} }

// one returns a free port, or 0 if there is none.
func (p *ports) one() int {
	for range mostPort - leastPort {
		if p.next++; p.next >= mostPort {
			p.next = leastPort
		}
		if l, err := net.Listen("tcp", loopback(p.next)); err == nil {
			l.Close()
			return p.next
		}
	}
	return 0
}

// pair returns a free port whose successor is free too.
func (p *ports) pair() (int, error) {
	for range 100 {
		first := p.one()
		if first > 0 && p.one() == first+1 {
			return first, nil
		}
	}
	return 0, errors.New("no two neighbouring ports are free on loopback")
}

func (p *ports) address() string { return loopback(p.one()) }
