package parts

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/model"
	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/background"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// OpenKafka makes the model's topics where they are missing, but not the events topic of
// another model; for a shadow none that it does not write. Logs are Kafka's then.
func (s *Set) OpenKafka(ctx context.Context, f settings.Kafka, topic settings.Topic) error {
	cfg, err := f.Config(s.name, s.Log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	s.Logs = cfg
	defer s.WaitFor(ctx, "Kafka")()
	if s.Shadow {
		err = cfg.Ping(ctx)
	} else if s.EventsOf != "" {
		err = topic.EnsureLetters(ctx, cfg)
	} else {
		err = topic.Ensure(ctx, cfg, s.model)
	}
	if err == nil && s.EventsOf != "" {
		err = settings.CheckLog(ctx, cfg, s.EventsOf)
	}
	return err
}

// OpenLog returns the log of a topic. Close closes it.
func (s *Set) OpenLog(topic string) (stream.Topic, error) {
	log, err := s.Logs.Open(topic)
	if err == nil {
		s.OnClose(func() { log.Close() })
	}
	return log, err
}

// OpenRedis opens the store of the model's checkpoints, once Redis has answered. With
// versions, which only writers have, it refuses a Redis that may evict the model.
func (s *Set) OpenRedis(ctx context.Context, f settings.Redis, versions settings.Versions) error {
	cfg, err := f.Config(s.model, s.Log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	versions.Apply(&cfg)
	redis.SetLogger(s.Log)
	store, err := redis.New(cfg)
	if err != nil {
		return err
	}
	s.Store = store
	s.OnClose(func() { store.Close() })
	defer s.WaitFor(ctx, "Redis")()
	if err := store.Ping(ctx); err != nil {
		return advice.Add(err)
	}
	if versions == (settings.Versions{}) || versions.RedisEvicts { // it only reads, or was told
		return nil
	}
	return advice.Add(store.CheckPolicy(ctx))
}

// OpenNATS connects to NATS.
func (s *Set) OpenNATS(f settings.NATS) (*natsgo.Conn, error) {
	s.NATS = f
	defer s.WaitFor(context.Background(), "NATS")()
	return s.connectAs(false)
}

// connection returns the connection to NATS. The first who asks opens it, and does not wait for the server.
func (s *Set) connection() (*natsgo.Conn, error) {
	if s.conn != nil {
		return s.conn, nil
	}
	return s.connectAs(true)
}

// connectAs connects to NATS as the flags say. wait: the server need not be there yet.
func (s *Set) connectAs(wait bool) (*natsgo.Conn, error) {
	cfg, err := s.NATS.Config(s.name, s.Log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	cfg.Wait = wait
	return s.Connect(cfg)
}

// Connect connects to NATS as cfg says.
func (s *Set) Connect(cfg nats.Config) (conn *natsgo.Conn, err error) {
	if conn, err = nats.Connect(cfg); err == nil {
		s.conn = conn
		s.OnClose(conn.Close)
	}
	return conn, err
}

// OpenAlerts returns where alerts are published, nil if they are not. It does not wait for
// NATS. JetStream that is off, or a user without the right to it, is an error.
//
// To add a second way, say a webhook, write its publisher in a package below stream, with a test that
// runs alerttest.Run on it. One that calls people leaves out what [stream.NamesKind] does not name,
// unless a flag asks for suspicions. Its flags belong in [settings.Alerts], in the tables of wrong
// usage of cmd/internal/service/program and cmd/hamlet (usage_test.go), in deploy/hamlet.yaml,
// deploy/ALARMS.md and CHANGELOG.md.
func (s *Set) OpenAlerts(ctx context.Context, f settings.Alerts) (stream.AlertPublisher, error) {
	if !f.PublishAlerts {
		s.Log.Info("alerts are logged and counted, not published, because of --no-publish-alerts")
		return nil, nil
	}
	if s.NATS.NATS == "" {
		s.Log.Warn("alerts are logged and counted, not published: name a NATS server with --nats for that")
		return nil, nil
	}
	conn, err := s.connection()
	if err != nil {
		return nil, err
	}
	publisher, err := nats.NewAlerts(conn, nats.AlertsConfig{
		Replicas: f.AlertReplicas, Log: s.Log,
	})
	if err != nil {
		return nil, err
	}
	start, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	switch err := publisher.Prepare(start); {
	case err == nil:
	case s.NATS.InProcess != nil && errors.Is(err, natsgo.ErrNoResponders): // it starts once the disk has room
		s.Log.Warn("alerts wait for JetStream, which the NATS of this process starts later, and saves for alerts")
	case errors.Is(err, stream.ErrAlerts):
		return nil, fmt.Errorf("%w; --no-publish-alerts goes without", advice.Add(err))
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		s.Log.Warn("alerts wait for NATS, and saves for alerts", "error", err)
	}
	return publisher, nil
}

// prepareTimeout is how long a start waits for JetStream.
const prepareTimeout = 5 * time.Second

// Runner returns a runner of slow work, with its metrics registered.
func (s *Set) Runner() *background.Runner {
	runner := background.New(s.Registry)
	s.OnClose(runner.Close)
	return runner
}

// OpenTenants reads the file of tenants for OpenScorer and OpenDoors; an empty path names none.
func (s *Set) OpenTenants(path string) (err error) {
	if path != "" {
		s.tenants, err = gateway.OpenTenants(path, s.Log)
	}
	return err
}

// OpenScorer returns the scorer of the model, which answers over the connection of OpenNATS from
// Store. Discovery says up to which numerics it reads models. pause is that between polls of the
// store; 0: the default.
func (s *Set) OpenScorer(f settings.Scorer, pause time.Duration, bounds nats.ServiceConfig) (*scorer.Scorer, error) {
	cfg := scorer.Config{PollInterval: pause}
	if f.Journal.Journal {
		journal, err := nats.NewJournal(s.conn, f.Journal.Config(s.model, s.Log))
		if err != nil {
			return nil, err
		}
		cfg.Journal = journal
	}
	kept, done, err := f.KeepMail.Open(s.conn, s.NATS.NATSAccess, s.model, s.Log)
	if err != nil {
		return nil, err
	}
	s.OnClose(done)
	if kept != nil {
		cfg.Mail = kept
	}
	bounds.Model, bounds.Log = s.model, s.Log
	bounds.Metadata = map[string]string{nats.MetadataNumerics: model.CurrentNumerics()}
	if cfg.Questions, err = nats.NewService(s.conn, bounds); err != nil {
		return nil, err
	}
	cfg.Store, cfg.Model, cfg.Registerer, cfg.Log = s.Store, s.model, s.Registry, s.Log
	cfg.SpamAt, cfg.HamAt, cfg.LogDecisions = f.SpamAt, f.HamAt, f.LogDecisions
	cfg.LoseAtMost, cfg.NeverUntilPromised = f.LoseAtMost, f.UntilPromised == "none"
	if s.tenants != nil {
		cfg.Tenants = s.tenants
	}
	return scorer.New(cfg), nil
}
