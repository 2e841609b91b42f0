// Package scorer is the program cmd/scorer, which answers score requests over NATS from
// the newest checkpoint. `hamlet lab` runs it too.
package scorer

import (
	"context"
	"errors"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/scorer"
	"hamlet/cmd/internal/services"
	"hamlet/cmd/internal/settings"
	"hamlet/stream/nats"
)

const description = `Answers score requests over NATS with the model that Redis holds.

Examples:
  scorer --nats nats://nats:4222 --redis redis:6379
  scorer --nats nats://nats:4222 --redis redis:6379 --http :9102 --spam-at .99
  nats request hamlet.score --header Content-Type:text/plain 'You won a prize'

It keeps no state, and several share the load. Without Redis it answers from the last model
that it has seen, and says how old that is. Before the first model it answers error 503.

Where NATS has JetStream, it keeps a line for each answer, which hamlet history shows: the
verdict, p, the names of three reasons, door and tenant. No text, no address. No answer
waits for that. With --keep-mail it keeps the mail too, for hamlet review.`

type flags struct {
	settings.ModelName
	settings.NATS
	settings.Redis
	settings.Thresholds
	settings.Journal
	settings.KeepMail
	PollInterval time.Duration `help:"How often to look for a newer model." default:"250ms" placeholder:"D"`
	Concurrency  int           `help:"Requests to answer at the same time; 0: one per CPU." default:"0" placeholder:"N"`
	Queue        int           `help:"Requests that may wait; 0: 64 times --concurrency. Further ones get error 503." default:"0" placeholder:"N"`
	HTTP         string        `name:"http" help:"Serve /metrics, /healthz and /readyz here." placeholder:"ADDR"`
	settings.HTTPTLS
	cli.LogFlags
	cli.ProgramFlags
}

const (
	maxConcurrency = 4096
	maxQueue       = 1 << 20 // places of some 200 bytes, all there from the start
)

// check reports every flag outside its range.
func (f *flags) check() error {
	err := errors.Join(cli.Range("--concurrency", f.Concurrency, 0, maxConcurrency), cli.Range("--queue", f.Queue, 0, maxQueue),
		settings.Check(f.NATS, f.Redis, f.Thresholds, f.Journal, f.KeepMail, f.HTTPTLS))
	if f.PollInterval < time.Millisecond {
		err = errors.Join(err, cli.Usagef("--poll-interval: %v is below a millisecond", f.PollInterval))
	}
	return err
}

// Run runs the program with its arguments until it is done or ctx ends.
func Run(ctx context.Context, args []string, stdio cli.IO) error {
	var f flags
	if _, err := settings.Parse("scorer", description, &f, args, stdio); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	if err := services.CheckOpenFiles("scorer", services.ServiceFiles); err != nil {
		return err
	}
	log := f.Logger(stdio.Err)
	s := services.New("hamlet-scorer", f.Model, log)
	defer s.Close()
	store, err := s.OpenRedis(ctx, f.Redis, settings.Versions{})
	if err != nil {
		return err
	}
	conn, err := s.OpenNATS(f.NATS)
	if err != nil {
		return err
	}
	journal, err := s.OpenJournal(f.Journal, conn)
	if err != nil {
		return err
	}
	mail, err := s.OpenKeptMail(f.KeepMail, f.NATSAccess, conn)
	if err != nil {
		return err
	}
	worker, err := scorer.New(scorer.Config{
		Journal: journal, LogDecisions: f.LogDecisions, Mail: mail,
		Conn: conn, Store: store, Promotions: services.Promotions(store), Model: f.Model, SpamAt: f.SpamAt, HamAt: f.HamAt, PollInterval: f.PollInterval,
		Service: nats.ServiceConfig{Concurrency: f.Concurrency, Queue: f.Queue}, Registerer: s.Registry, Log: log,
	})
	if err != nil {
		return err
	}
	log.Info("scorer starts", "model", f.Model, "nats", nats.Redact(f.NATS.NATS), "redis", f.Redis.Redis,
		"spam_at", f.SpamAt, "ham_at", f.HamAt)
	return s.Run(ctx, services.HTTP{Addr: f.HTTP, TLS: f.HTTPTLS, Ready: worker.Ready}, worker.Run)
}
