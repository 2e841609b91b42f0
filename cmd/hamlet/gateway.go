package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/gateway"
	"hamlet/cmd/internal/gateway/doors"
	"hamlet/cmd/internal/gateway/selflabel"
	"hamlet/cmd/internal/gateway/web"
	"hamlet/cmd/internal/services"
	"hamlet/cmd/internal/settings"
	"hamlet/cmd/internal/tokens"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

type gatewayCommand struct {
	doors.Flags
	HTTP  string `name:"http" help:"Serve the HTTP door here, and /metrics, /healthz and /readyz." placeholder:"ADDR"`
	Token string `help:"Bearer token of the operator's programs at the HTTP door, for every tenant; better in the environment." placeholder:"SECRET"`
	settings.EventsHTTP
	settings.ModelName
	NATS string `name:"nats" help:"URLs of NATS, comma-separated." default:"nats://127.0.0.1:4222" group:"NATS"`
	settings.NATSAccess
	settings.Kafka
	cli.LogFlags
}

// Help is shown by kong below the flags.
func (gatewayCommand) Help() string {
	return `Mail servers and programs ask the gateway in protocols that they already speak,
and the gateway asks the scorer over NATS. A message without an answer in time
passes unmarked: no mail waits for hamlet.

Examples:

  hamlet gateway --milter unix:/run/hamlet/milter.sock   Postfix, Sendmail
  hamlet gateway --spamd 127.0.0.1:783                   spamc, Exim
  hamlet gateway --rspamd 127.0.0.1:11333                rspamc, Exim
  hamlet gateway --nats nats://mx1:4222 --http 127.0.0.1:9104

A door for mail listens at host:port or unix:PATH; several stand with commas
between. Add the mail server's user to the group of the socket. Recipes are in
deploy/mail/.

Programs ask by HTTP; /openapi.json describes it:

  curl --data-binary @message.eml -H "Content-Type: message/rfc822" \
    http://127.0.0.1:9104/v1/score
  curl -d '{"text": "You won …"}' -H "Content-Type: application/json" \
    http://127.0.0.1:9104/v1/explain

There no answer is an error and no mark: 503. Other machines need HTTPS and a
token: of --tokens (see hamlet token new), that of --token, or a tenant's. POST
/v1/events takes labels with a token and --allow-learn.`
}

// check reports wrong usage that no flag shows by itself.
func (c *gatewayCommand) check() error {
	errs := []error{c.Flags.Check(), c.HTTPTLS.Check()}
	if c.Token != "" && c.HTTP == "" {
		errs = append(errs, cli.Usagef("--token is for the HTTP door: give it an address with --http"))
	}
	if c.Tokens != "" && c.HTTP == "" {
		errs = append(errs, cli.Usagef("--tokens is for the HTTP door: give it an address with --http"))
	}
	if !c.Any() && c.HTTP == "" {
		errs = append(errs, cli.Usagef("no door is open: name an address, such as --spamd 127.0.0.1:1783"))
	}
	if c.writes() {
		errs = append(errs, settings.Check(c.Kafka))
	} else if len(c.Kafka.Kafka) > 0 {
		errs = append(errs, cli.Usagef("--kafka is for labels, which are taken only with --allow-learn, or made with --self-label"))
	}
	return errors.Join(errs...)
}

// writes reports whether the gateway writes to Kafka.
func (c *gatewayCommand) writes() bool { return c.AllowLearn || c.SelfLabel > 0 }

// gatewayFiles are the open files of a gateway beside its connections.
const gatewayFiles = 256

func (c *gatewayCommand) run(ctx context.Context, stdio cli.IO) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := services.CheckOpenFiles("hamlet gateway", gatewayFiles); err != nil {
		return err
	}
	log := c.Logger(stdio.Err)
	s := services.New("hamlet-gateway", c.Model, log)
	defer s.Close()
	conn, err := c.connect(s, log)
	if err != nil {
		return err
	}
	client, err := nats.NewClient(conn, c.Model)
	if err != nil {
		return err
	}
	file, err := c.OpenTokens(log)
	if err != nil {
		return err
	}
	programs := web.Config{Token: c.Token, Count: tokens.NewMetrics(s.Registry), Registerer: s.Registry}
	cfg := gateway.Config{Client: gateway.NATS(client), Tokens: file, Registerer: s.Registry, Log: log}
	var self *selflabel.Service
	if c.writes() {
		events, err := c.events(s, log)
		if err != nil {
			return err
		}
		teacher := doors.Teacher{Events: events}
		if c.AllowLearn {
			cfg.Teacher, programs.Events = teacher, events
		}
		waiting, err := c.Flags.Connect(conn, c.NATSAccess, log)
		if err != nil {
			return err
		}
		if waiting != conn {
			s.OnClose(waiting.Close)
		}
		if self, err = c.Service(waiting, c.Model, teacher, s.Registry, log); err != nil {
			return err
		}
	}
	opened, err := c.Open(cfg, self)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := c.CheckDoor(c.HTTP, c.Token != "" || opened.Gateway().HasTokens()); err != nil {
		return err
	}
	programs.Door = opened.Gateway().Door(web.Name)
	handlers, err := web.Handlers(programs)
	if err != nil {
		return err
	}
	printDoors(stdio.Err, opened)
	return s.Run(ctx, services.HTTP{Addr: c.HTTP, TLS: c.HTTPTLS, Metrics: c.Metrics, Ready: opened.Ready, Handlers: handlers}, opened.Run)
}

// events returns the log that takes labels.
func (c *gatewayCommand) events(s *services.Set, log *slog.Logger) (*kafka.Log, error) {
	cfg, err := c.Kafka.Config("hamlet-gateway", log)
	if err != nil {
		return nil, err
	}
	return s.OpenLog(cfg, s.Topic())
}

// connect returns a connection to the scoring service. It does not wait for the server:
// until there is one, messages pass unmarked.
func (c *gatewayCommand) connect(s *services.Set, log *slog.Logger) (*natsgo.Conn, error) {
	cfg, err := c.NATSAccess.Config(c.NATS, "hamlet-gateway", log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	cfg.Wait = true
	if c.SelfLabel > 0 && c.SelfLabelNATS == "" { // who only asks may not keep mail
		cfg = settings.WithServiceLogin(cfg)
	} else {
		cfg.Login = settings.AskerLogin(cfg)
	}
	conn, err := nats.Connect(cfg)
	if err != nil {
		return nil, err
	}
	s.OnClose(conn.Close)
	return conn, nil
}

// printDoors says where the doors listen.
func printDoors(w io.Writer, opened *doors.Doors) {
	addrs := opened.Addrs()
	var names []string
	for name := range addrs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "  %-6s %s\n", name, strings.Join(addrs[name], ", "))
	}
}
