// Package console is the web console: pages that show what the model knows, doubts and is
// told, and forms that steer it. It reads what stands on NATS, Redis and Kafka, and keeps
// nothing that must last.
//
// Each page is a package below this one, in the frame of package page. Package access says
// who may come in. A server that is away empties its part of a page, and no more.
package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	natsgo "github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// A Config says what the console shows, and to whom.
type Config struct {
	Model string // its name
	Topic string // of its events
	Guard *access.Guard
	NATS  *natsgo.Conn // may be without a server for a while
	Store state.Store
	Kafka stream.Logs             // without brokers, what needs Kafka says so
	Kept  *nats.MailArchiveReader // of mail that scorers keep
	Ask   ingest.Asking           // whose label review asks for by chance
	Log   *slog.Logger
}

// A Console serves the pages of one model.
type Console struct {
	cfg   Config
	site  *page.Site
	audit *nats.Audit
	work  []func(context.Context) error // beside the pages, until the context ends
}

// New returns a console. Handler serves it during Run. Without an audit nothing can be done
// in it, and a user who tries is told why. The audit is tried again with each action.
func New(ctx context.Context, cfg Config) (*Console, error) {
	audit, err := nats.NewAudit(cfg.NATS, cfg.Model)
	if err != nil {
		return nil, err
	}
	if err := audit.Prepare(ctx); errors.Is(err, nats.ErrRefused) {
		cfg.Log.Warn("the console shows pages, and nothing can be done there", "error", err)
	}
	c := &Console{cfg: cfg, audit: audit, work: []func(context.Context) error{cfg.Guard.Run}}
	c.site = page.NewSite(page.Config{Model: cfg.Model, Audit: c.keep, Log: cfg.Log})
	c.addPages()
	return c, nil
}

// Handler returns what serves the console.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/static/", page.Static())
	mux.Handle("/", c.site.Handler())
	return c.cfg.Guard.Wrap(mux)
}

// Run does what goes on beside the pages, until ctx ends. Then it ends the streams of events.
func (c *Console) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, c.site.Close)()
	g, ctx := errgroup.WithContext(ctx)
	for _, work := range c.work {
		g.Go(func() error { return work(ctx) })
	}
	return g.Wait()
}
