package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/answered"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/console"
	"hamlet/cmd/internal/console/access"
	"hamlet/cmd/internal/console/page"
	"hamlet/cmd/internal/follow"
	"hamlet/cmd/internal/gateway"
	"hamlet/cmd/internal/gateway/doors"
	"hamlet/cmd/internal/gateway/web"
	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/progress"
	"hamlet/cmd/internal/report"
	"hamlet/cmd/internal/scorer"
	"hamlet/cmd/internal/services"
	"hamlet/cmd/internal/settings"
	"hamlet/cmd/internal/source"
	"hamlet/cmd/internal/tokens"
	"hamlet/cmd/internal/up"
	"hamlet/stream"
	"hamlet/stream/nats"
)

type upCommand struct {
	upSources
	Data  string  `help:"Keep all here after a stop too (default in memory)." type:"path" placeholder:"DIR"`
	Once  bool    `help:"End after the stream and print what eval prints."`
	JSON  bool    `name:"json" help:"Print the result as JSON."`
	From  int     `help:"Leave the first N events out of the metrics." default:"0" placeholder:"N"`
	Rate  float64 `help:"Events a second; 0 is as fast as it goes." default:"0" placeholder:"N"`
	HTTP  string  `name:"http" help:"Serve /metrics, /v1/score etc. See --http-tls-cert." placeholder:"ADDR"`
	Token string  `help:"Serve POST /v1/events too, with this bearer token." placeholder:"SECRET"`
	settings.EventsHTTP
	settings.ModelName
	settings.Learner
	settings.Thresholds
	settings.Journal
	settings.KeepMail
	settings.ReadMail
	source.Flags
	source.FlipFlags
	upGenerate
	Synthetic generatorFlags `embed:""`
	settings.Model
	settings.Kafka
	settings.Topic
	settings.NATS
	settings.Alerts
	settings.Redis
	settings.Versions
	ListenKafka  string      `help:"Address of the embedded Kafka." default:"127.0.0.1:0" placeholder:"ADDR" group:"Kafka"`
	ListenNATS   string      `name:"listen-nats" help:"Embedded NATS; if the port is busy, any port." placeholder:"127.0.0.1:4222" group:"NATS"`
	ListenRedis  string      `help:"Address of the embedded Redis." default:"127.0.0.1:0" placeholder:"ADDR" group:"Redis"`
	Doors        doors.Flags `embed:""`
	Console      string      `help:"Serve the web console; prints a link to log in." placeholder:"ADDR"`
	ConsoleUsers string      `help:"File of users of the console, in place of the link (hamlet console user)." type:"existingfile" placeholder:"FILE" rare:"up"`
	Open         bool        `hidden:"" help:"Embedded servers without passwords, for everybody on this machine."`
	cli.LogFlags

	servers embeddedServers // startBrokers writes it
}

// Help is shown by kong below the flags.
func (upCommand) Help() string {
	return `Examples:` + syntheticExample + `
  hamlet up --spam spam.mbox --ham ham.mbox --data ~/.hamlet
  hamlet up --index index.csv corpus.tar.gz --once       as hamlet eval does
  hamlet up --kafka k:9092 --nats nats://n:4222 --redis r:6379 --http :80

` + faultExamples + `It learns the sources, then answers. Its doors are those of hamlet gateway.`
}

// upFiles are the open files and connections that up needs: measured, 40 (November 2026). The
// rest is for clients.
const upFiles = 64

// check reports wrong usage that no flag shows by itself.
func (c *upCommand) check() error {
	errs := []error{c.CheckAt(c.HTTP, c.Token), cli.NotNegative("--from", c.From), cli.NotNegative("--limit", c.Limit), settings.CheckRate(c.Rate)}
	if c.Generate != nil {
		errs = append(errs, cli.NotNegative("--generate", *c.Generate))
	}
	if c.Console != "" {
		errs = append(errs, access.CheckListen(c.Console, false, false))
	} else if c.ConsoleUsers != "" {
		errs = append(errs, cli.Usagef("--console-users is for the console: give it an address with --console"))
	}
	groups := []settings.Checker{&c.FlipFlags, &c.Doors, c.Topic, c.Versions, c.Alerts, c.Learner, c.Thresholds, c.Journal, c.KeepMail}
	if len(c.Kafka.Kafka) > 0 {
		groups = append(groups, c.Kafka)
	}
	if c.Redis.Redis != "" {
		groups = append(groups, c.Redis)
	}
	if c.NATS.NATS != "" {
		groups = append(groups, c.NATS)
	}
	return errors.Join(append(errs, settings.Check(groups...))...)
}

func (c *upCommand) run(ctx context.Context, stdio cli.IO) (err error) {
	log := c.Logger(stdio.Err)
	if c.LogLevel == "info" && !c.LogDecisions && progress.IsTerminal(stdio.Err) { // the progress shows the same
		log = slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if err := c.check(); err != nil {
		return err
	}
	src, err := c.source(stdio.In)
	if err != nil {
		return err
	}
	defer src.close()
	modelConfig, err := c.Model.Config(src.dense)
	if err != nil {
		return err
	}

	embeddedKafka := len(c.Kafka.Kafka) == 0
	if embeddedKafka {
		c.Topic.Retention = -1 // what is in --data stays there
	}
	if err := services.CheckOpenFiles("hamlet up", upFiles); err != nil {
		return err
	}
	s := services.New("hamlet-up", c.ModelName.Model, log)
	defer func() {
		s.Close()
		if err == nil { // or that is a consequence
			err = c.servers.closing
		}
	}()
	if err := c.startBrokers(s, stdio.Err, log); err != nil {
		return err
	}
	ctx, failure := c.servers.watch(ctx)
	defer func() {
		if failed := failure(); failed != nil {
			err = failed // whatever else went wrong is a consequence
		}
	}()
	kafkaConfig, err := s.OpenKafka(ctx, c.Kafka, c.Topic)
	if err != nil {
		return err
	}
	events, err := s.OpenLog(kafkaConfig, s.Topic())
	if err != nil {
		return err
	}
	if src.synthetic {
		if err := ingest.CheckSynthetic(ctx, follow.Topic(events, kafkaConfig)); err != nil {
			return fmt.Errorf("--demo: %w", err)
		}
	} else if src.open == nil {
		fmt.Fprintln(stdio.Err, noSource)
	}
	store, err := s.OpenRedis(ctx, c.Redis, c.Versions)
	if err != nil {
		return err
	}
	conn, err := s.OpenNATS(c.NATS)
	if err != nil {
		return err
	}
	alerts, err := s.OpenAlerts(ctx, c.Alerts, c.NATS, conn)
	if err != nil {
		return err
	}
	for i := range alerts {
		if alerts[i].Hint != "" {
			fmt.Fprintf(stdio.Err, "  alerts %s\n", alerts[i].Hint)
		}
	}

	rejections := &report.Rejections{W: stdio.Err}
	learning, err := s.LearnerConfig(ctx, c.Learner, c.Topic, kafkaConfig)
	if err != nil {
		return err
	}
	learning.Alerts, learning.Runner, learning.Store, learning.Model = alerts, s.Runner(), store, modelConfig
	journal, err := s.OpenJournal(c.Journal, conn)
	if err != nil {
		return err
	}
	var seen *answered.Service
	if journal != nil {
		if seen, err = s.OpenAnswered(c.Learner, c.NATS, conn); err != nil {
			return err
		}
	}
	if seen != nil {
		learning.Answered = seen
	}
	mail, err := s.OpenKeptMail(c.KeepMail, c.NATSAccess, conn)
	if err != nil {
		return err
	}
	answers, err := scorer.New(scorer.Config{
		Journal: journal, LogDecisions: c.LogDecisions, Mail: mail,
		Conn: conn, Store: store, Promotions: services.Promotions(store), Model: c.ModelName.Model, SpamAt: c.SpamAt, HamAt: c.HamAt, Registerer: s.Registry, Log: log,
	})
	if err != nil {
		return err
	}
	opened, err := c.doors(s, events, conn, log, stdio.Err)
	if err != nil {
		return err
	}
	serve, err := c.http(s, opened, events, log, stdio.Err)
	if err != nil {
		return err
	}
	var open func(context.Context) error
	if opened != nil {
		open = opened.Run
	}
	kept, done, err := c.ReadMail.Open(conn, c.NATSAccess, c.ModelName.Model, log)
	if err != nil {
		return err
	}
	s.OnClose(done)
	pages, err := c.console(ctx, s, console.Config{Model: c.ModelName.Model, Topic: s.Topic(), NATS: conn, Store: store, Kafka: kafkaConfig, Kept: kept, Log: log}, stdio.Err)
	if err != nil {
		return err
	}
	return up.Run(ctx, up.Config{
		Events: follow.Topic(events, kafkaConfig), Topic: s.Topic(), Store: store, From: c.From, Once: c.Once, Log: log,
		Notify:   s.Notify,
		Learner:  learning,
		Answered: seen,
		Scorer:   answers.Run,
		Answers:  answers.Ready,
		Asked:    answers.Listening(),
		HTTP:     serve,
		Doors:    open,
		Console:  pages,
		Open:     src.open,
		Ingest:   ingest.Config{Events: events, Rate: c.Rate, Once: src.once, Synthetic: src.synthetic, Rejected: rejections.Add, Log: log},
		Progress: up.NewProgress(stdio.Err, src.total()),
		Done: func(r *report.Result) error {
			rejections.Close()
			if snapshot := c.servers.snapshot; snapshot != nil {
				if err := snapshot(); err != nil { // what is printed is on disk
					return err
				}
			}
			return c.finish(r, src.open != nil, stdio)
		},
	})
}

// console opens the web console and returns what serves it, or nil without --console.
func (c *upCommand) console(ctx context.Context, s *services.Set, cfg console.Config, w io.Writer) (func(context.Context) error, error) {
	if c.Console == "" {
		return nil, nil
	}
	url := ""
	guarding := access.Config{Addr: c.Console, Style: page.StyleURL(), Log: cfg.Log}
	if c.ConsoleUsers != "" {
		users, err := access.OpenUsers(c.ConsoleUsers, cfg.Log)
		if err != nil {
			return nil, err
		}
		guarding.Users = users
	} else {
		guarding.Links = true
		guarding.LinkUser = access.User{Name: "up", Role: access.Look | access.Label | access.Operate}
		guarding.Print = func(path string) { fmt.Fprintf(w, "  console %s%s\n", url, path) }
	}
	guard, err := access.New(guarding)
	if err != nil {
		return nil, err
	}
	cfg.Guard = guard
	served, err := console.Listen(ctx, console.Listener{Addr: c.Console, Services: s, Log: cfg.Log}, cfg)
	if err != nil {
		return nil, err
	}
	url = served.URL()
	if guarding.Links {
		guarding.Print(guard.NewLink(guarding.LinkUser))
		fmt.Fprintln(w, "          that link logs you in, once, within 15 minutes")
	} else {
		fmt.Fprintf(w, "  console %s\n", url)
	}
	return served.Run, nil
}

// finish prints the result of the stream, if there was one, and says where scores
// can be asked for.
func (c *upCommand) finish(r *report.Result, streamed bool, stdio cli.IO) error {
	if streamed {
		if err := r.Err(); err != nil {
			return err
		}
	}
	if streamed || c.Once {
		write := r.WriteTable
		if c.JSON {
			write = r.WriteJSON
		}
		if err := write(stdio.Out); err != nil {
			return err
		}
	}
	if !c.Once {
		at := nats.Redact(c.NATS.NATS)
		fmt.Fprintf(stdio.Err, "serving on %s; Ctrl-C ends it. Try: hamlet score --server %s FILE\n", at, at)
	}
	return nil
}

// doors opens the doors that flags ask for, and the HTTP door; nil if there are none.
func (c *upCommand) doors(s *services.Set, events stream.Appender, conn *natsgo.Conn, log *slog.Logger, w io.Writer) (*doors.Doors, error) {
	if !c.Doors.Any() && c.HTTP == "" {
		return nil, nil
	}
	client, err := nats.NewClient(conn, c.ModelName.Model)
	if err != nil {
		return nil, err
	}
	file, err := c.OpenTokens(log)
	if err != nil {
		return nil, err
	}
	cfg := gateway.Config{Client: gateway.NATS(client), Tokens: file, Registerer: s.Registry, Log: log}
	teacher := doors.Teacher{Events: events}
	if c.Doors.AllowLearn {
		cfg.Teacher = teacher
	}
	waiting, err := c.Doors.Connect(conn, c.NATSAccess, log)
	if err != nil {
		return nil, err
	}
	if waiting != conn {
		s.OnClose(waiting.Close)
	}
	self, err := c.Doors.Service(waiting, c.ModelName.Model, teacher, s.Registry, log)
	if err != nil {
		return nil, err
	}
	opened, err := c.Doors.Open(cfg, self)
	if err != nil {
		return nil, err
	}
	s.OnClose(opened.Close)
	printDoors(w, opened)
	return opened, nil
}

// httpDoor returns the handlers of the HTTP door. At an address that others reach it is
// open only to those with a token.
func (c *upCommand) httpDoor(s *services.Set, opened *doors.Doors, events stream.Appender, log *slog.Logger) (map[string]http.Handler, error) {
	g := opened.Gateway()
	if err := c.CheckDoor(c.HTTP, c.Token != "" || g.HasTokens()); err != nil {
		log.Info("--http serves metrics only", "http", c.HTTP, "reason", err)
		return nil, nil
	}
	cfg := web.Config{Door: g.Door(web.Name), Token: c.Token, Count: tokens.NewMetrics(s.Registry), Registerer: s.Registry}
	if c.Token != "" || c.Tokens != "" || c.Doors.AllowLearn {
		cfg.Events = events
	}
	return web.Handlers(cfg)
}

// http returns what serves HTTP, or nil without --http.
func (c *upCommand) http(s *services.Set, opened *doors.Doors, events stream.Appender, log *slog.Logger, w io.Writer) (_ func(context.Context, func() error, func() string) error, err error) {
	h := services.HTTP{Addr: c.HTTP, TLS: c.HTTPTLS, Metrics: c.Metrics}
	if c.HTTP != "" {
		if h.Handlers, err = c.httpDoor(s, opened, events, log); err != nil {
			return nil, err
		}
	}
	server, err := s.Listen(h)
	if server == nil || err != nil {
		return nil, err
	}
	scheme := "http"
	if c.HTTPTLSCert != "" {
		scheme = "https"
	}
	if c.HTTP != "" {
		fmt.Fprintf(w, "  http   %s://%s\n", scheme, server.Addr())
	}
	if c.Metrics != "" {
		fmt.Fprintf(w, "  metrics http://%s\n", server.MetricsAddr())
	}
	return func(ctx context.Context, ready func() error, standing func() string) error {
		server.SetReady(ready, standing)
		return server.Run(ctx)
	}, nil
}
