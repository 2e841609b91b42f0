package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

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
	topic := stream.EventsTopic(c.ModelName.Model)
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
