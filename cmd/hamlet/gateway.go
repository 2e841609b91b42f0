package main

import (
	"context"
	"errors"

	"hamlet/cmd/internal/door/doors"
	"hamlet/cmd/internal/door/httpdoor"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
)

type gatewayCommand struct {
	doors.Flags
	HTTP  string `name:"http" help:"Serve the HTTP door here, and /metrics, /healthz and /readyz." placeholder:"ADDR"`
	Token string `help:"Bearer token of the operator's programs at the HTTP door, for every tenant; better in the environment." placeholder:"SECRET"`
	settings.EventsHTTP
	settings.ModelName
	NATS string `name:"nats" help:"URLs of NATS, comma-separated." default:"nats://127.0.0.1:4222" group:"NATS"`
	settings.NATSAccess
	settings.Machine
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
	if c.writes() && len(c.Kafka.Kafka) > 0 {
		errs = append(errs, settings.Check(c.Kafka))
	} else if !c.writes() && len(c.Kafka.Kafka) > 0 {
		errs = append(errs,
			cli.Usagef("--kafka is for labels, which are taken only with --allow-learn, "+
				"or made with --self-label or --oracle"))
	}
	return errors.Join(errs...)
}

// writes reports whether the gateway writes labels.
func (c *gatewayCommand) writes() bool { return c.AllowLearn || c.SelfLabel > 0 || c.Oracle != "" }

// gatewayFiles are the open files of a gateway beside its connections.
const gatewayFiles = 256

func (c *gatewayCommand) Run(ctx context.Context, stdio cli.IO) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := parts.CheckOpenFiles("hamlet gateway", gatewayFiles); err != nil {
		return err
	}
	log := c.Logger(stdio.Err)
	s := parts.New("hamlet-gateway", c.Model, log)
	defer s.Close()
	if err := c.connect(s); err != nil {
		return err
	}
	file, err := c.OpenTokens(log)
	if err != nil {
		return err
	}
	var events stream.Topic
	if c.writes() {
		if s.Logs, err = c.Machine.Beside(c.Kafka, "hamlet-gateway", log); err != nil {
			return err
		}
		if events, err = s.OpenLog(s.Topic()); err != nil {
			return err
		}
	}
	opened, err := s.OpenDoors(&c.Flags, file, events)
	if err != nil {
		return err
	}
	if err := c.CheckDoor(c.HTTP, c.Token != "" || opened.Gateway().HasTokens()); err != nil {
		return err
	}
	var taught stream.Appender
	if c.AllowLearn {
		taught = events
	}
	parts.PrintDoors(stdio.Err, opened)
	return s.Run(ctx, parts.HTTP{
		Addr: c.HTTP, TLS: c.HTTPTLS, Metrics: c.Metrics, Ready: opened.Ready,
		Handlers: httpdoor.Handlers(opened.Gateway(), c.Token, taught),
	}, opened.Run)
}

// connect opens a connection to the scoring service. It does not wait for the server:
// until there is one, messages pass unmarked.
func (c *gatewayCommand) connect(s *parts.Set) error {
	cfg, err := c.NATSAccess.Config(c.NATS, "hamlet-gateway", s.Log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	cfg.Wait = true
	// Who only asks may neither keep mail nor read the journal.
	if c.SelfLabel > 0 && c.SelfLabelNATS == "" || c.Oracle != "" && c.OracleNATS == "" {
		cfg = settings.WithServiceLogin(cfg)
	} else {
		cfg.Login = settings.AskerLogin(cfg)
	}
	s.NATS = settings.NATS{NATS: c.NATS, NATSAccess: c.NATSAccess}
	_, err = s.Connect(cfg)
	return err
}
