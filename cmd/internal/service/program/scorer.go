package program

import (
	"context"
	"errors"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/nats"
)

const scorerDescription = `Answers score requests over NATS with the model that Redis holds.

Examples:
  scorer --nats nats://nats:4222 --redis redis:6379
  scorer --nats nats://nats:4222 --redis redis:6379 --http :9102 --spam-at .99
  scorer --nats nats://nats:4222 --redis redis:6379 --lose-at-most 0.1%
  nats request hamlet.score --header Content-Type:text/plain 'You won a prize'

It keeps no state, and several share the load. Without Redis it answers from the last model
that it has seen, and says how old that is. Before the first model it answers error 503.

Where NATS has JetStream, it keeps a line for each answer, which hamlet history shows: the
verdict, p, the names of three reasons, door and tenant. No text, no address. No answer
waits for that. With --keep-mail it keeps the mail too, for hamlet review.`

type scorerFlags struct {
	settings.ModelName
	settings.NATS
	settings.Redis
	settings.Scorer
	Tenants      string        `help:"YAML whose section strictness says when mail of tenants is spam; read again when it changes." type:"existingfile" placeholder:"FILE"`
	PollInterval time.Duration `help:"How often to look for a newer model." default:"${poll_interval}" placeholder:"D"`
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
func (f *scorerFlags) check() error {
	err := errors.Join(
		cli.Range("--concurrency", f.Concurrency, 0, maxConcurrency), cli.Range("--queue", f.Queue, 0, maxQueue),
		settings.Check(f.NATS, f.Redis, f.Scorer, f.HTTPTLS))
	if f.PollInterval < time.Millisecond {
		err = errors.Join(err, cli.Usagef("--poll-interval: %v is below a millisecond", f.PollInterval))
	}
	return err
}

// Scorer runs the scorer with its arguments until it is done or ctx ends.
func Scorer(ctx context.Context, args []string, stdio cli.IO) (err error) {
	defer func() { err = settings.WithoutServers(err) }()
	var f scorerFlags
	if _, err := settings.Parse("scorer", scorerDescription, &f, args, stdio); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	if err := parts.CheckOpenFiles("scorer", parts.ServiceFiles); err != nil {
		return err
	}
	log := f.Logger(stdio.Err)
	s := parts.New("hamlet-scorer", f.Model, log)
	defer s.Close()
	if err := s.OpenRedis(ctx, f.Redis, settings.Versions{}); err != nil {
		return err
	}
	if _, err := s.OpenNATS(f.NATS); err != nil {
		return err
	}
	if err := s.OpenTenants(f.Tenants); err != nil {
		return err
	}
	worker, err := s.OpenScorer(f.Scorer, f.PollInterval, nats.ServiceConfig{Concurrency: f.Concurrency, Queue: f.Queue})
	if err != nil {
		return err
	}
	log.Info("scorer starts", "model", f.Model, "nats", nats.Redact(f.NATS.NATS), "redis", f.Redis.Redis,
		"spam_at", f.SpamAt, "ham_at", f.HamAt, "lose_at_most", f.LoseAtMost)
	return s.Run(ctx, parts.HTTP{Addr: f.HTTP, TLS: f.HTTPTLS, Ready: worker.Ready}, worker.Run)
}
