// Package embedded runs a NATS server with JetStream in this process, for a machine that has no other.
//
//	server, err := embedded.StartNATS(embedded.NATSOptions{Dir: "data/nats"})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	conn, err := nats.Connect(server.URL())
//
// It is for one process on one machine: nothing is replicated. It listens on loopback unless
// configured otherwise. Every user of the machine can connect to loopback. If its options name no
// users, the server lets everybody in. It bounds the files, bytes and time that clients cost before
// they log in. Clients in this process connect by InProcessConn, without TCP.
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hamlet/stream/lockfile"
	"hamlet/stream/openfiles"
)

// NATSOptions configure the in-process NATS server. Zero fields mean defaults.
type NATSOptions struct {
	Dir  string       // JetStream's own directory, created if missing; empty: a temporary one
	Addr string       // host:port to listen on; default 127.0.0.1:0, a free port
	Log  *slog.Logger // gets the server's log at the debug level; nil: silent

	// Users are the only ones that the server lets in. If there are none, it lets everybody
	// in, and everybody may do everything.
	Users []NATSUser
}

// A NATSUser is a user and the subjects that it may use, with the wildcards of NATS. A
// user without any subject may use all.
type NATSUser struct {
	Name, Password     string
	Publish, Subscribe []string
}

// authTimeout is how long a client may take to say who it is. NATS' default of 2
// seconds can be too short for a client on a busy machine.
const authTimeout = 10 * time.Second

// Bounds of what clients make the server hold, beside NATS' defaults: before the login
// a line has at most 4 KiB, read into at most 64 KiB; after it a message has at most
// 1 MiB, and 64 MiB wait for a client that reads slowly, for 10 s.
const (
	natsConns  = 512  // over TCP, if the limit of open files allows it; more wait in the kernel's queue
	natsSubs   = 1024 // of one connection
	natsClosed = 64   // closed connections that the server remembers, each with up to 4 KiB of what it said
)

// A NATS is one NATS server with JetStream, which writes to disk before it acknowledges. A full
// disk ends JetStream but not the server, which starts JetStream again once there is room. On a full
// disk the server starts without it.
type NATS struct {
	server *server.Server
	front  *front // takes TCP connections
	dir    string
	addr   string
	log    *slog.Logger
	close  func() error
}

// StartNATS starts a server and returns when it accepts connections. Its error names
// an address or a directory in use.
func StartNATS(opts NATSOptions) (_ *NATS, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start nats: %w", err)
		}
	}()
	opts.Addr = cmp.Or(opts.Addr, defaultAddr)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	if err := checkAddr(opts.Addr); err != nil {
		return nil, err
	}
	dir, release, err := openDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "hamlet-nats-"); err != nil {
			return nil, err
		}
		release = func() error { return os.RemoveAll(dir) }
	}
	listener, err := listen("tcp", opts.Addr)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	n := &NATS{dir: dir, addr: listener.Addr().String(), log: opts.Log}
	n.server, err = server.NewServer(&server.Options{
		ServerName: "hamlet",
		DontListen: true, // the front does
		NoSigs:     true, // the command handles signals
		MaxPayload: 1 << 20,
		// JetStream is started below: here its error would end the server.
		StoreDir:   dir,
		SyncAlways: true, // otherwise it acknowledges before it writes to disk

		Users:            natsUsers(opts.Users),
		AuthTimeout:      authTimeout.Seconds(),
		MaxSubs:          natsSubs,
		MaxClosedClients: natsClosed,
	})
	if err != nil {
		return nil, errors.Join(explain(dir, err), listener.Close(), release())
	}
	fatal := make(chan string, 1)
	n.server.SetLoggerV2(natsLog{log: opts.Log, fatal: fatal}, false, false, false)
	n.server.Start()
	noRoom := n.startJetStream() // before the first client
	n.front = newFront(listener, openfiles.Connections(natsConns), n.server.InProcessConn, opts.Log)
	closing, stop := context.WithCancel(context.Background())
	var reviving sync.WaitGroup
	n.close = sync.OnceValue(func() error {
		stop()
		reviving.Wait()
		n.front.close()
		n.server.Shutdown()
		n.server.WaitForShutdown()
		n.front.running.Wait()
		return release()
	})
	if noRoom != nil && !isFull(noRoom) {
		err = fmt.Errorf("JetStream: %w", explain(dir, noRoom))
	} else {
		err = n.await(fatal)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if noRoom != nil {
		n.logAway(noRoom)
	}
	reviving.Go(func() { n.reviveJetStream(closing, noRoom != nil) })
	return n, nil
}

func natsUsers(users []NATSUser) []*server.User {
	var all []*server.User
	for _, u := range users {
		user := &server.User{Username: u.Name, Password: u.Password}
		if len(u.Publish)+len(u.Subscribe) > 0 {
			user.Permissions = &server.Permissions{
				Publish:   only(u.Publish),
				Subscribe: only(u.Subscribe),
			}
		}
		all = append(all, user)
	}
	return all
}

// only permits the subjects, and nothing if there are none.
func only(subjects []string) *server.SubjectPermission {
	if len(subjects) == 0 {
		return &server.SubjectPermission{Deny: []string{">"}}
	}
	return &server.SubjectPermission{Allow: subjects}
}

// await waits until the server is ready or has failed.
func (n *NATS) await(fatal <-chan string) error {
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		select {
		case reason := <-fatal:
			return errors.New(reason)
		default:
		}
		if n.server.ReadyForConnections(50 * time.Millisecond) {
			return nil
		}
	}
	return fmt.Errorf("it is not ready after %v", startTimeout)
}

// startJetStream starts JetStream if the disk has room.
func (n *NATS) startJetStream() error {
	if err := n.findRoom(); err != nil {
		return err
	}
	if err := n.server.EnableJetStream(&server.JetStreamConfig{StoreDir: n.dir, SyncAlways: true}); err != nil {
		return errors.Join(err, n.server.ShutdownJetStream()) // the server calls it enabled after an error too
	}
	return nil
}

// leastRoom is what the disk must have before JetStream starts: some blocks for each stream's state. With less
// it would start, and end again at its first write.
const leastRoom = 256 << 10

// findRoom returns an error if the disk does not take leastRoom. The file that it writes stays, without a byte.
func (n *NATS) findRoom() error {
	f, err := os.OpenFile(filepath.Join(n.dir, ".room"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, leastRoom))
	_ = f.Truncate(0)
	return errors.Join(err, f.Close())
}

// isFull reports whether err says that the disk or a quota is full, or a limit of the size of files was reached.
// The server does not wrap the system's errors.
func isFull(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}, func(full error) bool {
		return errors.Is(err, full) || strings.Contains(err.Error(), full.Error())
	})
}

// logAway says that JetStream does not run, and why; nil: it is not known.
func (n *NATS) logAway(why error) {
	n.log.Error("alerts, decisions and kept mail are not kept: JetStream does not run, probably because its disk "+
		"is full; it is tried again", "directory", n.dir, "error", why)
}

// reviveJetStream starts JetStream again after a full disk has ended it, until ctx ends. away: it has not been
// started.
func (n *NATS) reviveJetStream(ctx context.Context, away bool) {
	const again = time.Second
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch {
		case !n.server.JetStreamEnabled():
			err := n.startJetStream()
			if !away {
				n.logAway(err)
			}
			away = true
		case away:
			away = false
			n.log.Info("JetStream keeps again what it is given", "directory", n.dir)
		}
	}
}

// InProcessConn opens a connection to the server without TCP and without a file, for
// clients in this process: it is the provider of nats.go's InProcessServer option. A
// client logs in on it as on any other.
//
// The server's own in-process connection has no buffer. A client that is refused while it
// still writes its login does not read the refusal: both sides wait, and after 10 s neither
// says why.
func (n *NATS) InProcessConn() (net.Conn, error) { return n.front.inProcess() }

// URL returns the server's address as clients take it.
func (n *NATS) URL() string { return "nats://" + n.addr }

// Close stops the server, and unlocks the directory or removes the temporary one.
func (n *NATS) Close() error { return n.close() }

// checkAddr refuses what is not host:port.
func checkAddr(addr string) error {
	_, name, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %s: %w; give host:port", addr, err)
	}
	if _, err := strconv.ParseUint(name, 10, 16); err != nil {
		return fmt.Errorf("address %s: port %q is not a number up to 65535", addr, name)
	}
	return nil
}

// natsLog passes on the server's log. A fatal error does not end the process: the first
// one goes to fatal.
type natsLog struct {
	log   *slog.Logger
	fatal chan<- string // has room for one
}

func (l natsLog) Noticef(format string, v ...any) { l.write("notice", format, v) }
func (l natsLog) Warnf(format string, v ...any)   { l.write("warning", format, v) }
func (l natsLog) Errorf(format string, v ...any)  { l.write("error", format, v) }
func (l natsLog) Debugf(format string, v ...any)  { l.write("debug", format, v) }
func (l natsLog) Tracef(format string, v ...any)  { l.write("trace", format, v) }

func (l natsLog) Fatalf(format string, v ...any) {
	l.write("fatal", format, v)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func (l natsLog) write(level, format string, v []any) {
	l.log.Debug("nats server", "level", level, "message", fmt.Sprintf(format, v...))
}

// startTimeout bounds the wait for a server in this process.
const startTimeout = 10 * time.Second

// openDir creates dir if it is missing, locks it and returns its absolute path. If dir is empty, it
// does nothing. unlock is never nil.
func openDir(dir string) (path string, unlock func() error, err error) {
	unlock = func() error { return nil }
	if dir == "" {
		return "", unlock, nil
	}
	if path, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return "", unlock, fmt.Errorf("data directory %s: %w; name one that can be written", dir, err)
	}
	locked, err := lockfile.Lock(filepath.Join(path, ".lock"))
	switch {
	case errors.Is(err, lockfile.ErrLocked):
		return "", unlock, fmt.Errorf("data directory %s: another hamlet uses it; "+
			"stop that one or name another directory", path)
	case err != nil:
		return "", unlock, fmt.Errorf("data directory %s: %w; name one that can be written", path, err)
	}
	return path, locked, nil
}

// listen listens on addr. The error for a port in use says what to do.
func listen(network, addr string) (net.Listener, error) {
	l, err := net.Listen(network, addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is taken by another program: "+
			"stop that one or choose another port (0: any free one)", addr)
	}
	return l, err
}

// defaultAddr is a free port of loopback.
const defaultAddr = "127.0.0.1:0"

// explain adds what to do to an error of the operating system. It returns other errors unchanged.
func explain(dir string, err error) error {
	var system syscall.Errno
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk of %s is full: make room and start again, it goes on where it ended: %w", dir, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("too few files and connections may be open at once: "+
			"allow more (ulimit -n) and start again: %w", err)
	case errors.As(err, &system):
		return fmt.Errorf("%s cannot be written: mend that and start again, it goes on where it ended: %w", dir, err)
	}
	return err
}
