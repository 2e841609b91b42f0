package up

import (
	"cmp"
	"io"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/settings"
)

const (
	demonstrated = 20_000  // synthetic mails where nothing else is named
	endlessBytes = 1 << 30 // that the log keeps of an endless stream
	endlessRate  = 500     // events a second of an endless stream; the learner keeps up
)

// noSource is what up says where it streams nothing.
const noSource = "no source: hamlet serves what it has learnt (--demo streams synthetic mail)"

// source opens what up streams. Without a source that is synthetic mail, if a flag asks
// for it or nothing outlives this process: neither a directory nor a server that a flag
// names.
func (c *Command) source(stdin io.Reader) (*ingest.Input, error) {
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	cfg.Stdin = stdin
	outlives := c.Data != "" || len(c.Kafka.Kafka) > 0 || c.NATS.NATS != "" || c.Redis.Redis != ""
	switch {
	case !cfg.None() && c.Demo:
		return nil, cli.Usagef("--demo: synthetic mail is in place of a source, and one is given")
	case !cfg.None() && c.Generate != nil:
		return nil, cli.Usagef("--generate: synthetic mail is in place of a source, and one is given")
	case !cfg.None():
		return settings.OpenSource(cfg, &c.Synthetic)
	case !c.Demo && outlives:
		if flag := c.aboutStream(); flag != "" {
			return nil, cli.Usagef("%s is about a stream, and there is none: name a source. Synthetic mail needs --demo, "+
				"because --data or a server that is named keeps what is learnt", flag)
		}
		none := &ingest.Input{Dense: c.Flags.Dense, Total: func() int { return 0 }, Close: func() error { return nil }}
		return none, nil
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
	return settings.OpenSynthetic(&c.Synthetic, n, source.FlipConfig{}, &c.Flags)
}

// aboutStream returns the first of the flags that was given and does nothing without a
// stream, "" if none was.
func (c *Command) aboutStream() string {
	switch {
	case c.Generate != nil:
		return "--generate"
	case c.Flags.Limit != 0:
		return "--limit"
	case c.Flags.Sampled != nil:
		return "--sampled"
	}
	return cmp.Or(c.Synthetic.Given(), c.Flags.Given())
}
