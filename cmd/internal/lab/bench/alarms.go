package bench

import (
	"context"
	"fmt"
	"os"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/report"
	"hamlet/cmd/internal/settings"
	"hamlet/cmd/internal/source"
)

// Alarms holds the flags of `hamlet bench alarms`.
type Alarms struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Data sets, each drawn from with replacement, beside the generator; .gz and .zst are unpacked."`
	source.Flags
	settings.ResearchModel

	Generator bool   `help:"Draw from the generator of synthetic mail." default:"true" negatable:""`
	Events    int    `help:"Events with true labels, on which false alarms are counted, over all sets together." default:"1000000" placeholder:"N"`
	Seeds     int    `help:"Streams for each fault." default:"20" placeholder:"K"`
	Seed      uint64 `help:"Seed of the first stream." default:"1" placeholder:"S"`
	Resamples int    `help:"Bootstrap resamples behind the intervals of delays." default:"1000" placeholder:"N"`
	JSON      bool   `name:"json" help:"Print one object in JSON instead of a table."`
	Report    string `help:"Write a page with plots, index.html, into this directory." placeholder:"DIR"`
}

// Help is shown by kong below the flags.
func (Alarms) Help() string {
	return `Examples:
  hamlet bench alarms
  hamlet bench alarms --events 100000 --seeds 10
  hamlet bench alarms --no-generator spambase.data --report page/
  hamlet bench alarms --index index.csv corpus.tar.gz spambase.data stream.svm.gz

Which alarm tells first that labels, mail or the world went wrong, and how often does each cry for
nothing? The three alarms of the model that serves stand beside DDM, ADWIN and Page-Hinkley, which
watch its error or its log loss. Those have a threshold, and it is tuned: to the lowest at which they
give no more false alarms than ours, all three together, on --events whose labels are true: a
million, if it is not said otherwise. Ours stand as they are by default, or as flags of the model set
them.

Then each of eight faults begins at event 5,001 of a stream, and what counts is the first alarm within
2,000 events. Two baselines show what the figures are worth: an alarm at every event is the fastest
there is and tells nothing; no alarm at all is never wrong. Read no delay without the false alarms.

The generator makes mail of which no two streams are alike. Each SOURCE is a set of its own, in any
format of hamlet eval; its events are drawn with replacement. Of mail by --index the archive is the
first SOURCE; all --spam and --ham is one set. Events that carry no source are given three, of which
one turns bad; with --source NAME the first of these is the bad one. A set without an event of the bad
source is not tried with that fault.`
}

// check reports wrong usage.
func (c *Alarms) check() error {
	for _, n := range []struct {
		flag         string
		value, least int
	}{{"--events", c.Events, 1}, {"--seeds", c.Seeds, 1}, {"--resamples", c.Resamples, 1}} {
		if n.value < n.least {
			return cli.Usagef("%s: %d is below %d", n.flag, n.value, n.least)
		}
	}
	if cfg, err := c.ResearchModel.Config(nil); err == nil && cfg.Alarms.Off {
		return cli.Usagef("--no-alarms leaves nothing that the others could be compared with")
	}
	if !c.Generator && c.none() {
		return cli.Usagef("--no-generator: name a SOURCE, or mail by --spam, --ham or --index")
	}
	return nil
}

func (c *Alarms) none() bool {
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	return cfg.None()
}

func (c *Alarms) plan() plan {
	return plan{
		events: c.Events, seeds: c.Seeds, seed: c.Seed, resamples: c.Resamples,
		length: cleanLength, learnt: learntBy, faultAt: faultBegins, horizon: faultLasts,
	}
}

// Run measures the alarms and prints what came of it.
func (c *Alarms) Run(ctx context.Context, stdio cli.IO) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Report != "" { // before the measurement, which takes a while
		if err := os.MkdirAll(c.Report, 0o755); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	worlds, err := c.worlds(stdio)
	if err != nil {
		return err
	}
	p := c.plan()
	if least := len(worlds) * 2 * p.learnt; c.Events < least {
		return cli.Usagef("--events: %d is below %d: the first %d events of a stream do not count", c.Events, least, p.learnt)
	}
	result, err := p.measure(ctx, worlds, c.Report != "", newStages(stdio.Err))
	if err != nil {
		return err
	}
	result.command = commandLine()
	if c.Report != "" {
		if err := result.writePage(c.Report); err != nil {
			return fmt.Errorf("--report %s: %w", c.Report, err)
		}
	}
	if c.JSON {
		return result.writeJSON(stdio.Out)
	}
	return result.writeTable(stdio.Out)
}

// worlds opens the generator and every set.
func (c *Alarms) worlds(stdio cli.IO) (worlds []*world, err error) {
	if c.Generator {
		cfg, err := c.ResearchModel.Config(nil)
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, newGenerator(cfg))
	}
	rejections := report.Rejections{W: stdio.Err}
	defer rejections.Close()
	add := func(name string, cfg source.Config) error {
		cfg.Stdin = stdio.In
		w, err := newSet(name, cfg, c.ResearchModel.Config, rejections.Add)
		if err == nil {
			worlds = append(worlds, w)
		}
		return err
	}
	paths := c.Sources
	whole := c.Flags.Config(nil, source.FlipFlags{})
	if whole.Index != "" || len(whole.Spam)+len(whole.Ham) > 0 {
		name := "mail"
		if whole.Index != "" && len(paths) > 0 {
			whole.Paths, paths = paths[:1], paths[1:]
			name = setName(whole.Paths[0])
		}
		if err := add(name, whole); err != nil {
			return nil, err
		}
		whole.Index, whole.Spam, whole.Ham = "", nil, nil
	}
	for _, path := range paths {
		cfg := whole
		cfg.Paths = []string{path}
		if err := add(setName(path), cfg); err != nil {
			return nil, err
		}
	}
	distinguish(worlds)
	return worlds, nil
}
