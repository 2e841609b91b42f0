package program

import (
	"context"
	"errors"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
)

const learnerDescription = `Learns labelled events from Kafka and saves the model in Redis.

Examples:
  learner --kafka kafka:9092 --redis redis:6379 --nats nats://nats:4222
  learner --config /etc/hamlet.yaml --model news --http :9101
  learner --model clean --events-of default --shadow --without-source desk
  learner --model cand --events-of default --shadow --ensembles none

A model is a pure function of its log, which is one topic of one partition. Kill the learner
at any time, start it again, start several: the model is the same, to the bit. One of them is
active: it publishes and saves. The others take over within about a second.
It also watches the stream for wrong labels, new kinds of mail, and mail that changed its
meaning. It logs each change, and publishes it once with --nats: hamlet.alerts.incident.>

--events-of learns another model's log; with --shadow without alerts, dead letters and receipts,
until hamlet model promote has its model answer in the place of the other.
All other settings are keys below "model" in the file: see hamlet eval --keys.`

type learnerFlags struct {
	settings.ModelName
	EventsOf string   `help:"Learn the events of another model, its topic." placeholder:"MODEL"`
	Shadow   bool     `help:"With --events-of: be heard only once promoted."`
	Dense    []string `help:"Names of a vector that enter the head directly; all others are hashed." placeholder:"NAME" group:"Model"`
	settings.Kafka
	settings.Redis
	settings.NATS
	settings.Alerts
	settings.Model
	settings.Topic
	settings.Versions
	settings.Learner
	HTTP string `name:"http" help:"Serve /metrics, /healthz and /readyz here." placeholder:"ADDR"`
	settings.HTTPTLS
	cli.LogFlags
	cli.ProgramFlags
}

func (f *learnerFlags) check() error {
	var err error
	if f.EventsOf != "" {
		if err = (settings.ModelName{Model: f.EventsOf}).Validate(); err != nil {
			err = cli.Usagef("--events-of: %q is not the name of a model", f.EventsOf)
		}
	}
	return errors.Join(err, f.checkShadow(),
		settings.Check(f.Kafka, f.Redis, f.Topic, f.Versions, f.Alerts, f.Learner, f.HTTPTLS))
}

// checkShadow reports flags that do not go with --shadow.
func (f *learnerFlags) checkShadow() error {
	switch {
	case !f.Shadow:
		return nil
	case f.EventsOf == "":
		return cli.Usagef("--shadow: name the model beside which it learns, with --events-of MODEL")
	case f.EventsOf == f.ModelName.Model:
		return cli.Usagef("--shadow: %q cannot be its own shadow: give --model another name than --events-of", f.EventsOf)
	}
	return nil
}

// Learner runs the learner with its arguments until it is done or ctx ends.
func Learner(ctx context.Context, args []string, stdio cli.IO) (err error) {
	defer func() { err = settings.WithoutServers(advice.Add(err)) }()
	var f learnerFlags
	if _, err := settings.Parse("learner", learnerDescription, &f, args, stdio); err != nil {
		return err
	}
	modelConfig, err := f.Model.Config(f.Dense)
	if err := errors.Join(err, f.check()); err != nil {
		return err
	}
	if err := parts.CheckOpenFiles("learner", parts.ServiceFiles); err != nil {
		return err
	}
	log := f.Logger(stdio.Err)
	s := parts.New("hamlet-learner", f.ModelName.Model, log)
	s.EventsOf, s.Shadow, s.NATS = f.EventsOf, f.Shadow, f.NATS
	defer s.Close()
	if err := s.OpenRedis(ctx, f.Redis, f.Versions); err != nil {
		return err
	}
	if err := s.OpenKafka(ctx, f.Kafka, f.Topic); err != nil {
		return err
	}
	alerts, err := s.OpenAlerts(ctx, f.Alerts)
	if err != nil {
		return err
	}
	cfg, err := s.OpenLearner(ctx, f.Learner, f.Topic, alerts, modelConfig)
	if err != nil {
		return err
	}
	l, err := learner.New(cfg)
	if err != nil {
		return err
	}
	log.Info("learner starts", "model", f.ModelName.Model, "topic", s.Topic(),
		"kafka", f.Kafka.Kafka, "redis", f.Redis.Redis, "alerts", alerts != nil, "save_every", f.SaveEvery,
		"dense", len(modelConfig.Dense), "shadow", f.Shadow,
		"ensembles", f.Ensembles, "alarms", !modelConfig.Alarms.Off)
	err = s.Run(ctx, parts.HTTP{Addr: f.HTTP, TLS: f.HTTPTLS, Ready: l.Ready, Summary: l.Summary}, s.Learn(l))
	return cli.Refused(err, learner.ErrRefused, state.ErrPartitions)
}
