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
	endlessKafkaBytes = 1 << 30 // that Kafka retains of an endless stream
	endlessRate       = 500     // events a second of an endless stream; the learner keeps up
)

// A labelled is what eval and up stream: a source, or the generator.
type labelled struct {
	dense []string                     // names of numbers that are inputs of the head
	total func() int                   // how many events there are; 0 while unknown
	once  bool                         // it can be read only once
	open  func() (ingest.Items, error) // nil: nothing to stream
	close func() error

	demonstration bool // synthetic mail because nothing else was named
}

// openSource opens a labelled source.
func openSource(cfg source.Config, synthetic *generatorFlags) (*labelled, error) {
	if flag := synthetic.Given(); flag != "" {
		return nil, cli.Usagef("%s is about synthetic mail, which --generate N gives in place of a source; --flip and its kin spoil the labels of either", flag)
	}
	s, err := source.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &labelled{
		dense: s.Dense(), once: s.Once(), close: s.Close,
		total: func() int { total, _ := s.Total(); return total },
		open:  func() (ingest.Items, error) { return s.Events(), nil },
	}, nil
}

// openGenerator opens n synthetic mails, or mail without end for n = 0. No flag about
// a source may be given.
func openGenerator(f *source.Flags, flip source.FlipConfig, synthetic *generatorFlags, n int) (*labelled, error) {
	if flag := f.Given(); flag != "" {
		return nil, cli.Usagef("%s is about a source, and there is none: synthetic mail comes in its order and with its own sources, user-reports among them", flag)
	}
	generate, err := synthetic.generator(flip)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return &labelled{
		dense: f.Dense, total: func() int { return n }, close: func() error { return nil },
		open: func() (ingest.Items, error) { return generate(n) },
	}, nil
}

func (c *upCommand) source(stdin io.Reader) (*labelled, error) {
	cfg := c.Flags.Config(c.Sources, c.FlipFlags)
	cfg.Stdin = stdin
	switch {
	case !cfg.None() && c.Generate != nil:
		return nil, cli.Usagef("--generate: synthetic mail is in place of a source, and one is given")
	case !cfg.None():
		return openSource(cfg, &c.Synthetic)
	case !hasGenerator && c.Generate == nil:
		return &labelled{dense: c.Flags.Dense, total: func() int { return 0 }, close: func() error { return nil }, demonstration: true}, nil
	}
	n := demonstrated
	if c.Generate != nil {
		n = *c.Generate
	}
	if c.Flags.Limit > 0 {
		n = c.Flags.Limit
	}
	if n == 0 && c.Once {
		return nil, cli.Usagef("--once needs a stream that ends: --generate 0 never does")
	}
	if n == 0 && c.Rate == 0 {
		c.Rate = endlessRate
	}
	src, err := openGenerator(&c.Flags, cfg.Flip, &c.Synthetic, n)
	if err == nil {
		src.demonstration = c.Generate == nil
	}
	return src, err
}

// demonstrate decides whether synthetic mail that nobody asked for is streamed: into
// our own brokers, if they hold nothing else. A model that has learnt real mail must
// not learn it.
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
		if held > 0 && held == len(end.Marks) { // nor may there be anything else before those
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
