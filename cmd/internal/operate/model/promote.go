package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/nats"
)

type promote struct {
	Candidate string `arg:"" optional:"" name:"candidate" help:"The model that is to answer."`

	Back        bool          `help:"Let the model itself answer again." env:"-"`
	DryRun      bool          `help:"Print the plan, and do nothing." env:"-"`
	Wait        time.Duration `help:"Wait so long until it has learnt as far." default:"5m" placeholder:"D" env:"-"`
	PromoteWhen string        `help:"Wait until the candidate predicts better." enum:",better" default:"" placeholder:"better" env:"-"`
	For         time.Duration `help:"With --promote-when: for so long, and then end with status 1." default:"168h" placeholder:"D" env:"-"`
	Since       string        `help:"With --promote-when: only predictions from then on, 24h (a day ago) or a time." placeholder:"WHEN" env:"-"`

	AcceptLostBeginning bool `help:"The candidate began later in the log: do not compare the logs." env:"-"`
	settings.Kafka
	settings.NATS
}

// Help is what kong prints below the flags.
func (promote) Help() string {
	return `Examples:

  learner --model cand --events-of default --shadow --ensembles none
  hamlet model compare default cand
  hamlet model promote cand --dry-run
  hamlet model promote cand --nats nats://nats:4222
  hamlet model promote --back
  hamlet model promote cand --promote-when better --for 336h    as a unit

Scorers of the model --model names answer from the candidate: from its newest version, or
the one pinned there. They follow within their --poll-interval, once they hold it whole.
Until then they answer as before, so no request is lost. Answers name the candidate.
Only this pointer changes: both learners go on, and so --back takes effect as fast.

It refuses a candidate of another log or layout, and one whose newest version is damaged.
It waits for one that is behind. With --nats it asks the scorers which numerics they
read, and refuses newer ones: upgrade the scorers first. A scorer of an older version knows
no promotions, and answers as before.

--promote-when better asks every minute what hamlet model compare says. It promotes once
the interval of the difference is above zero and the candidate is calibrated. That interval
holds at every moment of looking, so it may look as often as it likes.

A model that hamlet 0.1.0 learnt from several partitions is read by no scorer any more. In
its place any candidate may answer: there is nothing to compare, and no way back.

pin, rollback and unpin act on the model that they name, whichever answers.`
}

// compareEvery is how often --promote-when asks.
const compareEvery = time.Minute

// A promotion is what is to be done, and for whom it is printed.
type promotion struct {
	model, candidate string
	store, by        state.Store // of the two
	stdout           io.Writer
	quiet            bool  // --json: the result alone is printed
	unsaid           error // of printing; only say writes it
	kafka            func() (stream.Logs, error)
	patience         time.Duration
	lostBeginning    bool
	since            time.Time // predictions before are left out; zero: none
	noWayBack        bool      // no scorer of this release reads the model; plan writes it
	log              *slog.Logger
	every            time.Duration // compareEvery, except in tests
}

func (s *session) promote(ctx context.Context) error {
	c, f := s.Command, &s.Promote
	other := settings.ModelName{Model: f.Candidate}
	switch {
	case f.Back && (f.Candidate != "" || f.PromoteWhen != ""):
		return cli.Usagef("promote --back: it names no candidate, and waits for nothing: the model %s answers again", c.Model)
	case !f.Back && f.Candidate == "":
		return cli.Usagef("promote: name the model that is to answer, or --back")
	case !f.Back && (other.Validate() != nil || other.Model == c.Model):
		return cli.Usagef("promote: %q is not the name of another model; hamlet model promote --back lets %s answer again",
			f.Candidate, c.Model)
	}
	if err := errors.Join(cli.Range("--wait", f.Wait, 0, 24*time.Hour),
		cli.Range("--for", f.For, time.Second, 366*24*time.Hour)); err != nil {
		return err
	}
	since, err := cli.Since(f.Since, time.Now())
	if err != nil {
		return err
	}
	store, err := s.store(ctx, c.Model)
	if err != nil {
		return err
	}
	by, err := store.Beside(cmp.Or(f.Candidate, c.Model))
	if err != nil {
		return err
	}
	p := &promotion{
		model: c.Model, candidate: cmp.Or(f.Candidate, c.Model), store: store, by: by, stdout: s.out, quiet: c.JSON,
		patience: f.Wait, lostBeginning: f.AcceptLostBeginning, every: compareEvery, since: since, log: s.log,
		kafka: func() (stream.Logs, error) {
			return c.Machine.Logs(ctx, f.Kafka, "hamlet-model", s.log)
		},
	}
	before, err := p.answering(ctx)
	if err != nil {
		return err
	}
	if before == p.candidate {
		if err := p.say("Answers of %s come from model %s already: nothing to do.\n",
			p.model, p.candidate); err != nil || !c.JSON {
			return err
		}
		return p.result(before, state.Promotion{Model: p.candidate})
	}
	if f.PromoteWhen != "" {
		numerics, err := p.check(ctx) // what is refused is refused before a week has passed
		if err != nil {
			return err
		}
		early := *p
		early.quiet = true // all is asked again at the end, and said then
		if err := early.scorers(ctx, f.NATS, numerics); err != nil {
			return err
		}
		if err := p.untilBetter(ctx, cmp.Or(before, p.model), f.For); err != nil {
			return err
		}
	}
	numerics, err := p.plan(ctx)
	if err != nil {
		return err
	}
	if err := p.scorers(ctx, f.NATS, numerics); err != nil {
		return err
	}
	if f.DryRun {
		return p.say("Nothing was changed: this is what it would do.\n")
	}
	made, err := p.do(ctx)
	if err != nil {
		return err
	}
	return p.result(before, made)
}

// do has the candidate answer.
func (p *promotion) do(ctx context.Context) (state.Promotion, error) {
	made := state.Promotion{Model: p.candidate, Since: time.Now().UTC().Truncate(time.Second), By: operator()}
	return made, p.store.Promote(ctx, made)
}

// Promote does what `hamlet model promote` does: it waits until the candidate has learnt as far as the
// model, compares what both have learnt with the log, and has the candidate answer. The candidate may be
// the model itself. It asks no scorers.
func Promote(ctx context.Context, store state.Store, model, candidate string, logs stream.Logs,
	wait time.Duration) error {
	by, err := store.Beside(candidate)
	if err != nil {
		return err
	}
	p := &promotion{
		model: model, candidate: candidate, store: store, by: by, quiet: true, patience: wait,
		kafka: func() (stream.Logs, error) { return logs, nil },
	}
	if _, err := p.plan(ctx); err != nil {
		return err
	}
	_, err = p.do(ctx)
	return err
}

func (p *promotion) answering(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := p.store.Promotion(ctx)
	switch {
	case errors.Is(err, state.ErrNone):
		return p.model, nil
	case errors.Is(err, state.ErrCorrupt): // promoting again repairs it
		return "", nil
	}
	return now.Model, err
}

// scorers asks the scorers up to which numerics they read models, if there is a NATS to ask at.
func (p *promotion) scorers(ctx context.Context, f settings.NATS, numerics string) error {
	if f.NATS == "" {
		return p.say("scorers    not asked, without --nats: one that cannot read numerics %s goes on as before\n", numerics)
	}
	cfg, err := f.Config("hamlet-model", p.log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	conn, err := nats.Connect(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	all, err := nats.Members(ctx, conn, p.model)
	if err != nil {
		return err
	}
	old, blind := 0, 0
	for _, m := range all {
		switch {
		case m.Numerics == "":
			blind++
		case newer(numerics, m.Numerics):
			old++
		}
	}
	switch {
	case blind > 0:
		return fmt.Errorf("%d of %d scorers of %s are of a version that follows no promotion: upgrade them first",
			blind, len(all), p.model)
	case old > 0:
		return fmt.Errorf("%d of %d scorers of %s do not read models of numerics %s: upgrade them first",
			old, len(all), p.model, numerics)
	case len(all) == 0:
		return p.say("scorers    none of %s answers at NATS\n", p.model)
	}
	return p.say("scorers    %d of %s, all of which read numerics %s\n", len(all), p.model, numerics)
}

func (p *promotion) result(before string, made state.Promotion) error {
	if p.quiet {
		return cli.PrintJSON(p.stdout, struct {
			Model   string    `json:"model"`
			Before  string    `json:"before"`
			Answers string    `json:"answers"`
			Since   time.Time `json:"since,omitzero"`
			By      string    `json:"by,omitempty"`
		}{p.model, before, made.Model, made.Since, made.By})
	}
	of := ""
	if p.model != "default" {
		of = " --model " + p.model
	}
	if made.Model == p.model {
		return p.say("Model %s answers by itself again, once its scorers hold it.\n", p.model)
	}
	if p.noWayBack {
		return p.say("Answers of %s come from model %[2]s, once its scorers hold it. Only hamlet 0.1.0 reads %[1]s itself: "+
			"start all services with --model %[2]s.\n", p.model, made.Model)
	}
	return p.say("Answers of %s come from model %s, once its scorers hold it. Both learners go on.\nBack: "+
		"hamlet model promote --back%s\n", p.model, made.Model, of)
}

// say prints for people. After an error it prints nothing more, and returns that error: so a plan
// looks at the last line alone.
func (p *promotion) say(format string, values ...any) error {
	if !p.quiet && p.unsaid == nil {
		_, err := fmt.Fprintf(p.stdout, format, values...)
		p.unsaid = cli.Written(err)
	}
	return p.unsaid
}

// operator names who runs this program, and where.
func operator() string {
	name := fmt.Sprint("user ", os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	return name[:min(len(name), 200)]
}
