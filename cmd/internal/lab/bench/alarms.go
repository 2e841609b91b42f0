package bench

import (
	"context"

	"hamlet/cmd/internal/process/cli"
)

// Alarms holds the flags of `hamlet-lab bench alarms`.
type Alarms struct {
	Sets
	Events    int    `help:"Events with true labels, on which false alarms are counted, over all sets together." default:"1000000" placeholder:"N"`
	Seeds     int    `help:"Streams for each fault." default:"20" placeholder:"K"`
	Seed      uint64 `help:"Seed of the first stream." default:"1" placeholder:"S"`
	Resamples int    `help:"Bootstrap resamples behind the intervals of delays." default:"1000" placeholder:"N"`
	Output
	Report string `help:"Write a page with plots, index.html, into this directory." placeholder:"DIR"`
}

// Help is shown by kong below the flags.
func (Alarms) Help() string {
	return `Examples:
  hamlet-lab bench alarms
  hamlet-lab bench alarms --events 100000 --seeds 10
  hamlet-lab bench alarms --no-generator spambase.data --report page/
  hamlet-lab bench alarms --index index.csv corpus.tar.gz spambase.data stream.svm.gz

Which alarm is the first to tell that labels, the mail or the policy changed, and how many false
alarms does it raise? The model suspects first, and then names what changed. It is compared with
DDM, ADWIN and Page-Hinkley, which watch the model's error or its log loss. The threshold of each
of these is tuned: to the lowest with no more false alarms than ours suspects, on --events with true
labels. Ours have their defaults, or what flags of the model say.

Then each of ten faults begins at event 5,001 of a stream. The first alarm within 2,000 events
counts. Two baselines show what the figures are worth: an alarm at every event is the fastest and
tells nothing; no alarm at all is never wrong. Read no delay without the false alarms.

Every stream of the generator is different. Each SOURCE is a data set, in any format of hamlet eval;
its events are drawn with replacement. With --index the archive is the first SOURCE; all --spam and
--ham are one set. Events without a source are given one of three, of which one turns bad. With
--source NAME the first NAME is the bad one. A set without events of the bad source is not tried
with that fault.`
}

// check reports wrong usage.
func (c *Alarms) check() error {
	if err := atLeast(limit{"--events", c.Events, 1}, limit{"--seeds", c.Seeds, 1},
		limit{"--resamples", c.Resamples, 1}); err != nil {
		return err
	}
	if cfg, err := c.ResearchModel.Config(nil); err == nil && cfg.Alarms.Off {
		return cli.Usagef("--no-alarms: there would be no alarm of ours to compare with")
	}
	return c.Sets.check()
}

func (c *Alarms) plan() plan {
	return plan{
		events: c.Events, Seeds: c.Seeds, Seed: c.Seed, resamples: c.Resamples,
		length: cleanLength, learnt: learntBy, faultAt: faultBegins, Horizon: faultLasts,
	}
}

// Run measures the alarms and prints the comparison.
func (c *Alarms) Run(ctx context.Context, stdio cli.IO) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := makeReport(c.Report); err != nil {
		return err
	}
	populations, err := c.populations(stdio)
	if err != nil {
		return err
	}
	p := c.plan()
	if least := len(populations) * 2 * p.learnt; c.Events < least {
		return cli.Usagef("--events: %d is below %d: the first %d events of a stream do not count", c.Events, least,
			p.learnt)
	}
	result, err := p.measure(ctx, populations, c.Report != "", newPhases(stdio.Err))
	if err != nil {
		return err
	}
	result.Command = commandLine()
	if c.Report != "" {
		if err := writeReport(c.Report, "hamlet-lab bench alarms", result.page()); err != nil {
			return err
		}
	}
	return c.show(stdio.Out, result)
}
