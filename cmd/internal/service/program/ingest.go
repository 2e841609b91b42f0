// Package program is the services as programs: [Ingest] writes labelled events to Kafka, [Learner] turns a
// topic of them into a model and saves it in Redis, [Scorer] answers from the newest checkpoint over NATS.
// Each is cmd/NAME. hamlet runs them too, under the name hamlet-NAME: packages install them as links to it.
package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/follow"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

const ingestDescription = `Writes labelled events to Kafka, from files or over HTTP. Without --kafka it writes
files to the log of a hamlet up that runs on this machine.

Examples:
  ingest --kafka kafka:9092 --spam spam.mbox --ham ham.mbox
  ingest --spam spam.mbox --ham ham.mbox       beside a hamlet up, as its user
  ingest --kafka kafka:9092 --index index.csv corpus.tar.gz
  mailfeed | ingest --kafka kafka:9092 --format jsonl -
  ingest --kafka kafka:9092 --http 127.0.0.1:9100 --token "$TOKEN"
  curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
    -d '{"id":"a1","label":"spam","text":"You won"}' 127.0.0.1:9100/v1/events
  ingest --kafka kafka:9092 --from-topic hamlet.feeds.desk --source desk
  ingest --kafka kafka:9092 --http :9100 --token "$TOKEN" --metrics :9103 \
    --http-tls-cert cert.pem --http-tls-key key.pem    # for other machines

If the topic ends in an event of the source, ingest continues after that event.
With --no-resume it sends the whole source.

A copier (--from-topic) goes on where its consumer group is. One that was stopped for
longer than Kafka's offsets.retention.minutes (seven days by default) starts at the beginning: what
lies beyond the model's duplicate window is learnt twice.`

type ingestFlags struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Labelled files, directories, or - for standard input; .gz and .zst are unpacked."`
	source.Flags
	settings.ModelName
	settings.Machine
	settings.Kafka
	settings.Topic
	Resume bool     `help:"Continue after the last event in the topic, if it is from this source." default:"true" negatable:""`
	From   string   `name:"from-topic" help:"Copy the events of this topic, which one principal writes; they get the source of --source." placeholder:"TOPIC"`
	Tenant []string `help:"Tenants that --from-topic may name; \"*\": every one." default:"default" placeholder:"NAME"`
	Rate   float64  `help:"Events a second; 0 is as fast as Kafka takes them." default:"0" placeholder:"N"`
	HTTP   string   `name:"http" help:"Serve /metrics, /healthz, /readyz here and, with tokens, POST /v1/events." placeholder:"ADDR"`
	settings.EventsHTTP
	settings.Asking
	Token    string        `help:"Bearer token of POST /v1/events; better in the environment." placeholder:"SECRET"`
	InFlight int           `help:"Requests to POST /v1/events handled at the same time; further ones get 429." default:"${in_flight}" placeholder:"N"`
	Deadline time.Duration `help:"POST /v1/events waits this long for Kafka, then answers 503." default:"${deadline}" placeholder:"D"`
	cli.LogFlags
	cli.ProgramFlags
}

const (
	maxInFlight = 1024        // requests of up to 40 MiB
	maxDeadline = time.Minute // an answer later than that is not taken: see package httpd
)

// check reports flags that contradict each other or are outside their range.
func (f *ingestFlags) check(hasSource bool) error {
	switch {
	case f.From != "":
		return f.checkCopy(hasSource)
	case !hasSource && f.HTTP == "":
		return cli.Usagef("nothing to ingest: name a source, or an address with --http")
	case !hasSource && f.Token == "" && f.Tokens == "":
		return cli.Usagef("the HTTP endpoint for events needs a bearer token: set --tokens, or --token (or HAMLET_TOKEN)")
	case f.InFlight < 1 || f.InFlight > maxInFlight:
		return cli.Usagef("--in-flight: %d is not in 1…%d", f.InFlight, maxInFlight)
	case f.Deadline <= 0 || f.Deadline > maxDeadline:
		return cli.Usagef("--deadline: %v is not above zero, up to %v", f.Deadline, maxDeadline)
	}
	groups := []settings.Checker{f.Topic, f.Asking}
	if !f.beside(hasSource) {
		groups = append(groups, f.Kafka)
	}
	return errors.Join(f.CheckAt(f.HTTP, f.Token), settings.Check(groups...), settings.CheckRate(f.Rate))
}

// beside reports whether events go to a hamlet up on this machine. It has an HTTP door of its own.
func (f *ingestFlags) beside(hasSource bool) bool {
	return hasSource && f.HTTP == "" && len(f.Kafka.Kafka) == 0
}

// checkCopy reports flags that contradict --from-topic.
func (f *ingestFlags) checkCopy(hasSource bool) error {
	switch {
	case hasSource:
		return cli.Usagef("--from-topic is in place of a file: name one of them")
	case f.Token != "" || f.Tokens != "":
		return cli.Usagef("--from-topic: run another ingest for events over HTTP; this one may have other rights in Kafka")
	case len(f.Source) != 1 || f.Source[0].Share != 0:
		return cli.Usagef("--from-topic: name the source of its events with --source NAME")
	case f.Rate != 0 || !f.Resume:
		return cli.Usagef("--from-topic goes on where its consumer group is, as fast as it goes: " +
			"leave --rate and --no-resume out")
	}
	return errors.Join(f.CheckAt(f.HTTP, ""), settings.Check(f.Kafka, f.Topic, f.Asking), source.CheckSampled(f.Sampled))
}

// Ingest runs ingest with its arguments until it is done or ctx ends.
func Ingest(ctx context.Context, args []string, stdio cli.IO) (err error) {
	defer func() { err = settings.WithoutServers(advice.Add(err)) }()
	var f ingestFlags
	if _, err := settings.Parse("ingest", ingestDescription, &f, args, stdio); err != nil {
		return err
	}
	log := f.Logger(stdio.Err)
	sourceConfig := f.Flags.Config(f.Sources, source.FlipFlags{})
	sourceConfig.Stdin = stdio.In
	hasSource := !sourceConfig.None()
	if err := f.check(hasSource); err != nil {
		return err
	}
	if err := parts.CheckOpenFiles("ingest", parts.ServiceFiles); err != nil {
		return err
	}
	var src *ingest.Input
	if hasSource {
		if src, err = ingest.OpenSource(sourceConfig); err != nil {
			return err
		}
		defer src.Close()
	}
	s := parts.New("hamlet-ingest", f.Model, log)
	defer s.Close()
	if f.beside(hasSource) {
		s.Logs, err = f.Machine.Beside(f.Kafka, "hamlet-ingest", log)
	} else {
		err = s.OpenKafka(ctx, f.Kafka, f.Topic)
	}
	if err != nil {
		return err
	}
	events, err := s.OpenLog(s.Topic())
	if err != nil {
		return err
	}
	log.Info("ingest starts",
		"model", f.Model, "kafka", f.Kafka.Kafka, "http", f.HTTP, "token", f.Token != "", "tokens", f.Tokens)
	m := newIngestMetrics(s.Registry)
	file, err := f.OpenTokens(log)
	if err != nil {
		return err
	}
	h := f.http(m, file, events, log)
	work := file.Watch
	if f.From != "" {
		letters, err := s.OpenLog(stream.DeadLetterTopic)
		if err != nil {
			return err
		}
		work = func(ctx context.Context) error {
			return ingest.Copy(ctx, ingest.CopyConfig{
				Kafka: s.Logs.(kafka.Config), From: f.From, Group: "hamlet.ingest." + f.Model + "." + f.From,
				Events: events, Letters: letters, Source: f.Source[0].Name, Tenants: f.Tenant,
				Sampled: f.Sampled, Ask: f.Asking.Asking(), Log: log,
				Copied: func(letters, events int) { m.rejected.Add(float64(letters)); m.sent.Add(float64(events)) },
			})
		}
	}
	if src != nil {
		work = func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			if file != nil {
				g.Go(func() error { return file.Watch(ctx) })
			}
			g.Go(func() error { return f.stream(ctx, src, follow.Topic(events, s.Logs), events, m, stdio, log) })
			return g.Wait()
		}
	}
	err = s.Run(ctx, h, work)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Info("stopped; what was sent is in the topic, and the same command goes on behind it")
		return nil
	}
	return err
}

func (f *ingestFlags) stream(ctx context.Context, src *ingest.Input, read follow.Config, events stream.Appender,
	m *ingestMetrics, stdio cli.IO, log *slog.Logger) error {
	rejections := report.Rejections{W: stdio.Err}
	counter := progress.NewCounter(stdio.Err)
	sent := 0
	cfg := ingest.Config{
		Events: machine.Waiting(events), Rate: f.Rate, Log: log,
		Rejected: func(err error) { m.rejected.Inc(); rejections.Add(err) },
		Sent: func(n int) {
			m.sent.Add(float64(n))
			sent += n
			counter.Set(sent, src.Total())
		},
	}
	if f.Resume {
		var err error
		if cfg.Resume, err = ingest.FindEnd(ctx, read, log); errors.Is(err, stream.ErrDenied) {
			return fmt.Errorf("%w; or, as a user that only writes, send the whole source with --no-resume", err)
		} else if err != nil {
			return err
		}
	}
	start := time.Now()
	stats, err := ingest.Send(ctx, cfg, src)
	counter.Close()
	rejections.Close()
	if err != nil {
		return err
	}
	log.Info("the source has been sent", "events", stats.Sent, "already_there", stats.Skipped,
		"rejected", stats.Rejected, "seconds", time.Since(start).Seconds())
	if stats.Sent+stats.Skipped == 0 {
		return fmt.Errorf("nothing was sent: the source holds no event that can be learnt from (%d rejected)", stats.Rejected)
	}
	return nil
}

// http returns what ingest serves over HTTP.
func (f *ingestFlags) http(m *ingestMetrics, file *tokens.File, topic stream.Topic,
	log *slog.Logger) parts.HTTP {
	readiness := ingest.NewReadiness(func(ctx context.Context) error {
		_, err := follow.Bounds(ctx, follow.Config{Log: topic, Name: topic.Name()})
		return err
	})
	h := parts.HTTP{Addr: f.HTTP, TLS: f.HTTPTLS, Metrics: f.Metrics, Ready: readiness.Ready}
	if f.Token == "" && file == nil {
		return h
	}
	events := ingest.NewHTTP(ingest.HTTPConfig{
		Events: topic, Token: f.Token, Tokens: file, Ask: f.Asking.Asking(), MaxInFlight: f.InFlight, Deadline: f.Deadline, Log: log,
		Count: func(token string, code, events int) {
			m.tokens.Count(token, code, events)
			m.requests.WithLabelValues(strconv.Itoa(code)).Inc()
			m.sent.Add(float64(events))
		},
	})
	h.Handlers = map[string]http.Handler{"POST /v1/events": events}
	return h
}

// ingestMetrics are what ingest shows to Prometheus.
type ingestMetrics struct {
	sent, rejected prometheus.Counter
	requests       *prometheus.CounterVec
	tokens         *tokens.Metrics
}

func newIngestMetrics(registry prometheus.Registerer) *ingestMetrics {
	const ns, sub = "hamlet", "ingest"
	factory := promauto.With(registry)
	return &ingestMetrics{
		sent: factory.NewCounter(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: "events_total",
			Help: "Events that Kafka has acknowledged."}),
		rejected: factory.NewCounter(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: "rejected_total",
			Help: "Items of a source, or records of --from-topic, that cannot be learnt from."}),
		requests: factory.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: "http_requests_total",
			Help: "Requests to POST /v1/events, by status."}, []string{"code"}),
		tokens: tokens.NewMetrics(registry),
	}
}
