// Command scorer answers score requests over NATS from the newest checkpoint.
package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/httpd"
	"hamlet/cmd/internal/scorer"
	"hamlet/cmd/internal/settings"
	"hamlet/state/redis"
	"hamlet/stream/nats"
)

const description = `Answers score requests over NATS with the model that Redis holds.

Examples:
  scorer --nats nats://nats:4222 --redis redis:6379
  scorer --nats nats://nats:4222 --redis redis:6379 --http :9102 --spam-at .99
  nats request hamlet.score --header Content-Type:text/plain 'You won a prize'

It keeps no state and several share the load. Without Redis it answers from the last model
that it has seen, and says how old that is; before the first model it answers error 503.`

type flags struct {
	settings.ModelFlag
	settings.NATS
	settings.Redis
	settings.Thresholds
	PollInterval time.Duration `help:"How often to look for a newer model." default:"250ms" placeholder:"D"`
	Concurrency  int           `help:"Requests worked on at once; 0 is one a processor." default:"0" placeholder:"N"`
	Queue        int           `help:"Requests that may wait, further ones get error 503; 0 is 64 for each worked on." default:"0" placeholder:"N"`
	HTTP         string        `name:"http" help:"Serve /metrics, /healthz and /readyz on this address." placeholder:"ADDR"`
	cli.LogFlags
	cli.ConfigFlag
}

const (
	maxConcurrency = 4096
	maxQueue       = 1 << 20 // places of some 200 bytes, all there from the start
)

// check reports every flag outside its range.
func (f *flags) check() error {
	var errs []error
	if f.PollInterval < time.Millisecond {
		errs = append(errs, cli.Usagef("--poll-interval: %v is below a millisecond", f.PollInterval))
	}
	if f.Concurrency < 0 || f.Concurrency > maxConcurrency {
		errs = append(errs, cli.Usagef("--concurrency: %d is not in 0…%d", f.Concurrency, maxConcurrency))
	}
	if f.Queue < 0 || f.Queue > maxQueue {
		errs = append(errs, cli.Usagef("--queue: %d is not in 0…%d", f.Queue, maxQueue))
	}
	return errors.Join(errs...)
}

func main() { cli.Main("scorer", run) }

func run(ctx context.Context, args []string, stdio cli.IO) error {
	var f flags
	if _, err := cli.Parse(cli.Program{
		Name: "scorer", Description: description, Grammar: &f, Shared: &settings.Shared{},
	}, args, stdio); err != nil {
		return err
	}
	log := f.Logger(stdio.Err)
	if !f.Thresholds.Valid() {
		return cli.Usagef("%s", settings.WrongThresholds)
	}
	if err := f.check(); err != nil {
		return err
	}
	natsConfig, err := f.NATS.Config("hamlet-scorer", log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	redisConfig, err := f.Redis.Config(f.Model, log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	redis.SetLogger(log)
	store, err := redis.New(redisConfig)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Ping(ctx); err != nil {
		return err
	}
	conn, err := nats.Connect(natsConfig)
	if err != nil {
		return err
	}
	defer conn.Close()
	registry := httpd.NewRegistry()
	s, err := scorer.New(scorer.Config{
		Conn: conn, Store: store, Model: f.Model, SpamAt: f.SpamAt, HamAt: f.HamAt, PollInterval: f.PollInterval,
		Service: nats.ServiceConfig{Concurrency: f.Concurrency, Queue: f.Queue}, Registerer: registry, Log: log,
	})
	if err != nil {
		return err
	}
	log.Info("scorer starts", "model", f.Model, "nats", nats.Redact(f.NATS.NATS), "redis", f.Redis.Redis,
		"spam_at", f.SpamAt, "ham_at", f.HamAt)

	g, ctx := errgroup.WithContext(ctx)
	if f.HTTP != "" {
		server, err := httpd.New(httpd.Config{Addr: f.HTTP, Registry: registry, Ready: s.Ready, Log: log})
		if err != nil {
			return err
		}
		log.Info("http", "addr", server.Addr())
		g.Go(func() error { return server.Run(ctx) })
	}
	g.Go(func() error { return s.Run(ctx) })
	return g.Wait()
}
