package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// NATSOptions say how to run the in-process NATS server. Zero fields mean
// defaults.
type NATSOptions struct {
	Dir  string       // JetStream's directory, its own, created if missing; empty: a temporary one
	Addr string       // host:port to listen on; default 127.0.0.1:0, a free port
	Log  *slog.Logger // gets what the server says, at the debug level; nil: silent
}

// A NATS is one NATS server with JetStream, which writes to disk before it
// acknowledges. A message has at most 1 MiB, as by default.
type NATS struct {
	server *server.Server
	addr   string
	unlock func() error
	remove string // a temporary directory to remove; empty: none
	once   sync.Once
	err    error
}

// StartNATS starts a server and returns when it takes connections. The error
// names the address if its port is taken, and the directory if another process
// uses it.
func StartNATS(opts NATSOptions) (*NATS, error) {
	n, err := startNATS(opts)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	return n, nil
}

func startNATS(opts NATSOptions) (*NATS, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	host, port, err := splitAddr(opts.Addr)
	if err != nil {
		return nil, err
	}
	n := &NATS{unlock: func() error { return nil }}
	dir := opts.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "hamlet-nats-"); err != nil {
			return nil, err
		}
		n.remove = dir
	} else {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		if n.unlock, err = LockDir(dir); err != nil {
			return nil, err
		}
	}
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	n.server, err = server.NewServer(&server.Options{
		ServerName: "hamlet",
		Host:       host,
		Port:       port,
		NoSigs:     true, // signals are the command's business
		MaxPayload: 1 << 20,
		JetStream:  true,
		StoreDir:   dir,
		SyncAlways: true, // else an acknowledgement comes before the disk has it
	})
	if err != nil {
		return nil, errors.Join(err, n.clean())
	}
	fatal := make(chan string, 1)
	n.server.SetLoggerV2(natsLog{log: log, fatal: fatal}, false, false, false)
	n.server.Start()
	err = n.await(opts.Addr, fatal)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.addr = n.server.Addr().String()
	return n, nil
}

// await waits until the server takes connections or gives up.
func (n *NATS) await(addr string, fatal <-chan string) error {
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		select {
		case reason := <-fatal:
			return natsFailure(addr, reason)
		default:
		}
		if n.server.ReadyForConnections(50 * time.Millisecond) {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer after %v", addr, startTimeout)
}

// URL returns where the server listens, as clients want it.
func (n *NATS) URL() string { return "nats://" + n.addr }

// Close stops the server, closes its clients' connections, and gives the
// directory back or removes the temporary one.
func (n *NATS) Close() error {
	n.once.Do(func() {
		n.server.Shutdown()
		n.server.WaitForShutdown()
		n.err = n.clean()
	})
	return n.err
}

func (n *NATS) clean() error {
	if n.remove != "" {
		return os.RemoveAll(n.remove)
	}
	return n.unlock()
}

// splitAddr returns the parts of host:port as the server wants them, for which
// port 0 means its own default and −1 a free one.
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

// natsFailure returns the error for what the server gave up with. The server's
// text for a taken port is not for users; trying the port ourselves gives ours.
func natsFailure(addr, reason string) error {
	l, err := listen("tcp", addr)
	if err != nil {
		return err
	}
	return errors.Join(fmt.Errorf("at %s: %s", addr, reason), l.Close())
}

// natsLog passes on what the server says. At a fatal error the server expects
// its process to end; we report the first one to whoever started it instead.
type natsLog struct {
	log   *slog.Logger
	fatal chan<- string
}

func (l natsLog) Noticef(format string, v ...any) { l.says("notice", format, v) }
func (l natsLog) Warnf(format string, v ...any)   { l.says("warning", format, v) }
func (l natsLog) Errorf(format string, v ...any)  { l.says("error", format, v) }
func (l natsLog) Debugf(format string, v ...any)  { l.says("debug", format, v) }
func (l natsLog) Tracef(format string, v ...any)  { l.says("trace", format, v) }

func (l natsLog) Fatalf(format string, v ...any) {
	l.says("fatal", format, v)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func (l natsLog) says(level, format string, v []any) {
	l.log.Debug("nats server", "level", level, "says", fmt.Sprintf(format, v...))
}
