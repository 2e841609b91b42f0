package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// RedisOptions say how to run the in-process Redis. Zero fields mean defaults.
type RedisOptions struct {
	Dir  string       // a directory of its own for the snapshot, created if missing; empty: in memory
	Addr string       // host:port to listen on; default 127.0.0.1:0, a free port
	Log  *slog.Logger // says when a snapshot in the background fails; nil: silent
}

// A Redis is a miniredis, whose keys expire by the clock. It knows the commands
// and the Lua that hamlet uses, not all of Redis; a command has at most 64 MiB.
//
// It survives what is no command, and clients that stop in the middle of one or do
// not read its replies. Whoever may send it commands can still change and delete
// everything, and a script runs until it ends: keep it on loopback.
//
// With a directory, it writes a snapshot of all its data there at most a second
// after a change, and at Close. A process that dies loses what came after the last
// snapshot; a learner notices by the position in its checkpoint and reads that
// part of the log again.
type Redis struct {
	mini     *miniredis.Miniredis
	gate     *gate
	listener net.Listener
	path     string // of the snapshot; empty: in memory
	log      *slog.Logger
	unlock   func() error

	ctx       context.Context // ends at Close
	stop      context.CancelFunc
	goroutine sync.WaitGroup

	saving sync.Mutex // one snapshot at a time
	saved  uint64     // gate.writes() that the file covers

	once sync.Once
	err  error
}

const (
	snapshotName     = "redis.snapshot"
	snapshotInterval = time.Second

	// snapshotShare bounds the share of the time that snapshots take: the next one
	// waits for this many times the duration of the last.
	snapshotShare = 4
)

// StartRedis starts a server and returns when it answers, with what its snapshot
// holds. The error names the address if its port is taken, the directory if
// another process uses it, and the file if the snapshot in it is damaged.
func StartRedis(opts RedisOptions) (*Redis, error) {
	r, err := newRedis(opts)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if r.listener, err = listen("tcp", opts.Addr); err != nil {
		return nil, errors.Join(fmt.Errorf("start redis: %w", err), r.Close())
	}
	r.goroutine.Go(func() { r.accept(r.ctx) })
	return r, nil
}

// newRedis returns a server that does not listen yet, with its data.
func newRedis(opts RedisOptions) (*Redis, error) {
	r := &Redis{
		mini:   miniredis.NewMiniRedis(),
		log:    opts.Log,
		unlock: func() error { return nil },
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.mini.ClockTTL(true)
	if opts.Dir != "" {
		dir, err := filepath.Abs(opts.Dir)
		if err != nil {
			return nil, err
		}
		if r.unlock, err = LockDir(dir); err != nil {
			return nil, err
		}
		r.path = filepath.Join(dir, snapshotName)
		if err := errors.Join(sweep(r.path), r.load()); err != nil {
			return nil, errors.Join(err, r.unlock())
		}
	}
	// A first connection makes miniredis start without a listener of its own, so
	// that no command comes in before the data and the gate are in place.
	first, err := r.mini.Dial()
	if err != nil {
		return nil, errors.Join(err, r.unlock())
	}
	r.gate = newGate(r.mini.Server())
	r.mini.Server().SetPreHook(r.gate.pass)
	if err := first.Close(); err != nil {
		return nil, errors.Join(err, r.unlock())
	}
	ctx, stop := context.WithCancel(context.Background())
	r.ctx, r.stop = ctx, stop
	if r.path != "" {
		r.goroutine.Go(func() { r.snapshots(ctx) })
	}
	return r, nil
}

// Addr returns the host:port that the server listens on.
func (r *Redis) Addr() string { return r.listener.Addr().String() }

// Close ends the clients' connections, writes a last snapshot if anything
// changed, and gives the directory back.
func (r *Redis) Close() error {
	r.once.Do(func() {
		if r.listener != nil {
			r.err = r.listener.Close()
		}
		r.stop()
		r.goroutine.Wait()
		r.mini.Close() // waits for commands under way
		r.err = errors.Join(r.err, r.Snapshot(), r.unlock())
	})
	return r.err
}

// acceptPause is how long accept waits after a failure, such as too many open
// files: as long as net/http waits at most.
const acceptPause = time.Second

// accept serves connections until ctx ends and the listener is closed.
func (r *Redis) accept(ctx context.Context) {
	server := r.mini.Server()
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // clients try again, so do we
			r.log.Warn("redis: accept", "error", err)
			pause := time.NewTimer(acceptPause)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
			continue
		}
		server.ServeConn(&commandConn{Conn: conn})
	}
}

// snapshots writes a snapshot whenever there is something new, until ctx ends.
func (r *Redis) snapshots(ctx context.Context) {
	timer := time.NewTimer(snapshotInterval)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		err := r.Snapshot()
		if err != nil && !failing { // once, not every second
			r.log.Error("redis: changes are in memory only until a snapshot succeeds", "error", err)
		}
		failing = err != nil
		timer.Reset(max(snapshotInterval, snapshotShare*time.Since(start)))
	}
}

// Snapshot writes all data to the directory, as they were at one moment between
// two commands, and returns when they are on disk. It does nothing if nothing
// changed since the last one, or without a directory. Commands wait only while
// references are collected, not while the file is written.
func (r *Redis) Snapshot() error {
	if r.path == "" {
		return nil
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	var (
		writes uint64
		s      snapshot
		err    error
	)
	r.gate.between(func() {
		if writes = r.gate.writes(); writes != r.saved {
			s, err = collect(r.mini, time.Now())
		}
	})
	if err == nil && writes != r.saved {
		err = s.write(r.path)
	}
	if err != nil {
		return fmt.Errorf("redis snapshot %s: %w", r.path, err)
	}
	r.saved = writes
	return nil
}

// load restores the snapshot, if there is one.
func (r *Redis) load() error {
	b, err := os.ReadFile(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("redis snapshot: %w", err)
	}
	var s snapshot
	if err := s.UnmarshalBinary(b); err != nil {
		return fmt.Errorf("redis snapshot %s: %w: move the file away to begin without a model "+
			"(the learner makes it anew from the log), or put a copy of it back", r.path, err)
	}
	if err := s.restore(r.mini, time.Now()); err != nil {
		return fmt.Errorf("redis snapshot %s: %w", r.path, err)
	}
	return nil
}

// A gate lets commands run and, in between, a snapshot. miniredis calls pass
// before every command and can be told that the command is done, so pass runs it
// itself and knows when it ends. Commands within a script pass as well, while the
// script is under way; hence nobody waits at the gate unless all is quiet behind
// it.
type gate struct {
	server *server.Server

	mu      sync.Mutex
	changed sync.Cond
	running int                   // commands under way, nested ones included
	inside  map[*server.Peer]bool // those that pass is running
	closed  bool                  // a snapshot is being collected
	dirty   uint64                // commands so far that may have changed data
}

func newGate(s *server.Server) *gate {
	g := &gate{server: s, inside: make(map[*server.Peer]bool)}
	g.changed.L = &g.mu
	return g
}

// pass is miniredis's hook: it runs the command and reports that it is done.
func (g *gate) pass(peer *server.Peer, cmd string, args ...string) bool {
	if refused[cmd] {
		peer.WriteError(fmt.Sprintf("ERR the embedded Redis does not take %s: use a real one for it", cmd))
		return true
	}
	g.mu.Lock()
	if g.inside[peer] { // called from within, below
		g.mu.Unlock()
		return false
	}
	for g.closed {
		g.changed.Wait()
	}
	g.running++
	g.inside[peer] = true
	g.mu.Unlock()

	g.server.Dispatch(peer, append([]string{cmd}, args...))
	writes := !unchanging[cmd] && !g.server.IsReadOnlyCommand(cmd)

	g.mu.Lock()
	defer g.mu.Unlock()
	if writes {
		g.dirty++
	}
	delete(g.inside, peer)
	g.running--
	g.changed.Broadcast()
	return true
}

// unchanging are commands that change no data but that miniredis does not mark
// as reading. What a script writes is counted command by command.
var unchanging = map[string]bool{
	"PING": true, "HELLO": true, "AUTH": true, "SELECT": true, "CLIENT": true, "ECHO": true, "QUIT": true,
	"COMMAND": true, "INFO": true, "MULTI": true, "WATCH": true, "UNWATCH": true, "DISCARD": true,
	"SCRIPT": true, "EVAL": true, "EVALSHA": true, "EVAL_RO": true, "EVALSHA_RO": true,
}

// between runs f while no command runs.
func (g *gate) between(f func()) {
	g.mu.Lock()
	for g.closed || g.running > 0 {
		g.changed.Wait()
	}
	g.closed = true
	g.mu.Unlock()

	f()

	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
	g.changed.Broadcast()
}

// writes returns how many commands so far may have changed data.
func (g *gate) writes() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dirty
}
