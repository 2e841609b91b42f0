// Laboratory: comparisons with other filters and other detectors of change.

// Package bench is `hamlet-lab bench`. Each of its commands prints one table and the
// command that made it.
//
// [Mail] replays a labelled mailbox through hamlet and through other filters. Every
// message is classified before it is taught. All filters get the same bytes: the
// reduced message that hamlet's services carry. Other filters run behind the
// commands of the TREC spam track (initialize, classify, train, finalize).
//
//	source ─> schedule ─┬─> hamlet ─────────> outcome ─┐
//	                    └─> other filters ──> outcome ─┴─> rankings ─> bootstrap ─> table, page
//
// [Alarms] runs the model once over streams with and without a fault, and records
// its predictions and alarms. Other detectors are replayed over the record, at many
// thresholds.
//
//	population ─┬─> clean streams ───> series ─> thresholds with our number of false alarms ─┐
//	            └─> fault ─> change ─> series ───────────────────────────────────────────────┴─> delays ─> table, page
//
// [Attackers] lets sources lie about a stream, and counts the errors on the honest one:
// with all labels counted the same, by the sources' standing, and with an anchor.
//
// [Selective] labels only some of a stream, and lets the model assume the rest of its answers.
//
// [Review] labels one message in ten, and compares ways to choose it.
//
// [Oracle] lets machines label doubtful mail by the rules of package oracle.
//
// [Promise] keeps budgets for lost ham on streams drawn from judged messages.
//
// [Withdrawn] says when the number of expected errors is withdrawn after a change of policy.
//
// [Coverage] asks how often the 90 % interval holds the true probability, on simulated
// streams where it is known.
//
// [Day] runs a part of a provider's day on real servers, and says what the whole day needs. The
// services are processes; the servers are the caller's. The processor time of each process is
// divided by what it did. So figures say what a message costs, and hardly depend on what else
// the machine does.
//
//	labels ─HTTP─> ingest ──> Kafka ──> learner ──> Redis ──> scorer <──NATS── gateway <─HTTP─ questions
//
// A measurement, in a few lines:
//
//	hamlet-lab bench mail --bogofilter --spam Junk/ --ham INBOX/ --report page/
//	hamlet-lab bench alarms --events 100000 --seeds 10
//	hamlet-lab bench attackers SMSSpamCollection
//
// Rules: the same data and seeds give the same figures, except times. Intervals are
// 95 %. Ratios of two filters are paired on the same resamples. hamlet runs alone, and
// the others after it, so that times do not overlap.
//
// MEASURED.md holds figures, each with its command and date.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/cmd/internal/show/report"
)

// A Command holds the flags of `hamlet-lab bench`.
type Command struct {
	Mail       Mail       `cmd:"" help:"Replay a labelled mailbox through hamlet and other filters, each message classified before it is taught."`
	Alarms     Alarms     `cmd:"" help:"Inject faults into streams and compare the alarms of the model with other detectors of change."`
	Selective  Selective  `cmd:"" help:"Label only some of a stream, as people do, and let the model assume the rest of its answers."`
	Review     Review     `cmd:"" help:"Label one message in ten, chosen by what its label would teach, and compare with other choices."`
	Oracle     Oracle     `cmd:"" help:"Let a machine that is often wrong label doubtful mail beside people, held to account and not."`
	Attackers  Attackers  `cmd:"" help:"Let sources lie about a stream, and count the errors on the honest one."`
	Promise    Promise    `cmd:"" help:"Promise to lose at most a share of ham, and count how often it is broken and what it costs."`
	Withdrawn  Withdrawn  `cmd:"" help:"Change what counts as spam, and say when the number of expected errors is withdrawn."`
	Candidates Candidates `cmd:"" help:"Compare a better, an equal and a worse candidate with a model, and say when each would be promoted."`
	Coverage   Coverage   `cmd:"" help:"Ask how often the 90 % interval holds the true probability, on simulated streams."`
	Latency    Latency    `cmd:"" help:"Ask about one message at a time by every way there is, and compare how long it waits."`
	Words      Words      `cmd:"" help:"Take the words that explain an answer out of spam and ask whether the answer falls."`
	Day        Day        `cmd:"" help:"Run a part of a provider's day on real servers, and say what the whole day needs."`
}

// Mail holds the flags of `hamlet-lab bench mail`.
type Mail struct {
	Labelled
	source.FlipFlags
	settings.ResearchModel

	Filter        []Adapter     `sep:"none" placeholder:"NAME=COMMAND" help:"Another filter: COMMAND takes initialize, 'classify FILE', 'train spam|ham FILE' and finalize. May repeat." group:"Filters"`
	Bogofilter    bool          `help:"Add bogofilter, by the adapter that hamlet carries; its own package must be installed." group:"Filters"`
	SpamAssassin  bool          `name:"spamassassin" help:"Add SpamAssassin's Bayes, likewise." group:"Filters"`
	Rspamd        bool          `help:"Add rspamd's Bayes, likewise." group:"Filters"`
	VW            bool          `name:"vw" help:"Add Vowpal Wabbit over hashed words, likewise." group:"Filters"`
	FilterTimeout time.Duration `help:"How long one of a filter's commands may take." default:"1m" group:"Filters"`

	Delay      int    `help:"Teach a message after N further ones have been classified." default:"0" placeholder:"N"`
	TeachFirst int    `help:"Teach only the first N messages." default:"0" placeholder:"N"`
	Recipient  string `help:"Teach only mail whose To, Cc or Delivered-To contains TEXT, as if one user gave feedback; all mail is scored." placeholder:"TEXT"`
	From       int    `help:"Leave the first N messages out of the figures." default:"0" placeholder:"N"`

	Resamples     int    `help:"Bootstrap resamples behind the 95 % intervals." default:"1000" placeholder:"N"`
	BootstrapSeed uint64 `help:"Seed of the resamples." default:"1" placeholder:"S"`
	Output
	Report string `help:"Write a page with curves, index.html, into this directory." placeholder:"DIR"`
}

// Help is shown by kong below the flags.
func (Mail) Help() string {
	return `Examples:
  hamlet-lab bench mail --bogofilter --spam Junk/ --ham INBOX/
  hamlet-lab bench mail --bogofilter --report page/ --spam Junk/ --ham INBOX/
  hamlet-lab bench mail --rspamd --spamassassin --vw --spam Junk/ --ham INBOX/
  hamlet-lab bench mail --filter mine=./adapter --spam Junk/ --ham INBOX/
  hamlet-lab bench mail --bogofilter --flip .1 --spam Junk/ --ham INBOX/

Each message is classified before it is taught, in the order of the stream. All filters get the
same bytes: the reduced message that hamlet's services carry, attachments replaced by their names.

An adapter runs in a directory of its own, once for each command. It prints a line such as
"class=spam score=0.97": more is more spam, and scores in [0, 1] are read as probabilities.
1-ROCA% and spam missed go by the score; lam% and the error by the filter's own class; the error
at one half, log loss and calibration by the probability. CPU time is what hamlet's process, or
the adapter and its children, used to classify and to learn a message; of an adapter it includes
starting its processes, as a delivery to that filter does. The adapters of SpamAssassin, rspamd
and Vowpal Wabbit start once and stay alive; their start is not counted.

Intervals are 95 % bootstrap intervals over messages; ratios are paired, on the same resamples.
With --flip a label is taught wrong, and figures keep the true ones.`
}

// An Adapter is a filter as --filter names it.
type Adapter struct{ Name, Command string }

// UnmarshalText reads NAME=COMMAND.
func (a *Adapter) UnmarshalText(text []byte) error {
	name, command, ok := strings.Cut(string(text), "=")
	name, command = strings.TrimSpace(name), strings.TrimSpace(command)
	if !ok || name == "" || command == "" {
		return fmt.Errorf("%q is not NAME=COMMAND", text)
	}
	*a = Adapter{name, command}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (a Adapter) MarshalText() ([]byte, error) { return []byte(a.Name + "=" + a.Command), nil }

const hamlet = "hamlet" // hamlet's name in the table

// maxResamples is a thousand times what a 95 % interval needs. More is a typing error.
const maxResamples = 1_000_000

// Run replays the mailbox and prints the comparison.
func (c *Mail) Run(ctx context.Context, stdio cli.IO) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	src, err := source.Open(c.config(stdio, c.FlipFlags))
	if err != nil {
		return err
	}
	defer src.Close()
	modelConfig, err := c.ResearchModel.Config(src.Dense())
	if err != nil {
		return err
	}
	if err := makeReport(c.Report); err != nil {
		return err
	}
	own, err := newOwnFilter(modelConfig)
	if err != nil {
		return err
	}
	rejections := report.Rejections{W: stdio.Err}
	progress := progress.NewCounter(stdio.Err)
	defer progress.Close()
	r := &mailReplay{
		schedule: schedule{delay: c.Delay, teachFirst: c.TeachFirst, recipient: c.Recipient},
		own:      own, outcomes: []*outcome{{name: hamlet, proper: true}},
		rejected: rejections.Add,
		progress: func(n int) { total, _ := src.Total(); progress.Set(n, total) },
	}
	closeFilters, err := c.start(ctx, r)
	defer func() { err = errors.Join(err, closeFilters()) }()
	if err != nil {
		return err
	}
	if err := r.run(ctx, src.Events()); err != nil {
		return err
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	progress.Close()
	rejections.Close()
	if len(r.truth) <= c.From {
		if len(r.truth) == 0 {
			return errors.New("the mailbox is empty: it holds no message that can be classified")
		}
		return fmt.Errorf("--from %d leaves nothing to measure: there are %d messages", c.From, len(r.truth))
	}
	for _, o := range r.outcomes[1:] {
		o.probabilities()
	}
	result, err := measure(ctx, r, c)
	if err != nil {
		return err
	}
	if c.Report != "" {
		if err := writeReport(c.Report, "hamlet-lab bench mail", result.page()); err != nil {
			return err
		}
	}
	return c.show(stdio.Out, result)
}

// check reports wrong usage.
func (c *Mail) check() error {
	if err := c.FlipFlags.Check(); err != nil {
		return err
	}
	if err := atLeast(limit{"--delay", c.Delay, 0}, limit{"--teach-first", c.TeachFirst, 0}, limit{"--from", c.From, 0},
		limit{"--resamples", c.Resamples, 1}); err != nil {
		return err
	}
	if c.Resamples > maxResamples {
		return cli.Usagef("--resamples: %d, more than %d", c.Resamples, maxResamples)
	}
	if c.FilterTimeout <= 0 {
		return cli.Usagef("--filter-timeout: %v is not above zero", c.FilterTimeout)
	}
	names := append(c.carried(), hamlet)
	for _, f := range c.Filter {
		if slices.Contains(names, f.Name) {
			return cli.Usagef("--filter %s: there is a filter of that name already", f.Name)
		}
		names = append(names, f.Name)
	}
	return nil
}

// carried returns the names of the adapters that flags ask for.
func (c *Mail) carried() (names []string) {
	for _, f := range []struct {
		wanted bool
		name   string
	}{{c.Bogofilter, "bogofilter"}, {c.SpamAssassin, "spamassassin"}, {c.Rspamd, "rspamd"}, {c.VW, "vw"}} {
		if f.wanted {
			names = append(names, f.name)
		}
	}
	return names
}

// start initializes the other filters. closeAll ends them; it is never nil.
func (c *Mail) start(ctx context.Context, r *mailReplay) (closeAll func() error, err error) {
	var started []*externalFilter
	closeAll = func() error {
		var errs []error
		for _, o := range started {
			if o.initialized {
				errs = append(errs, o.finalize(ctx))
			}
			errs = append(errs, o.close())
		}
		return errors.Join(errs...)
	}
	add := func(o *externalFilter, err error) error {
		if err != nil {
			return err
		}
		started = append(started, o)
		if err := o.initialize(ctx); err != nil {
			return err
		}
		o.initialized = true
		r.external = append(r.external, o)
		r.outcomes = append(r.outcomes, &outcome{name: o.name, serves: o.serves})
		return nil
	}
	for _, name := range c.carried() {
		if err := add(newCarried(name, c.FilterTimeout)); err != nil {
			return closeAll, err
		}
	}
	for _, f := range c.Filter {
		command, err := f.words()
		if err != nil {
			return closeAll, err
		}
		if err := add(newExternalFilter(f.Name, command, c.FilterTimeout)); err != nil {
			return closeAll, err
		}
	}
	if slices.ContainsFunc(r.external, func(o *externalFilter) bool { return !o.serves }) {
		r.idle, err = idleCost(ctx, c.FilterTimeout)
	}
	return closeAll, err
}

// words splits the command at blanks. The adapter runs in another directory, so paths
// of existing files are made absolute.
func (a *Adapter) words() ([]string, error) {
	words := strings.Fields(a.Command)
	for i, w := range words {
		if !strings.ContainsRune(w, filepath.Separator) {
			continue
		}
		if _, err := os.Stat(w); err != nil {
			continue
		}
		abs, err := filepath.Abs(w)
		if err != nil {
			return nil, fmt.Errorf("filter %s: %w", a.Name, err)
		}
		words[i] = abs
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("filter %s: its adapter cannot be run: %w", a.Name, err)
	}
	return words, nil
}
