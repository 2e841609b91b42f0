// Command learner turns a topic of labelled events into models, one a
// partition, and keeps them in Redis.
package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/background"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/httpd"
	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/settings"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

const description = `Learns labelled events from Kafka and keeps the model in Redis.

Examples:
  learner --kafka kafka:9092 --redis redis:6379
  learner --kafka kafka:9092 --redis redis:6379 --nats nats://nats:4222
  learner --kafka kafka:9092 --redis redis:6379 --model newsletters --http :9101
  learner --config /etc/hamlet.yaml

A model is a pure function of its partition's log: kill the learner at any time, start it
again, start several; the model comes out the same, to the bit.

It watches the stream as well: labels that went bad, mail unlike anything learnt, a world
that changed. Each change is logged, counted on /metrics and, with --nats, published once:
  nats sub 'hamlet.alerts.>'`

type flags struct {
	settings.ModelFlag
	settings.Kafka
	settings.Redis
	settings.NATS
	settings.Alerts
	settings.Model
	settings.Topic
	settings.Versions
	Dense          []string      `help:"Names of a vector that enter the head as they are; all others are hashed." placeholder:"NAME,…" group:"Model"`
	Group          string        `help:"Kafka consumer group; hamlet.learner.<model> without it." placeholder:"NAME"`
	SaveEvery      time.Duration `help:"The longest that learnt events stay unsaved. A crash costs reading them again." default:"3s" placeholder:"D"`
	SessionTimeout time.Duration `help:"How long Kafka waits for a learner that vanished before its partitions go to another." default:"10s" placeholder:"D" group:"Kafka"`
	AdoptConfig    bool          `help:"Go on with a model that was made with another --label-trust, --trust-by, --duplicate-window or other thresholds of alarms, or by a program with other numerics; the model records it. Nothing else can change."`
	AcceptGap      bool          `help:"Go on where retention has taken records that the model has not seen; they are lost to it."`
	HTTP           string        `name:"http" help:"Serve /metrics, /healthz and /readyz on this address." placeholder:"ADDR"`
	cli.LogFlags
	cli.ConfigFlag
}

// A session shorter than a heartbeat or two is lost at every pause; longer than
// half an hour is more than brokers take (group.max.session.timeout.ms).
const minSession, maxSession = 500 * time.Millisecond, 30 * time.Minute

func main() { cli.Main("learner", run) }

func run(ctx context.Context, args []string, stdio cli.IO) error {
	var f flags
	if _, err := cli.Parse(cli.Program{
		Name: "learner", Description: description, Grammar: &f, Shared: &settings.Shared{},
	}, args, stdio); err != nil {
		return err
	}
	log := f.Logger(stdio.Err)
	kafkaConfig, err := f.Kafka.Config("hamlet-learner", log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	redisConfig, err := f.Redis.Config(f.ModelFlag.Model, log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	f.Versions.Apply(&redisConfig)

	modelConfig, err := f.Model.Config(f.Dense)
	if err != nil {
		return err
	}
	if f.SaveEvery <= 0 {
		return cli.Usagef("--save-every: %v is not above zero", f.SaveEvery)
	}
	if f.SessionTimeout < minSession || f.SessionTimeout > maxSession {
		return cli.Usagef("--session-timeout: %v is not in %v…%v", f.SessionTimeout, minSession, maxSession)
	}
	if err := errors.Join(f.Topic.Check(), f.Versions.Check(), f.Alerts.Check()); err != nil {
		return err
	}

	registry := httpd.NewRegistry()
	redis.SetLogger(log)
	store, err := redis.New(redisConfig)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Ping(ctx); err != nil {
		return err
	}
	if err := f.Topic.Ensure(ctx, kafkaConfig, f.ModelFlag.Model); err != nil {
		return err
	}
	producer, err := kafka.NewProducer(kafkaConfig)
	if err != nil {
		return err
	}
	defer producer.Close()
	alerts, err := f.Alerts.Channels(ctx, settings.AlertSource{Name: "hamlet-learner", NATS: f.NATS, Log: log})
	if err != nil {
		return err
	}
	defer alerts.Close()
	runner := background.New(registry)
	defer runner.Close()
	group := f.Group
	if group == "" {
		group = "hamlet.learner." + f.ModelFlag.Model
	}
	l, err := learner.New(learner.Config{
		Consumer: kafka.ConsumerConfig{
			Config: kafkaConfig, Topic: stream.EventsTopic(f.ModelFlag.Model), Group: group, AcceptGap: f.AcceptGap,
			SessionTimeout: f.SessionTimeout,
		},
		DeadLetters: producer, Alerts: alerts, Runner: runner, Store: store, Model: modelConfig, Name: f.ModelFlag.Model,
		SaveEvery: f.SaveEvery, AdoptConfig: f.AdoptConfig, Metrics: learner.NewMetrics(registry), Log: log,
	})
	if err != nil {
		return err
	}
	log.Info("learner starts", "model", f.ModelFlag.Model, "kafka", f.Kafka.Kafka, "redis", f.Redis.Redis, "alerts", len(alerts) > 0, "group", group,
		"save_every", f.SaveEvery, "dense", len(f.Dense), "table_bits", f.TableBits,
		"ensembles", f.Ensembles, "alarms", f.Model.Alarms)

	g, ctx := errgroup.WithContext(ctx)
	if f.HTTP != "" {
		server, err := httpd.New(httpd.Config{Addr: f.HTTP, Registry: registry, Ready: l.Ready, Log: log})
		if err != nil {
			return err
		}
		log.Info("http", "addr", server.Addr())
		g.Go(func() error { return server.Run(ctx) })
	}
	g.Go(func() error { return l.Run(ctx) })
	return g.Wait()
}
