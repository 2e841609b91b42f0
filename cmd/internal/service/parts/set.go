// Package parts opens what hamlet's services consist of: Kafka, Redis, NATS, the way of alerts,
// the learner, the scorer, doors, metrics and HTTP. Learner, scorer, ingest, gateway and hamlet up all
// start with it.
//
//	s := parts.New("hamlet-scorer", "default", log)
//	defer s.Close()
//	err := s.OpenRedis(ctx, redisFlags, settings.Versions{})
//	_, err = s.OpenNATS(natsFlags)
//	worker, err := s.OpenScorer(flags, 0, nats.ServiceConfig{})
//	return s.Run(ctx, parts.HTTP{Addr: addr, Ready: worker.Ready}, worker.Run)
//
// Close closes what was opened, the last first.
package parts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/httpd"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/openfiles"
)

// A Set is what one process consists of. It is for one goroutine.
type Set struct {
	Registry *prometheus.Registry
	EventsOf string // another model whose events this one learns; "": it has its own
	Shadow   bool   // it learns beside that model: see learner.Shadow

	Logs  stream.Logs   // OpenKafka writes it, or who has others
	Store state.Store   // OpenRedis writes it, or who has another
	NATS  settings.NATS // how NATS is reached, which may be nowhere; OpenNATS writes it

	Log *slog.Logger

	name, model string
	conn        *natsgo.Conn      // to NATS; nil: not yet
	answered    *answered.Service // of the learner; nil: none
	tenants     *gateway.Tenants  // OpenTenants writes it; nil: none
	closers     []func() error    // of what is open, in the order of opening
	notice
}

// New returns a set without connections. The name is the client's at Kafka and
// NATS, the model the one that the process works for.
func New(name, model string, log *slog.Logger) *Set {
	return &Set{
		Registry: httpd.NewRegistry(), name: name, model: model, Log: log,
		notice: notice{patience: startsWithin, log: log},
	}
}

// Close closes everything that is open, the last opened first. It returns the errors of what Closes named.
func (s *Set) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	s.notice.close()
	return errors.Join(errs...)
}

// OnClose has Close call f.
func (s *Set) OnClose(f func()) { s.closers = append(s.closers, func() error { f(); return nil }) }

// Closes has Close close c.
func (s *Set) Closes(c io.Closer) { s.closers = append(s.closers, c.Close) }

// Topic returns the topic of the events that the model learns.
func (s *Set) Topic() string { return stream.EventsTopic(cmp.Or(s.EventsOf, s.model)) }

// An HTTP says what is served over HTTP.
type HTTP struct {
	Addr     string           // host:port, may be empty
	TLS      settings.HTTPTLS // at Addr
	Metrics  string           // host:port of /metrics, /healthz and /readyz; empty: Addr
	Ready    func() error     // why /readyz does not answer 200
	Summary  func() string    // what /readyz adds where it does; may be nil
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
	tls, err := h.TLS.Config(s.Log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	server, err := httpd.New(httpd.Config{
		Addr: h.Addr, TLS: tls, Metrics: h.Metrics, Registry: s.Registry,
		Ready: h.Ready, Standing: h.Summary, Handlers: h.Handlers, Log: s.Log,
	})
	if err != nil {
		return nil, httpd.Choose(err, "--http", "--metrics")
	}
	if h.Addr != "" {
		s.Log.Info("http", "addr", server.Addr(), "tls", tls != nil)
	}
	if h.Metrics != "" {
		s.Log.Info("metrics", "addr", server.MetricsAddr())
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
	return advice.Add(g.Wait())
}

// CheckOpenFiles returns an error that says what to do if the process may open fewer
// than n files and connections at once. Go's runtime has raised the soft limit to the
// hard one. A program that runs out of them retries, and never gets anywhere.
func CheckOpenFiles(program string, n int) error {
	limit, ok := openfiles.Limit()
	if !ok || limit >= uint64(n) {
		return nil
	}
	return fmt.Errorf("%s needs %d open files and connections, and the limit is %d: "+
		"raise it (ulimit -n %d; LimitNOFILE= of systemd)", program, n, limit, max(n, 1024))
}

// ServiceFiles are the open files and connections that ingest, learner and scorer need.
// Measured are 10 to 17 (November 2026); the rest is for clients.
const ServiceFiles = 32
