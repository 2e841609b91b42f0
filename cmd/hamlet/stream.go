package main

import (
	"cmp"
	"io"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/ingest"
)

const (
	demonstrated = 20_000  // synthetic mails where nothing else is named
	endlessBytes = 1 << 30 // that the log keeps of an endless stream
	endlessRate  = 500     // events a second of an endless stream; the learner keeps up
)

// A labelled is what eval and up stream: a source, or the generator.
type labelled struct {
	dense []string                     // names of numbers that are inputs of the head
	total func() int                   // how many events there are; 0 while unknown
	once  bool                         // it can be read only once
	open  func() (ingest.Items, error) // nil: nothing to stream
	close func() error

	synthetic bool // made by the generator
}

// openSource opens a labelled source.
func openSource(cfg source.Config, generated *synthetic.Flags) (*labelled, error) {
	if flag := generated.Given(); flag != "" {
		return nil, cli.Usagef("%s is about synthetic mail, which --generate N gives in place of a source", flag)
	}
	cfg.Standing = true
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

// openGenerator opens n synthetic mails, or mail without end for n = 0, with flip's labels flipped. No flag
// about a source may be given.
func openGenerator(f *source.Flags, flip source.FlipConfig, generated *synthetic.Flags, n int) (*labelled, error) {
	if flag := f.Given(); flag != "" {
		return nil, cli.Usagef("%s is about a source, and there is none: synthetic mail comes in its order and with its own sources, user-reports among them", flag)
	}
	cfg, err := generated.Config()
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return &labelled{
		dense: f.Dense, total: func() int { return n }, close: func() error { return nil }, synthetic: true,
		open: func() (ingest.Items, error) { return synthetic.Items(cfg, n, flip) },
	}, nil
}

// source opens what up streams. Without a source that is synthetic mail, if a flag asks
// for it or nothing outlives this process: neither a directory nor a server that a flag
// names.
func (c *upCommand) source(stdin io.Reader) (*labelled, error) {
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	cfg.Stdin = stdin
	kept := c.Data != "" || len(c.Kafka.Kafka) > 0 || c.NATS.NATS != "" || c.Redis.Redis != ""
	switch {
	case !cfg.None() && c.Demo:
		return nil, cli.Usagef("--demo: synthetic mail is in place of a source, and one is given")
	case !cfg.None() && c.Generate != nil:
		return nil, cli.Usagef("--generate: synthetic mail is in place of a source, and one is given")
	case !cfg.None():
		return openSource(cfg, &c.Synthetic)
	case !c.Demo && kept:
		if flag := c.aboutStream(); flag != "" {
			return nil, cli.Usagef("%s is about a stream, and there is none: name a source. Synthetic mail needs --demo, because --data or a server that is named keeps what is learnt", flag)
		}
		return nothing(c.Flags.Dense), nil
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
	return openGenerator(&c.Flags, source.FlipConfig{}, &c.Synthetic, n)
}

// aboutStream returns the first of the flags that was given and does nothing without a
// stream, "" if none was.
func (c *upCommand) aboutStream() string {
	switch {
	case c.Generate != nil:
		return "--generate"
	case c.Flags.Limit != 0:
		return "--limit"
	}
	return cmp.Or(c.Synthetic.Given(), c.Flags.Given())
}

// nothing is what up streams if it only serves.
func nothing(dense []string) *labelled {
	return &labelled{dense: dense, total: func() int { return 0 }, close: func() error { return nil }}
}

// noSource is what up says where it streams nothing.
const noSource = "no source: hamlet serves what it has learnt (--demo streams synthetic mail)"
