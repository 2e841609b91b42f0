package embedded

import (
	"cmp"
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

// RedisOptions configure the in-process Redis. Zero fields mean defaults.
type RedisOptions struct {
	Dir  string       // its own directory for the snapshot, created if missing; empty: in memory
	Addr string       // host:port to listen on; default 127.0.0.1:0, a free port
	Log  *slog.Logger // gets failures of snapshots in the background; nil: silent

	// Password is that of the user default, Redis' requirepass. Without it a connection
	// can only authenticate or quit. Empty: anybody may do anything.
	Password string
}

// A Redis is a miniredis whose keys expire by the clock. It supports the commands and
// the Lua that hamlet uses. A command has at most 64 MiB. It survives clients that send
// garbage or do not read their replies, but any client that it lets in can delete
// everything.
//
// With a directory, it writes a snapshot of all its data within a second of a change,
// and at Close. A process that dies loses what came after the last snapshot. Then a
// learner finds an older position in its checkpoint and reads the log from there.
type Redis struct {
	*failure // a snapshot could not be written
	mini     *miniredis.Miniredis
	commands *commandLock
	listener net.Listener // set by StartRedis
	path     string       // of the snapshot; empty: in memory
	log      *slog.Logger

	saving sync.Mutex // held during a snapshot
	saved  uint64     // the writes that the file covers; guarded by saving

	ctx        context.Context // ends at Close
	background sync.WaitGroup
	close      func() error
}

const (
	snapshotName     = "redis.snapshot"
	snapshotInterval = time.Second

	// The next snapshot waits for snapshotPause times the duration of the last.
	snapshotPause = 4
)

// StartRedis loads the snapshot, starts a server and returns when it answers. Its
// error names an address or a directory in use, or a damaged snapshot.
func StartRedis(opts RedisOptions) (*Redis, error) {
	r, err := newRedis(opts)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if r.listener, err = listen("tcp", cmp.Or(opts.Addr, defaultAddr)); err != nil {
		return nil, errors.Join(fmt.Errorf("start redis: %w", err), r.Close())
	}
	r.listener = patientListener{r.listener, r.failure}
	r.background.Go(r.accept)
	return r, nil
}

// newRedis returns a server that has its data and does not listen yet.
func newRedis(opts RedisOptions) (*Redis, error) {
	dir, unlock, err := openDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	r := &Redis{failure: newFailure(dir), mini: miniredis.NewMiniRedis(), log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler))}
	r.mini.ClockTTL(true)
	if dir != "" {
		r.path = filepath.Join(dir, snapshotName)
		if err := errors.Join(removeTemporary(r.path), r.load()); err != nil {
			return nil, errors.Join(err, unlock())
		}
	}
	// A connection starts miniredis without a listener, so no command comes too early.
	first, err := r.mini.Dial()
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	r.commands = newCommandLock(r.mini.Server())
	hook := r.commands.run
	if opts.Password != "" {
		r.mini.RequireAuth(opts.Password)
		gate := newRedisGate(opts.Password)
		hook = func(peer *server.Peer, cmd string, args ...string) bool {
			return !gate.lets(peer, cmd, args) || r.commands.run(peer, cmd, args...)
		}
	}
	r.mini.Server().SetPreHook(hook)
	if err := first.Close(); err != nil {
		return nil, errors.Join(err, unlock())
	}
	ctx, stop := context.WithCancel(context.Background())
	r.ctx = ctx
	r.close = sync.OnceValue(func() (err error) {
		if r.listener != nil {
			err = r.listener.Close()
		}
		stop()
		r.background.Wait()
		r.mini.Close() // waits for running commands
		return errors.Join(err, r.Snapshot(), unlock())
	})
	if r.path != "" {
		r.background.Go(r.snapshots)
	}
	return r, nil
}

// Addr returns the host:port that the server listens on.
func (r *Redis) Addr() string { return r.listener.Addr().String() }

// Close writes a last snapshot if anything changed, and unlocks the directory.
func (r *Redis) Close() error { return r.close() }

// accept serves connections until the listener is closed.
func (r *Redis) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mini.Server().ServeConn(newRedisConn(conn))
	}
}

// snapshots writes a snapshot after changes until Close.
func (r *Redis) snapshots() {
	timer := time.NewTimer(snapshotInterval)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		err := r.Snapshot()
		if err != nil && !failing { // once, not every second
			r.log.Error("redis: changes are in memory only until a snapshot succeeds", "error", err)
			r.record(err)
		}
		failing = err != nil
		timer.Reset(max(snapshotInterval, snapshotPause*time.Since(start)))
	}
}

// Snapshot writes all data, as it was at one moment between two commands, and returns
// when it is on disk. Without changes or without a directory it does nothing. Commands
// wait only while references are collected.
func (r *Redis) Snapshot() error {
	if r.path == "" {
		return nil
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	var covers uint64
	var s snapshot
	var err error
	r.commands.exclusive(func(writes uint64) {
		if covers = writes; covers != r.saved {
			s, err = collect(r.mini, time.Now())
		}
	})
	if err == nil && covers != r.saved {
		err = s.write(r.path)
	}
	if err != nil {
		return explain(r.dir, fmt.Errorf("redis snapshot %s: %w", r.path, err))
	}
	r.saved = covers
	return nil
}

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
		return fmt.Errorf("redis snapshot %s: %w: move the file away to start without a model "+
			"(the learner makes a new one from the log), or put back a copy", r.path, err)
	}
	if err := s.restore(r.mini, time.Now()); err != nil {
		return fmt.Errorf("redis snapshot %s: %w", r.path, err)
	}
	return nil
}
