package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// NATSOptions configure the in-process NATS server. Zero fields mean defaults.
type NATSOptions struct {
	Dir  string       // JetStream's own directory, created if missing; empty: a temporary one
	Addr string       // host:port to listen on; default 127.0.0.1:0, a free port
	Log  *slog.Logger // gets the server's log at the debug level; nil: silent

	// Users are let in, and nobody else. None: everybody is, and may do everything.
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

// A NATS is one NATS server with JetStream, which writes to disk before it
// acknowledges. A message has at most 1 MiB, NATS' default.
type NATS struct {
	*failure // JetStream could not be written
	server   *server.Server
	addr     string
	close    func() error
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
	host, port, err := splitAddr(opts.Addr)
	if err != nil {
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
	n := &NATS{failure: newFailure(dir)}
	n.server, err = server.NewServer(&server.Options{
		ServerName: "hamlet",
		Host:       host,
		Port:       port,
		NoSigs:     true, // the command handles signals
		MaxPayload: 1 << 20,
		JetStream:  true,
		StoreDir:   dir,
		SyncAlways: true, // otherwise it acknowledges before it writes to disk

		Users:       natsUsers(opts.Users),
		AuthTimeout: authTimeout.Seconds(),
	})
	if err != nil {
		return nil, errors.Join(explain(dir, err), release())
	}
	n.close = sync.OnceValue(func() error {
		n.server.Shutdown()
		n.server.WaitForShutdown()
		return release()
	})
	fatal := make(chan string, 1)
	n.server.SetLoggerV2(natsLog{log: opts.Log, fatal: fatal, failure: n.failure}, false, false, false)
	n.server.Start()
	if err := n.await(opts.Addr, fatal); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.addr = n.server.Addr().String()
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

// await waits until the server accepts connections or has failed.
func (n *NATS) await(addr string, fatal <-chan string) error {
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		select {
		case reason := <-fatal:
			// Trying the port gives a better text if it is in use.
			l, err := listen("tcp", addr)
			if err != nil {
				return err
			}
			return errors.Join(fmt.Errorf("at %s: %s", addr, reason), l.Close())
		default:
		}
		if n.server.ReadyForConnections(50 * time.Millisecond) {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer after %v", addr, startTimeout)
}

// URL returns the server's address as clients take it.
func (n *NATS) URL() string { return "nats://" + n.addr }

// Close stops the server, and unlocks the directory or removes the temporary one.
func (n *NATS) Close() error { return n.close() }

// splitAddr splits host:port for the server, whose free port is −1.
func splitAddr(addr string) (host string, port int, err error) {
	host, name, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("address %s: %w; give host:port", addr, err)
	}
	if port, err = strconv.Atoi(name); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("address %s: port %q is not a number up to 65535", addr, name)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// natsLog passes on the server's log. A fatal error does not end the process: the first
// one goes to fatal.
type natsLog struct {
	log     *slog.Logger
	fatal   chan<- string // has room for one
	failure *failure      // gets a full disk
}

func (l natsLog) Noticef(format string, v ...any) { l.write("notice", format, v) }
func (l natsLog) Warnf(format string, v ...any)   { l.write("warning", format, v) }
func (l natsLog) Errorf(format string, v ...any) {
	l.write("error", format, v)
	if strings.HasPrefix(format, "JetStream out of ") { // its own words, without the error
		l.failure.record(fmt.Errorf("nats: %w", explain(l.failure.dir, syscall.ENOSPC)))
	}
	for _, arg := range v {
		if err, ok := arg.(error); ok && outOfSpace(err) {
			l.failure.record(fmt.Errorf("nats: %w", explain(l.failure.dir, err)))
		}
	}
}
func (l natsLog) Debugf(format string, v ...any) { l.write("debug", format, v) }
func (l natsLog) Tracef(format string, v ...any) { l.write("trace", format, v) }

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
