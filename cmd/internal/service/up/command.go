package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/door/doors"
	"hamlet/cmd/internal/door/httpdoor"
	"hamlet/cmd/internal/operate/console"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/httpd"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/learner"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/cmd/internal/show/report"
	"hamlet/cmd/internal/web/access"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// Command is hamlet up.
type Command struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Labelled files, directories, or - (default synthetic mail)."`

	Data  string  `help:"Keep all in this folder (default: one that is gone at the end)." type:"path" placeholder:"DIR"`
	Once  bool    `help:"End after the stream and print what eval prints."`
	JSON  bool    `name:"json" help:"Print the result as JSON."`
	From  int     `help:"Leave the first N events out of the metrics." default:"0" placeholder:"N"`
	Rate  float64 `help:"Events a second; 0 is as fast as it goes." default:"0" placeholder:"N"`
	HTTP  string  `name:"http" help:"Serve /metrics, /v1/score etc. See --http-tls-cert." placeholder:"ADDR"`
	Token string  `help:"Serve POST /v1/events too, with this bearer token." placeholder:"SECRET"`
	settings.EventsHTTP
	settings.ModelName
	settings.Learner
	settings.Scorer
	settings.ReadMail
	source.Flags
	Demo      bool            `help:"Stream it into --data, or to servers that flags name." group:"Synthetic mail"`
	Generate  *int            `help:"N mails; 0: no end." placeholder:"20000" group:"Synthetic mail"`
	Synthetic synthetic.Flags `embed:""`
	settings.Model
	settings.Kafka
	settings.Topic
	settings.NATS
	settings.Alerts
	settings.Redis
	settings.Versions
	ListenNATS   string      `name:"listen-nats" help:"Our own NATS; if the port is busy, any port." placeholder:"127.0.0.1:4222" group:"NATS"`
	Doors        doors.Flags `embed:""`
	Console      string      `help:"Serve the web console; prints a link to log in." placeholder:"ADDR"`
	ConsoleUsers string      `help:"File of users of the console, in place of the link (hamlet console user)." type:"existingfile" placeholder:"FILE" rare:"up"`
	Open         bool        `hidden:"" help:"A NATS without passwords, for everybody on this machine."`
	ListenKafka  string      `hidden:"" help:"Of 0.1.0; does nothing."`
	ListenRedis  string      `hidden:"" help:"Of 0.1.0; does nothing."`
	cli.LogFlags
}

// Help is shown by kong below the flags.
func (Command) Help() string {
	return `Examples:
  hamlet up                                 synthetic mail, then scoring
  hamlet up --spam spam.mbox --ham ham.mbox --data ~/.hamlet
  hamlet up --index index.csv corpus.tar.gz --once       as hamlet eval does
  hamlet up --kafka k:9092 --nats nats://n:4222 --redis r:6379 --http :80

Faults that raise alarms (nats sub 'hamlet.alerts.incident.>' shows them):
  hamlet up --bad-feed 10000                  one source gives wrong labels
  hamlet up --new-campaign 10000 --campaign-share .5        new kinds of spam

It learns the sources, then answers. Its doors are those of hamlet gateway.`
}

// saveBytes is about what saves write in a minute to the machine's own disk, at the default of --save-every. Who gives
// another value knows what it writes.
const saveBytes = 30e6

// unaskedSaveEvery is the default of --save-every where nobody can ask: what a save spares then is learning again
// after a crash, which takes less than the minute.
const unaskedSaveEvery = time.Minute

// unasked reports whether the command ends after its stream, and nobody was told until then where to ask.
func (c *Command) unasked(dir *machine.Dir) bool {
	return c.Once && dir != nil && c.NATS.InProcess != nil && c.ListenNATS == "" && !c.Doors.Any() &&
		c.HTTP == "" && c.Metrics == "" && c.Console == ""
}

// upFiles are the open files and connections that up needs: measured, 40 (November 2026). The
// rest is for clients.
const upFiles = 64

// check reports wrong usage that no flag shows by itself.
func (c *Command) check() error {
	errs := []error{
		c.CheckAt(c.HTTP, c.Token), cli.NotNegative("--from", c.From), cli.NotNegative("--limit", c.Limit),
		settings.CheckRate(c.Rate),
	}
	if c.Generate != nil {
		errs = append(errs, cli.NotNegative("--generate", *c.Generate))
	}
	if c.Console != "" {
		errs = append(errs, access.CheckListen(c.Console, false, false))
	} else if c.ConsoleUsers != "" {
		errs = append(errs, cli.Usagef("--console-users is for the console: give it an address with --console"))
	}
	groups := []settings.Checker{&c.Doors, c.Topic, c.Versions, c.Alerts, c.Learner, c.Scorer}
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

func (c *Command) Run(ctx context.Context, stdio cli.IO) (err error) {
	defer func() { err = c.refused(err) }()
	log := c.Logger(stdio.Err)
	if c.LogLevel == "info" && !c.LogDecisions && progress.IsTerminal(stdio.Err) { // the progress shows the same
		log = slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if err := c.check(); err != nil {
		return err
	}
	for _, gone := range []struct{ flag, value string }{{"listen-kafka", c.ListenKafka}, {"listen-redis", c.ListenRedis}} {
		if gone.value != "" {
			log.Warn("--" + gone.flag + " does nothing any more: hamlet up keeps its log and models in files. Programs that " +
				"write labels use its HTTP door, or a real Kafka: see INSTALL.md; leave it out")
		}
	}
	src, err := c.source(stdio.In)
	if err != nil {
		return err
	}
	defer src.Close()
	modelConfig, err := c.Model.Config(src.Dense)
	if err != nil {
		return err
	}

	if err := parts.CheckOpenFiles("hamlet up", upFiles); err != nil {
		return err
	}
	s := parts.New("hamlet-up", c.ModelName.Model, log)
	defer func() {
		if closing := s.Close(); err == nil { // or that is a consequence
			err = closing
		}
	}()
	dir, err := c.open(ctx, s, stdio.Err)
	if err != nil {
		return err
	}
	if err := c.storage(ctx, s, dir); err != nil {
		return err
	}
	events, err := s.OpenLog(s.Topic())
	if err != nil {
		return err
	}
	if src.Synthetic {
		if err := ingest.CheckSynthetic(ctx, follow.Topic(events, s.Logs)); err != nil {
			return fmt.Errorf("--demo: %w", err)
		}
	} else if src.Items == nil {
		fmt.Fprintln(stdio.Err, noSource)
	}
	conn, err := s.OpenNATS(c.NATS)
	if err != nil {
		return err
	}
	unasked := c.unasked(dir)
	learning, err := c.learner(ctx, s, modelConfig, unasked, stdio.Err)
	if err != nil {
		return err
	}
	source := stream.Appender(events)
	if dir != nil && !c.Once { // with --once somebody waits, and can make room
		source = machine.Waiting(events)
		learning.Letters, learning.Receipts = machine.Waiting(learning.Letters), machine.Waiting(learning.Receipts)
		if learning.Predictions != nil {
			learning.Predictions = machine.Waiting(learning.Predictions)
		}
	}
	if err := s.OpenTenants(c.Doors.Tenants); err != nil {
		return err
	}
	answers, err := s.OpenScorer(c.Scorer, 0, nats.ServiceConfig{})
	if err != nil {
		return err
	}
	if learning.Unasked = unasked; !unasked {
		learning.Saved = answers.Saved
	} else if learning.SaveEvery == learner.SaveEvery {
		learning.SaveEvery = unaskedSaveEvery
	}
	opened, err := c.doors(s, events, stdio.Err)
	if err != nil {
		return err
	}
	server, err := c.http(s, opened, events, stdio.Err)
	if err != nil {
		return err
	}
	kept, done, err := c.ReadMail.Open(conn, c.NATSAccess, c.ModelName.Model, log)
	if err != nil {
		return err
	}
	s.OnClose(done)
	pages, err := c.console(ctx, s, console.Config{
		Model: c.ModelName.Model, Topic: s.Topic(), NATS: conn, Store: s.Store, Kafka: s.Logs, Kept: kept,
		Ask: c.Doors.Asking.Asking(), Log: log,
	}, stdio.Err)
	if err != nil {
		return err
	}
	if dir != nil {
		registerFull(s.Registry, dir)
	}
	rejections := &report.Rejections{W: stdio.Err}
	return start(ctx, config{
		set: s, learner: learning, scorer: answers, http: server, doors: opened, console: pages,
		dir: dir, relearn: len(c.Kafka.Kafka) == 0 && c.Redis.Redis == "",
		input: src, from: c.From, once: c.Once, unasked: unasked, log: log,
		ingest:   ingest.Config{Events: source, Rate: c.Rate, Rejected: rejections.Add, Log: log},
		progress: newProgress(stdio.Err, src.Total()),
		done: func(r *report.Result) error {
			rejections.Close()
			debug.FreeOSMemory() // what the start or the stream has used
			return c.finish(r, src.Items != nil, stdio)
		},
	})
}

// learner opens the learner, and says on w how its alerts are heard.
func (c *Command) learner(ctx context.Context, s *parts.Set, cfg model.Config, unasked bool,
	w io.Writer) (learner.Config, error) {
	alerts, err := s.OpenAlerts(ctx, c.Alerts)
	if err != nil {
		return learner.Config{}, err
	}
	if alerts != nil {
		fmt.Fprintf(w, "  alerts nats sub --server %s 'hamlet.alerts.incident.>'   (kept in the JetStream stream %s)\n",
			nats.Redact(c.NATS.NATS), nats.AlertStream)
	}
	flags := c.Learner
	if !c.Journal.Journal || unasked && c.Data == "" { // then nothing was answered, and nothing will be
		flags.Answered = 0
	}
	learning, err := s.OpenLearner(ctx, flags, c.Topic, alerts, cfg)
	if c.SaveEvery == learner.SaveEvery && c.Redis.Redis == "" {
		learning.SaveBytes = saveBytes
	}
	return learning, err
}

// registerFull registers the metric of a folder without space.
func registerFull(registry prometheus.Registerer, dir *machine.Dir) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hamlet_log_full", Help: "1 while labels are refused because no space is left for the log.",
	}, func() float64 {
		if dir.Full() != nil {
			return 1
		}
		return 0
	}))
}

// refused gives an error that no start mends its exit status.
func (c *Command) refused(err error) error {
	refusals := []error{learner.ErrRefused, state.ErrPartitions}
	if c.Redis.Redis == "" { // a Redis may fail over to one that has all
		refusals = append(refusals, state.ErrCorrupt)
	}
	return cli.Refused(err, refusals...)
}

// storage opens the logs and the model's store: those that flags name, or else those of dir.
func (c *Command) storage(ctx context.Context, s *parts.Set, dir *machine.Dir) (err error) {
	if len(c.Kafka.Kafka) > 0 {
		err = s.OpenKafka(ctx, c.Kafka, c.Topic)
	} else {
		s.Logs = dir
		err = c.Topic.Ensure(ctx, dir, c.ModelName.Model)
	}
	if err != nil {
		return err
	}
	if c.Redis.Redis == "" {
		s.Store, err = dir.Store(c.ModelName.Model)
		return err
	}
	if err := s.OpenRedis(ctx, c.Redis, c.Versions); err != nil {
		return err
	}
	if dir != nil {
		dir.LearntBy(c.ModelName.Model, s.Store)
	}
	return nil
}

// finish prints the result of the stream, if there was one, and says where scores
// can be asked for.
func (c *Command) finish(r *report.Result, streamed bool, stdio cli.IO) error {
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
func (c *Command) doors(s *parts.Set, events stream.Appender, w io.Writer) (*doors.Doors, error) {
	if !c.Doors.Any() && c.HTTP == "" {
		return nil, nil
	}
	file, err := c.OpenTokens(s.Log)
	if err != nil {
		return nil, err
	}
	opened, err := s.OpenDoors(&c.Doors, file, events)
	if err == nil {
		parts.PrintDoors(w, opened)
	}
	return opened, err
}

// httpDoor returns the handlers of the HTTP door. At an address that others reach it is
// open only to those with a token.
func (c *Command) httpDoor(s *parts.Set, opened *doors.Doors, events stream.Appender) (map[string]http.Handler, error) {
	g := opened.Gateway()
	if err := c.CheckDoor(c.HTTP, c.Token != "" || g.HasTokens()); err != nil {
		s.Log.Info("--http serves metrics only", "http", c.HTTP, "reason", err)
		return nil, nil
	}
	if c.Token == "" && c.Tokens == "" && !c.Doors.AllowLearn {
		events = nil
	}
	return httpdoor.Handlers(g, c.Token, events), nil
}

// http takes the addresses of --http and --metrics, and returns nil without either.
func (c *Command) http(s *parts.Set, opened *doors.Doors, events stream.Appender,
	w io.Writer) (_ *httpd.Server, err error) {
	h := parts.HTTP{Addr: c.HTTP, TLS: c.HTTPTLS, Metrics: c.Metrics}
	if c.HTTP != "" {
		if h.Handlers, err = c.httpDoor(s, opened, events); err != nil {
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
	return server, nil
}
