package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"hamlet/cmd/internal/background"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/httpd"
	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/learner"
	"hamlet/cmd/internal/progress"
	"hamlet/cmd/internal/report"
	"hamlet/cmd/internal/scorer"
	"hamlet/cmd/internal/settings"
	"hamlet/cmd/internal/source"
	"hamlet/cmd/internal/up"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/embedded"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

type upCommand struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Labelled files, directories, or - for standard input. Without any, synthetic mail."`
	source.Flags
	source.FlipFlags
	Synthetic generatorFlags `embed:""`
	settings.ModelFlag
	settings.Model
	settings.Kafka
	settings.NATS
	settings.Alerts
	settings.Redis
	settings.Topic
	settings.Versions
	settings.Thresholds
	Data        string        `help:"Keep everything in this directory, so that it survives a restart. Without it all is in memory." type:"path" placeholder:"DIR"`
	Once        bool          `help:"End after the stream and print what eval prints."`
	JSON        bool          `name:"json" help:"Print the result as one object in JSON."`
	Rate        float64       `help:"Events a second that ingest sends; 0 is as fast as it goes." default:"0" placeholder:"N"`
	Generate    *int          `help:"How many synthetic mails to stream where no source is given; 0 never ends. 20000 on fresh brokers of its own, none where there is a model or on real brokers." placeholder:"N"`
	From        int           `help:"Leave the first N events out of the metrics." default:"0" placeholder:"N"`
	SaveEvery   time.Duration `help:"The longest that learnt events stay unsaved." default:"3s" placeholder:"D"`
	AdoptConfig bool          `help:"Go on with a model that was made with another configuration; the model records it."`
	AcceptGap   bool          `help:"Go on where retention has taken records that the model has not seen."`
	HTTP        string        `name:"http" help:"Serve /metrics, /healthz, /readyz and, with --token, POST /v1/events on this address." placeholder:"ADDR"`
	Token       string        `help:"Bearer token for POST /v1/events; better in the environment." placeholder:"TOKEN"`
	ListenKafka string        `help:"Address of the embedded Kafka." default:"127.0.0.1:0" placeholder:"ADDR" group:"Embedded brokers"`
	ListenNATS  string        `name:"listen-nats" help:"Address of the embedded NATS; 127.0.0.1:4222, or any port if that is taken." placeholder:"ADDR" group:"Embedded brokers"`
	ListenRedis string        `help:"Address of the embedded Redis." default:"127.0.0.1:0" placeholder:"ADDR" group:"Embedded brokers"`
	cli.LogFlags
}

// Help is shown by kong below the flags.
func (upCommand) Help() string {
	return `Examples:` + syntheticExample + `
  hamlet up --spam spam.mbox --ham ham.mbox --data ~/.hamlet
  hamlet up --index index.csv corpus.tar.gz --once   the figures that eval prints
  hamlet up --kafka kafka:9092 --nats nats://nats:4222 --redis redis:6379 --http :9100 --token SECRET

` + faultExamples + `It streams the sources, shows rate, lag, log loss, 1-ROCA% and the alarms as they change,
then serves until it is stopped. With --data it goes on where it was, however it ended.`
}

func (c *upCommand) run(ctx context.Context, stdio cli.IO) error {
	log := c.Logger(stdio.Err)
	if c.LogLevel == "info" && progress.IsTerminal(stdio.Err) { // the progress says it all
		log = slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if err := c.check(); err != nil {
		return err
	}
	src, err := c.source(stdio.In)
	if err != nil {
		return err
	}
	defer src.Close()

	modelConfig, err := c.Model.Config(src.dense)
	if err != nil {
		return err
	}

	embeddedKafka := len(c.Kafka.Kafka) == 0
	brokers, err := c.startBrokers(stdio.Err, log)
	if err != nil {
		return err
	}
	defer brokers.close()

	kafkaConfig, err := c.Kafka.Config("hamlet-up", log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if embeddedKafka {
		c.Topic.Retention = -1 // what is in --data stays there
	}
	if err := c.Topic.Ensure(ctx, kafkaConfig, c.ModelFlag.Model); err != nil {
		return err
	}
	if src.demonstration {
		if err := c.demonstrate(ctx, src, kafkaConfig, embeddedKafka, log, stdio.Err); err != nil {
			return err
		}
	}
	redisConfig, err := c.Redis.Config(c.ModelFlag.Model, log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	c.Versions.Apply(&redisConfig)
	redis.SetLogger(log)
	store, err := redis.New(redisConfig)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Ping(ctx); err != nil {
		return err
	}
	natsConfig, err := c.NATS.Config("hamlet-up", log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	conn, err := nats.Connect(natsConfig)
	if err != nil {
		return err
	}
	defer conn.Close()
	producer, err := kafka.NewProducer(kafkaConfig)
	if err != nil {
		return err
	}
	defer producer.Close()

	alerts, err := c.Alerts.Channels(ctx, settings.AlertSource{NATS: c.NATS, Conn: conn, Log: log})
	if err != nil {
		return err
	}
	defer alerts.Close()
	for i := range alerts {
		fmt.Fprintf(stdio.Err, "  alerts %s\n", alerts[i].Hint)
	}
	registry := httpd.NewRegistry()
	runner := background.New(registry)
	defer runner.Close()
	topic := stream.EventsTopic(c.ModelFlag.Model)
	rejections := &report.Rejections{W: stdio.Err}
	cfg := up.Config{
		Kafka: kafkaConfig, Topic: topic, Producer: producer, Store: store, From: c.From, Once: c.Once, Log: log,
		Learner: learner.Config{
			Consumer: kafka.ConsumerConfig{
				Config: kafkaConfig, Topic: topic, Group: brokers.group, AcceptGap: c.AcceptGap,
			},
			DeadLetters: producer, Alerts: alerts, Runner: runner, Store: store, Model: modelConfig, Name: c.ModelFlag.Model,
			SaveEvery: c.SaveEvery, AdoptConfig: c.AdoptConfig, Metrics: learner.NewMetrics(registry), Log: log,
		},
		Open:     src.open,
		Ingest:   ingest.Config{Rate: c.Rate, Once: src.once, Rejected: rejections.Add, Log: log},
		Progress: up.NewProgress(stdio.Err, src.total),
	}
	answers, err := scorer.New(scorer.Config{
		Conn: conn, Store: store, Model: c.ModelFlag.Model, SpamAt: c.SpamAt, HamAt: c.HamAt, Registerer: registry, Log: log,
	})
	if err != nil {
		return err
	}
	cfg.Scorer, cfg.Answers = answers.Run, answers.Ready
	endpoint, err := c.eventsEndpoint(producer, topic, log)
	if err != nil {
		return err
	}
	cfg.HTTP, err = c.http(httpd.Config{Addr: c.HTTP, Registry: registry, Handlers: endpoint, Log: log}, stdio.Err)
	if err != nil {
		return err
	}
	cfg.Done = func(r *report.Result) error {
		rejections.Close()
		write := r.WriteTable
		if c.JSON {
			write = r.WriteJSON
		}
		if src.open != nil {
			if err := r.Err(); err != nil {
				return err
			}
		}
		if src.open != nil || c.Once {
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
	return up.Run(ctx, cfg)
}

const (
	demonstrated      = 20_000  // synthetic mails where nothing else is named
	endlessKafkaBytes = 1 << 30 // kept of an endless stream
	endlessRate       = 500     // events a second of an endless stream, so that the learner keeps up
)

// A labelled is what up streams: a source, or the generator.
type labelled struct {
	dense []string
	total int
	once  bool                         // it can be read only once
	open  func() (ingest.Items, error) // nil: nothing to stream
	close func() error

	demonstration bool // synthetic mail because nothing else was named
}

func (l *labelled) Close() error {
	if l.close == nil {
		return nil
	}
	return l.close()
}

// check reports wrong usage that no flag shows by itself.
func (c *upCommand) check() error {
	switch {
	case c.Generate != nil && *c.Generate < 0:
		return cli.Usagef("--generate: %d is below zero", *c.Generate)
	case c.SaveEvery <= 0:
		return cli.Usagef("--save-every: %v is not above zero", c.SaveEvery)
	case c.From < 0:
		return cli.Usagef("--from: %d is below zero", c.From)
	case !c.Thresholds.Valid():
		return cli.Usagef("%s", settings.WrongThresholds)
	case c.Token != "" && c.HTTP == "":
		return cli.Usagef("--token is for POST /v1/events: give it an address with --http")
	case c.Limit < 0:
		return cli.Usagef("--limit: %d is below zero", c.Limit)
	}
	return errors.Join(c.FlipFlags.Check(), c.Topic.Check(), c.Versions.Check(), c.Alerts.Check(), settings.CheckRate(c.Rate))
}

func (c *upCommand) source(stdin io.Reader) (*labelled, error) {
	cfg := c.Flags.Config(c.Sources, c.FlipFlags)
	cfg.Stdin = stdin
	if !cfg.None() {
		if c.Generate != nil {
			return nil, cli.Usagef("--generate: synthetic mail is in place of a source, and one is given")
		}
		if err := checkSynthetic(&c.Synthetic); err != nil {
			return nil, err
		}
		s, err := source.Open(cfg)
		if err != nil {
			return nil, err
		}
		total, known := s.Total()
		if !known {
			total = -1
		}
		return &labelled{
			dense: s.Dense(), total: total, once: s.Once(), close: s.Close,
			open: func() (ingest.Items, error) { return s.Events(), nil },
		}, nil
	}
	if err := checkReading(&c.Flags); err != nil {
		return nil, err
	}
	if !hasGenerator && c.Generate == nil {
		return &labelled{dense: c.Flags.Dense, demonstration: true}, nil
	}
	limit := demonstrated
	if c.Generate != nil {
		limit = *c.Generate
	}
	if c.Flags.Limit > 0 {
		limit = c.Flags.Limit
	}
	total := limit
	if limit == 0 {
		if c.Once {
			return nil, cli.Usagef("--once needs a stream that ends: --generate 0 never does")
		}
		total = -1
		if c.Rate == 0 {
			c.Rate = endlessRate
		}
	}
	generate, err := c.Synthetic.generator(cfg.Flip)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	open := func() (ingest.Items, error) { return generate(limit) }
	return &labelled{dense: c.Flags.Dense, total: total, open: open, demonstration: c.Generate == nil}, nil
}

// demonstrate decides whether synthetic mail that nobody asked for is streamed:
// on fresh brokers of our own, or to go on with what it began there. A model that
// has learnt real mail must not learn it.
func (c *upCommand) demonstrate(ctx context.Context, src *labelled, cfg kafka.Config, own bool, log *slog.Logger, w io.Writer) error {
	topic := stream.EventsTopic(c.ModelFlag.Model)
	if own && hasGenerator {
		end, err := ingest.FindEnd(ctx, cfg, topic, log)
		if err != nil {
			return err
		}
		if end.Records == 0 {
			return nil
		}
		items, err := src.open()
		if err != nil {
			return err
		}
		held, _, err := end.HeldBy(items)
		if err != nil {
			return err
		}
		if held > 0 && held == len(end.Marks) { // before that, too, there must be nothing else
			if items, err = src.open(); err != nil {
				return err
			}
			only, err := ingest.HoldsOnly(ctx, cfg, topic, items)
			if err != nil || only {
				return err
			}
		}
	}
	src.open = nil
	fmt.Fprintln(w, noSource)
	return nil
}

// brokers are the embedded ones that this process started.
type brokers struct {
	group   string // the learner's, on this Kafka
	closers []func() error
}

func (b *brokers) close() {
	for i := len(b.closers) - 1; i >= 0; i-- {
		_ = b.closers[i]() // the process is about to end; what matters was saved
	}
}

// startBrokers starts whatever no flag names, and puts its address into the
// flags.
func (c *upCommand) startBrokers(w io.Writer, log *slog.Logger) (_ *brokers, err error) {
	b := &brokers{group: "hamlet.learner." + c.ModelFlag.Model}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	dir := func(string) string { return "" }
	if c.Data != "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
		unlock, err := embedded.LockDir(c.Data)
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, unlock)
		dir = func(name string) string { return filepath.Join(c.Data, name) }
	}
	own := ""
	if len(c.Kafka.Kafka) == 0 {
		options := embedded.KafkaOptions{Dir: dir("kafka"), Addr: c.ListenKafka}
		if c.Generate != nil && *c.Generate == 0 { // a stream without end must not fill the memory
			options.MaxBytes = endlessKafkaBytes
		}
		k, err := embedded.StartKafka(options)
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, k.Close)
		c.Kafka.Kafka = []string{k.Addr()}
		// A process killed without a word is still a member of its group for a
		// while; nobody else reads this Kafka, so there is nothing to wait for.
		b.group = fmt.Sprintf("%s.%d", b.group, time.Now().UnixNano())
		own += "  kafka  " + k.Addr() + "\n"
	}
	if c.Redis.Redis == "" {
		r, err := embedded.StartRedis(embedded.RedisOptions{Dir: dir("redis"), Addr: c.ListenRedis, Log: log})
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, r.Close)
		c.Redis.Redis = r.Addr()
		own += "  redis  " + r.Addr() + "\n"
	}
	if c.NATS.NATS == "" {
		n, err := embedded.StartNATS(embedded.NATSOptions{Dir: dir("nats"), Addr: c.natsAddr(), Log: log})
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, n.Close)
		c.NATS.NATS = n.URL()
		own += "  nats   " + n.URL() + "\n"
	}
	if own != "" {
		where := "in memory: all is gone when it ends; --data DIR keeps it"
		if c.Data != "" {
			where = "in " + c.Data
		}
		fmt.Fprintf(w, "embedded brokers, %s\n%s", where, own)
	}
	return b, nil
}

// natsAddr is where the embedded NATS listens: what the flag says, else the port
// that `hamlet score` asks, else any.
func (c *upCommand) natsAddr() string {
	if c.ListenNATS != "" {
		return c.ListenNATS
	}
	const usual = "127.0.0.1:4222"
	if c.Once {
		return "127.0.0.1:0" // nobody will ask
	}
	l, err := net.Listen("tcp", usual)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return usual
}

// http returns what serves HTTP, or nil without --http.
func (c *upCommand) http(cfg httpd.Config, w io.Writer) (func(context.Context, func() error) error, error) {
	if c.HTTP == "" {
		return nil, nil
	}
	server, err := httpd.New(cfg)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "  http   http://%s\n", server.Addr())
	return func(ctx context.Context, ready func() error) error {
		server.SetReady(ready)
		return server.Run(ctx)
	}, nil
}

func (c *upCommand) eventsEndpoint(producer *kafka.Producer, topic string, log *slog.Logger) (map[string]http.Handler, error) {
	if c.Token == "" {
		return nil, nil
	}
	h, err := ingest.NewHTTP(ingest.HTTPConfig{Publisher: producer, Topic: topic, Token: c.Token, Log: log})
	if err != nil {
		return nil, err
	}
	return map[string]http.Handler{"POST /v1/events": h}, nil
}
