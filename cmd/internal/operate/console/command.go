package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/httpd"
	"hamlet/cmd/internal/process/keypair"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream/nats"
)

// A Command holds the commands below `hamlet console` and their flags, for kong to fill.
type Command struct {
	Serve serve              `cmd:"" default:"withargs" help:"Serve the console. The default."`
	User  access.UserCommand `cmd:"" help:"Make a line for the file of users."`
}

// Help is what kong prints below the flags.
func (Command) Help() string {
	return `Examples:

  hamlet console user ann --roles look,label,operate >> users.txt
  hamlet console --users users.txt                 http://127.0.0.1:9110`
}

type serve struct {
	Listen  string `help:"Serve the console here." default:"127.0.0.1:9110" placeholder:"ADDR"`
	Metrics string `help:"Serve /metrics, /healthz and /readyz here." placeholder:"ADDR"`
	TLSCert string `name:"tls-cert" help:"Serve HTTPS: PEM of the certificate; it is read again when it changes." type:"existingfile" placeholder:"FILE"`
	TLSKey  string `name:"tls-key" help:"PEM of its key." type:"existingfile" placeholder:"FILE"`
	access.Flags
	settings.ModelName
	NATS string `name:"nats" help:"URLs of NATS, comma-separated." default:"nats://127.0.0.1:4222" group:"NATS"`
	settings.NATSAccess
	settings.ReadMail
	settings.Asking
	settings.Machine
	settings.Redis
	settings.Kafka
	cli.LogFlags
}

// Help is what kong prints below the flags.
func (serve) Help() string {
	return `A page to look at: what was decided and why, how good it is, who taught it what, what
is wrong now. And what to do about it: label, pin, withdraw.

Examples:

  hamlet console user ann --roles look,label,operate >> users.txt
  hamlet console --users users.txt                 beside a running hamlet up
  hamlet console --users users.txt --nats nats://n:4222 --redis r:6379 --kafka k:9092
  hamlet console --listen :443 --tls-cert c.pem --tls-key k.pem --users users.txt
  hamlet console --behind-proxy 10.0.0.5 --user-header X-Remote-User \
    --roles-header X-Remote-Roles --host mail.example.org

Roles: look sees figures, names and verdicts. label sees the content of mail too, and
labels. operate acknowledges, pins versions, withdraws what a source taught, and says
how far a source is believed. Every action is a line in the stream HAMLET_AUDIT.

The console keeps nothing that must last, and several may run. It needs the rights of
the user console of NATS (deploy/nats/hamlet.conf) and of Redis (deploy/redis/users.acl).
Other machines reach it only by HTTPS or through a proxy.`
}

// consoleFiles are the open files and connections of a console: its connections to the
// servers, and those of the browsers.
const consoleFiles = 512

func (c *serve) Run(ctx context.Context, stdio cli.IO) (err error) {
	log := c.Logger(stdio.Err)
	withTLS := c.TLSCert != "" || c.TLSKey != ""
	if err := errors.Join(c.Flags.Check(c.Listen, withTLS), c.Asking.Check()); err != nil {
		return err
	}
	if err := parts.CheckOpenFiles("hamlet console", consoleFiles); err != nil {
		return err
	}
	tlsConfig, err := c.tls(log)
	if err != nil {
		return err
	}
	guarding, err := c.Flags.Config(c.Listen, withTLS, log)
	if err != nil {
		return err
	}
	guarding.Style = page.StyleURL()
	guard, err := access.New(guarding)
	if err != nil {
		return err
	}
	s := parts.New("hamlet-console", c.Model, log)
	defer s.Close()
	cfg, err := c.reach(ctx, s, log)
	if err != nil {
		return err
	}
	cfg.Guard = guard
	served, err := Listen(ctx, Listener{
		Addr: c.Listen, Flag: "--listen", TLS: tlsConfig, Metrics: c.Metrics, Services: s, Log: log,
	}, cfg)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdio.Err, "  console %s\n", served.URL())
	defer s.Notify(ctx, nil)() // it shows pages while servers are away
	return served.Run(ctx)
}

// tls returns how the console speaks TLS; nil is plain text.
func (c *serve) tls(log *slog.Logger) (*tls.Config, error) {
	switch {
	case c.TLSCert == "" && c.TLSKey == "":
		return nil, nil
	case c.TLSCert == "" || c.TLSKey == "":
		return nil, cli.Usagef("--tls-cert and --tls-key: give both, the certificate and its key")
	}
	pair, err := keypair.Load(c.TLSCert, c.TLSKey, log)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: pair.Server}, nil
}

// reach opens what the console reads. None of it has to be there yet.
func (c *serve) reach(ctx context.Context, s *parts.Set, log *slog.Logger) (Config, error) {
	cfg := Config{Model: c.Model, Topic: s.Topic(), Ask: c.Asking.Asking(), Log: log}
	natsConfig, err := c.NATSAccess.Config(c.NATS, "hamlet-console", log)
	if err != nil {
		return cfg, &cli.UsageError{Err: err}
	}
	natsConfig.Wait = true
	if cfg.NATS, err = nats.Connect(settings.WithServiceLogin(natsConfig)); err != nil {
		return cfg, err
	}
	s.OnClose(cfg.NATS.Close)
	kept, done, err := c.ReadMail.Open(cfg.NATS, c.NATSAccess, c.Model, log)
	if err != nil {
		return cfg, err
	}
	s.OnClose(done)
	cfg.Kept = kept
	c.Machine.Running = true
	if cfg.Store, err = c.Machine.Store(ctx, c.Redis, c.Model, log); err != nil {
		return cfg, err
	}
	s.OnClose(func() {
		cfg.Store.Close()
		c.Machine.Close()
	})
	cfg.Kafka, err = c.Machine.LogsIfAny(ctx, c.Kafka, "hamlet-console", log)
	return cfg, err
}

// A Listener says where a console listens.
type Listener struct {
	Addr     string      // host:port
	Flag     string      // that names Addr
	TLS      *tls.Config // nil: plain text
	Metrics  string      // host:port of /metrics; empty: nowhere
	Services *parts.Set
	Log      *slog.Logger
}

// A Served console listens, and serves during Run.
type Served struct {
	console *Console
	server  *httpd.Server
	scheme  string
}

// Listen takes the address and makes the pages.
func Listen(ctx context.Context, l Listener, cfg Config) (*Served, error) {
	c, err := New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	server, err := httpd.New(httpd.Config{
		Addr: l.Addr, TLS: l.TLS, Metrics: l.Metrics, Apart: true, Registry: l.Services.Registry,
		Handlers: map[string]http.Handler{"/": c.Handler()}, Log: l.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("the console: %w", httpd.Choose(err, l.Flag, "--metrics"))
	}
	s := &Served{console: c, server: server, scheme: "http"}
	if l.TLS != nil {
		s.scheme = "https"
	}
	return s, nil
}

// URL returns the address of the first page.
func (s *Served) URL() string { return s.scheme + "://" + s.server.Addr() }

// Run serves until ctx ends.
func (s *Served) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.console.Run(ctx) })
	g.Go(func() error { return s.server.Run(ctx) })
	return g.Wait()
}
