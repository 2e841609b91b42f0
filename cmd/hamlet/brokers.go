package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/credentials"
	"hamlet/cmd/internal/services"
	"hamlet/cmd/internal/settings"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

// embeddedServers are the servers of this process; the zero value has none.
type embeddedServers struct {
	waits    []func(context.Context) error // returns why a server cannot go on
	closing  error                         // what closing them reported
	snapshot func() error                  // writes all of Redis to its directory; nil: nothing to write
}

// embeddedServer is what all embedded servers have.
type embeddedServer interface {
	Wait(context.Context) error
	Close() error
}

// add has s close a server and watch watch it.
func (e *embeddedServers) add(s *services.Set, server embeddedServer) {
	e.waits = append(e.waits, server.Wait)
	s.OnClose(func() { e.closing = errors.Join(e.closing, server.Close()) })
}

// watch returns a context that ends when a server cannot go on, and a function that
// ends the watch and returns the error of that server, nil if there is none.
func (e *embeddedServers) watch(parent context.Context) (context.Context, func() error) {
	ctx, stop := context.WithCancel(parent)
	g, ctx := errgroup.WithContext(ctx)
	for _, wait := range e.waits {
		g.Go(func() error { return wait(ctx) })
	}
	return ctx, func() error {
		stop()
		return g.Wait()
	}
}

// startBrokers starts the brokers that no flag names, for s to close, and puts their
// addresses into the flags.
func (c *upCommand) startBrokers(s *services.Set, w io.Writer, log *slog.Logger) (err error) {
	dir := func(string) string { return "" }
	if c.Data != "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		unlock, err := embedded.LockDir(c.Data)
		if err != nil {
			return err
		}
		s.OnClose(func() { _ = unlock() })
		dir = func(name string) string { return filepath.Join(c.Data, name) }
	}
	own, passwords, err := "", credentials.Passwords{}, error(nil)
	if !c.Open {
		if passwords, err = c.passwords(); err != nil {
			return err
		}
	}
	access := credentials.Access{PID: os.Getpid()}
	if len(c.Kafka.Kafka) == 0 {
		options := embedded.KafkaOptions{Dir: dir("kafka"), Addr: c.ListenKafka, Password: passwords.Kafka}
		if c.Generate != nil && *c.Generate == 0 { // a stream without end must not fill the memory
			options.MaxBytes = endlessKafkaBytes
		}
		k, err := embedded.StartKafka(options)
		if err != nil {
			return err
		}
		c.servers.add(s, k)
		c.Kafka = settings.EmbeddedKafka(k.Addr(), passwords.Kafka)
		access.Kafka = credentials.Login{Addr: k.Addr(), User: embedded.User, Password: passwords.Kafka}
		own += "  kafka  " + k.Addr() + "\n"
	}
	if c.Redis.Redis == "" {
		r, err := embedded.StartRedis(embedded.RedisOptions{Dir: dir("redis"), Addr: c.ListenRedis, Log: log, Password: passwords.Redis})
		if err != nil {
			return err
		}
		c.servers.add(s, r)
		c.servers.snapshot = r.Snapshot
		c.RedisEvicts = true // it evicts nothing, and does not say so
		c.Redis = settings.EmbeddedRedis(r.Addr(), passwords.Redis, c.Redis.RedisDB)
		access.Redis = credentials.Login{Addr: r.Addr(), Password: passwords.Redis}
		own += "  redis  " + r.Addr() + "\n"
	}
	if c.NATS.NATS == "" {
		n, err := embedded.StartNATS(embedded.NATSOptions{Dir: dir("nats"), Addr: c.natsAddr(), Log: log, Users: natsUsers(passwords)})
		if err != nil {
			return err
		}
		c.servers.add(s, n)
		c.NATS = settings.EmbeddedNATS(n.URL(), passwords.NATS)
		at := strings.TrimPrefix(n.URL(), "nats://")
		access.NATS = credentials.Login{Addr: at, User: credentials.ServiceUser, Password: passwords.NATS}
		access.Asker = credentials.Login{Addr: at, User: credentials.AskerUser, Password: passwords.Asker}
		own += "  nats   " + n.URL() + "\n"
	}
	if own != "" {
		if c.Open {
			log.Warn("because of --open everybody who reaches the embedded servers can read the mail, write labels, answer requests and delete all")
			own += "  open   to everybody on this machine, because of --open\n"
		} else if err := announce(s, access); err != nil {
			log.Warn("other programs do not find the passwords of the embedded servers", "error", err)
		} else {
			own += "  for other programs: eval \"$(hamlet env)\" sets addresses and passwords\n"
		}
		where := "in memory: all is gone when it ends; --data DIR keeps it"
		if c.Data != "" {
			where = "in " + c.Data
		}
		fmt.Fprintf(w, "embedded brokers, %s\n%s", where, own)
	}
	return nil
}

// passwords returns those of the embedded servers: of --data, or new ones.
func (c *upCommand) passwords() (credentials.Passwords, error) {
	if c.Data == "" {
		return credentials.New(), nil
	}
	return credentials.InDir(c.Data)
}

// natsUsers returns the users of the embedded NATS: a service may do everything, an
// asker may not answer. Without passwords there are none.
func natsUsers(p credentials.Passwords) []embedded.NATSUser {
	if p.NATS == "" {
		return nil
	}
	publish, subscribe := nats.AskerSubjects()
	return []embedded.NATSUser{
		{Name: credentials.ServiceUser, Password: p.NATS},
		{Name: credentials.AskerUser, Password: p.Asker, Publish: publish, Subscribe: subscribe},
	}
}

// announce lets the user's other programs find the servers until s is closed.
func announce(s *services.Set, access credentials.Access) error {
	a, err := credentials.Announce()
	if err != nil {
		return err
	}
	s.OnClose(func() { _ = a.Close() })
	return a.Set(access)
}

// natsAddr is where the embedded NATS listens: what the flag says, else the port
// that `hamlet score` asks, else any.
func (c *upCommand) natsAddr() string {
	const usual, any = "127.0.0.1:4222", "127.0.0.1:0"
	if c.ListenNATS != "" {
		return c.ListenNATS
	}
	if c.Once { // nobody asks
		return any
	}
	l, err := net.Listen("tcp", usual)
	if err != nil {
		return any
	}
	_ = l.Close()
	return usual
}
