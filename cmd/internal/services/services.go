// Package services opens what hamlet's services share: Kafka, Redis, NATS, the
// publisher of alerts, metrics and HTTP. Learner, scorer, ingest and hamlet up all
// start with it.
//
//	s := services.New("hamlet-scorer", "default", log)
//	defer s.Close()
//	store, err := s.OpenRedis(ctx, redisFlags, settings.Versions{})
//	conn, err := s.OpenNATS(natsFlags)
//	worker, err := scorer.New(scorer.Config{Conn: conn, Store: store, Registerer: s.Registry, Log: log})
//	return s.Run(ctx, services.HTTP{Addr: addr, Ready: worker.Ready}, worker.Run)
//
// Close closes what was opened, the last first.
package services

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/alert"
	"hamlet/cmd/internal/answered"
	"hamlet/cmd/internal/background"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/follow"
	"hamlet/cmd/internal/httpd"
	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/scorer"
	"hamlet/cmd/internal/settings"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
	"hamlet/stream/predictions"
)

// A Set holds the connections of one process. It is for one goroutine.
type Set struct {
	Registry *prometheus.Registry
	EventsOf string // another model whose events this one learns; "": it has its own
	Shadow   bool   // it learns beside that model: see learner.Shadow
	Heir     bool   // it learns in the place of that model: see FindHeir

	name, model string
	log         *slog.Logger
	closers     []func() // of what is open, in the order of opening
	notice      notice   // to systemd
}

// New returns a set without connections. The name is the client's at Kafka and
// NATS, the model the one that the process works for.
func New(name, model string, log *slog.Logger) *Set {
	return &Set{
		Registry: httpd.NewRegistry(), name: name, model: model, log: log,
		notice: notice{patience: startsWithin, log: log},
	}
}

// Close closes everything that is open, the last opened first.
func (s *Set) Close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers = nil
	s.notice.close()
}

// OnClose has Close call f.
func (s *Set) OnClose(f func()) { s.closers = append(s.closers, f) }

// Topic returns the topic of the events that the model learns.
func (s *Set) Topic() string { return stream.EventsTopic(cmp.Or(s.EventsOf, s.model)) }

// OpenKafka makes the model's topics where they are missing, but not the events topic of
// another model; for a shadow none that it does not write. It returns how Kafka is reached.
func (s *Set) OpenKafka(ctx context.Context, f settings.Kafka, topic settings.Topic) (kafka.Config, error) {
	cfg, err := f.Config(s.name, s.log)
	if err != nil {
		return cfg, &cli.UsageError{Err: err}
	}
	defer s.notice.waitFor(ctx, "Kafka")()
	if s.Shadow {
		err = kafka.Ping(ctx, cfg)
	} else if s.EventsOf != "" {
		err = topic.EnsureLetters(ctx, cfg)
	} else {
		err = topic.Ensure(ctx, cfg, s.model)
	}
	if err == nil && s.EventsOf != "" {
		err = settings.CheckLog(ctx, cfg, s.EventsOf)
	}
	return cfg, err
}

// OpenLog returns the log of a topic. Close closes it.
func (s *Set) OpenLog(cfg kafka.Config, topic string) (*kafka.Log, error) {
	log, err := kafka.NewLog(cfg, topic)
	if err == nil {
		s.OnClose(func() { log.Close() })
	}
	return log, err
}

// OpenRedis returns the store of the model's checkpoints, once Redis has answered. With
// versions, which only writers have, it refuses a Redis that may evict the model.
func (s *Set) OpenRedis(ctx context.Context, f settings.Redis, versions settings.Versions) (*redis.Store, error) {
	cfg, err := f.Config(s.model, s.log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	versions.Apply(&cfg)
	redis.SetLogger(s.log)
	store, err := redis.New(cfg)
	if err != nil {
		return nil, err
	}
	s.OnClose(func() { store.Close() })
	defer s.notice.waitFor(ctx, "Redis")()
	if err := store.Ping(ctx); err != nil {
		return store, err
	}
	if versions == (settings.Versions{}) || versions.RedisEvicts { // it only reads, or was told
		return store, nil
	}
	return store, store.CheckPolicy(ctx)
}

// Promotions returns where a scorer reads which model answers in the place of its own.
func Promotions(store *redis.Store) *scorer.Promotions {
	return &scorer.Promotions{
		Read:  store.Promotion,
		Store: func(model string) (scorer.Store, error) { return store.Beside(model) },
	}
}

// OpenNATS connects to NATS.
func (s *Set) OpenNATS(f settings.NATS) (*natsgo.Conn, error) {
	cfg, err := f.Config(s.name, s.log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	defer s.notice.waitFor(context.Background(), "NATS")()
	conn, err := nats.Connect(cfg)
	if err != nil {
		return nil, err
	}
	s.OnClose(conn.Close)
	return conn, nil
}

// OpenJournal returns what keeps the model's decisions, nil if the flags want none.
func (s *Set) OpenJournal(f settings.Journal, conn *natsgo.Conn) (scorer.Journal, error) {
	if !f.Journal {
		return nil, nil
	}
	j, err := nats.NewJournal(conn, f.Config(s.model, s.log))
	if err != nil {
		return nil, err
	}
	return j, nil
}

// OpenKeptMail opens what keeps the mail that is scored, or returns nil without --keep-mail.
func (s *Set) OpenKeptMail(f settings.KeepMail, access settings.NATSAccess, conn *natsgo.Conn) (scorer.MailStore, error) {
	kept, done, err := f.Open(conn, access, s.model, s.log)
	if err != nil || kept == nil {
		return nil, err
	}
	s.OnClose(done)
	return kept, nil
}

// OpenAnswered returns what compares answers with labels, nil if the flags want none or
// name no NATS. Without a connection it opens one and does not wait for the server.
func (s *Set) OpenAnswered(f settings.Learner, server settings.NATS, conn *natsgo.Conn) (*answered.Service, error) {
	if f.Answered == 0 || conn == nil && server.NATS == "" {
		return nil, nil
	}
	if conn == nil {
		cfg, err := server.Config(s.name, s.log)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		cfg.Wait = true
		if conn, err = nats.Connect(cfg); err != nil {
			return nil, err
		}
		s.OnClose(conn.Close)
	}
	model := s.model
	if s.Heir {
		model = s.EventsOf // whose scorers answer
	}
	j, err := nats.NewJournal(conn, nats.JournalConfig{Model: model, Labels: true, Log: s.log})
	if err != nil {
		return nil, err
	}
	follow := func(ctx context.Context, since time.Time, take func(*stream.JournalEntry)) error {
		return nats.FollowJournal(ctx, conn, model, since, take, func(err error) {
			s.log.Warn("there are no figures of what was answered until this works", "error", err)
		})
	}
	return answered.NewService(model, follow, j.Append, f.Answered, s.Registry, s.log), nil
}

// OpenAlerts opens the channels of alerts. Without a connection to NATS it opens one
// and does not wait for the server.
func (s *Set) OpenAlerts(ctx context.Context, f settings.Alerts, server settings.NATS, conn *natsgo.Conn) (alert.Channels, error) {
	channels, err := f.Channels(ctx, settings.AlertSource{Name: s.name, NATS: server, Conn: conn, Log: s.log})
	if err == nil {
		s.OnClose(channels.Close)
	}
	return channels, err
}

// Runner returns a runner of slow work, with its metrics registered.
func (s *Set) Runner() *background.Runner {
	runner := background.New(s.Registry)
	s.OnClose(runner.Close)
	return runner
}

// LearnerConfig returns what the flags say about a learner of the model: how it follows the
// events, and where dead letters, receipts and predictions go. The caller adds the model's
// configuration, the store, where alerts go, and what runs slow work.
func (s *Set) LearnerConfig(ctx context.Context, f settings.Learner, topic settings.Topic, cfg kafka.Config) (learner.Config, error) {
	lc := learner.Config{
		Topic: s.Topic(), Name: s.model, Writer: writer(),
		SaveEvery: f.SaveEvery, AdoptConfig: f.AdoptConfig,
		Metrics: learner.NewMetrics(s.Registry), Log: s.log,
	}
	if s.Shadow {
		lc.Shadow = &learner.Shadow{Of: s.EventsOf}
		if err := s.awaitTopic(ctx, cfg); err != nil {
			return lc, err
		}
	}
	events, err := s.OpenLog(cfg, s.Topic())
	if err != nil {
		return lc, err
	}
	lc.Follow = follow.Topic(events, cfg)
	lc.Follow.AcceptGap, lc.Follow.AcceptLostBeginning = f.AcceptGap, f.AcceptLostBeginning
	if lc.Letters, err = s.OpenLog(cfg, stream.DeadLetterTopic); err != nil {
		return lc, err
	}
	if lc.Receipts, err = s.OpenLog(cfg, stream.ReceiptTopic); err != nil || f.NoPredictions {
		return lc, err
	}
	if err := topic.EnsurePredictions(ctx, cfg, s.model); err != nil {
		return lc, err
	}
	lc.Predictions, err = s.OpenLog(cfg, predictions.Topic(s.model))
	return lc, err
}

// writer names this process to people who ask which learner is active.
func writer() string {
	host, err := os.Hostname()
	if err != nil {
		host = "learner"
	}
	return fmt.Sprintf("%.200s/%d", host, os.Getpid())
}

// An HTTP says what is served over HTTP.
type HTTP struct {
	Addr     string           // host:port, may be empty
	TLS      settings.HTTPTLS // at Addr
	Metrics  string           // host:port of /metrics, /healthz and /readyz; empty: Addr
	Ready    func() error     // why /readyz does not answer 200
	Standing func() string    // what /readyz adds where it does; may be nil
	Handlers map[string]http.Handler
}

// Listen returns the HTTP server, or nil without an address.
func (s *Set) Listen(h HTTP) (*httpd.Server, error) {
	if h.Addr == "" && h.TLS.HTTPTLSCert != "" {
		return nil, cli.Usagef("--http-tls-cert is for --http, which is missing; --metrics is always in plain text")
	}
	if h.Addr == "" && h.Metrics == "" {
		return nil, nil
	}
	tls, err := h.TLS.Config(s.log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	server, err := httpd.New(httpd.Config{
		Addr: h.Addr, TLS: tls, Metrics: h.Metrics, Registry: s.Registry, Ready: h.Ready, Standing: h.Standing, Handlers: h.Handlers, Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	if h.Addr != "" {
		s.log.Info("http", "addr", server.Addr(), "tls", tls != nil)
	}
	if h.Metrics != "" {
		s.log.Info("metrics", "addr", server.MetricsAddr())
	}
	return server, nil
}

// Run serves HTTP and works until ctx ends or one of the two fails. Where there is
// no HTTP it returns with work; work may be nil where there is. A systemd that has started
// the process hears that it serves, and how it stands.
func (s *Set) Run(ctx context.Context, h HTTP, work func(context.Context) error) error {
	server, err := s.Listen(h)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	defer s.Notify(ctx, h.Ready)()
	if server != nil {
		g.Go(func() error { return server.Run(ctx) })
	}
	if work != nil {
		g.Go(func() error { return work(ctx) })
	}
	return g.Wait()
}
