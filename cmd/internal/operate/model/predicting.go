package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/operate/comparison"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/report"
)

type compare struct {
	A      string  `arg:"" name:"a" help:"The model that answers."`
	B      string  `arg:"" name:"b" help:"The candidate."`
	BurnIn int     `help:"Leave out the first N events that both predicted." default:"1000" placeholder:"N" env:"-"`
	Level  float64 `help:"How sure the interval is, for all times of looking together." default:"0.95" placeholder:"P" env:"-"`
	Since  string  `help:"Only what was written from then on: 24h (a day ago), or a time such as 2026-11-20T10:00:00Z." env:"-" placeholder:"WHEN"`
	settings.Kafka
}

// Help is what kong prints below the flags.
func (compare) Help() string {
	return `Examples:

  learner --model cand --events-of default --shadow
  hamlet model compare default cand
  hamlet model compare default cand --json | jq .better

Learners write what they predicted of each event before they learnt its label. Both
models must learn one log. The loss is the log loss in nats, with p between 0.01 and
0.99: an interval needs a limit, and one event shall not outweigh all others. The
difference is positive where the candidate is better.

The interval holds at all times of looking together, for events that drift and depend
on each other. So look as often as you like, and stop when it leaves out 0. A worse or
equal candidate is ever shown to be better in one of 40 comparisons at most.

That is so of a candidate that was chosen before. One that was chosen by its figures
on this log needs events after the choice: give its time to --since.

A model's calibration holds unless its mean p is shown to be off the share of spam by
more than 0.01. hamlet model diff shows how the models themselves differ.`
}

func (c *compare) run(ctx context.Context, s *session) error {
	if err := c.check(); err != nil {
		return err
	}
	since, err := cli.Since(c.Since, time.Now())
	if err != nil {
		return err
	}
	brokers, err := s.Machine.Logs(ctx, c.Kafka, "hamlet-model", s.log)
	if err != nil {
		return err
	}
	burnIn := c.BurnIn
	if burnIn == 0 {
		burnIn = -1 // the package's 0 is its default
	}
	r, err := comparison.Run(ctx, brokers, c.A, c.B, comparison.Options{BurnIn: burnIn, Level: c.Level, Since: since})
	if err != nil {
		return err
	}
	if s.JSON {
		return s.json(&r)
	}
	return s.print(c.text(&r))
}

func (c *compare) check() error {
	for _, name := range []string{c.A, c.B} {
		if err := validName(name); err != nil {
			return err
		}
	}
	if c.A == c.B {
		return cli.Usagef("%s is compared with itself: name two models", c.A)
	}
	if !(c.Level > 0 && c.Level < 1) {
		return cli.Usagef("--level: %v is not between 0 and 1", c.Level)
	}
	return cli.NotNegative("--burn-in", c.BurnIn)
}

func (c *compare) text(r *comparison.Result) string {
	var b strings.Builder
	for _, line := range missing(r) {
		fmt.Fprintln(&b, line)
	}
	if r.Events == 0 {
		fmt.Fprintf(&b, "no event yet: both have predicted %d, and the first %d are left out\n", r.BurnIn, max(c.BurnIn, 0))
		return b.String()
	}
	fmt.Fprintf(&b, "%d events, from offset %d to %d\n", r.Events, r.From, r.To)
	table := report.NewTable("  ", r.A.Model, r.B.Model)
	table.Add("  log loss", figure(r.A.LogLoss, 5), figure(r.B.LogLoss, 5))
	table.Add("  1-ROCA%", figure(r.A.ROCA, 4), figure(r.B.ROCA, 4))
	table.Add("  spam − mean p", span(r.A.Excess, 4), span(r.B.Excess, 4))
	table.Add("  calibration slope", figure(r.A.Slope, 3), figure(r.B.Slope, 3))
	table.Add("  ECE", figure(r.A.ECE, 4), figure(r.B.ECE, 4))
	b.WriteString(table.String())
	fmt.Fprintf(&b, "difference of the log losses, %s − %s: %s nats, at %g for all times of looking\n",
		r.A.Model, r.B.Model, span(r.Difference, 5), r.Level)
	switch {
	case r.Better:
		fmt.Fprintf(&b, "%s is better: 0 is left out from event %d of these on\n", r.B.Model, r.Since)
	case r.Worse:
		fmt.Fprintf(&b, "%s is worse: 0 is left out from event %d of these on\n", r.B.Model, r.Since)
	default:
		fmt.Fprintln(&b, "neither is shown to be better: look again whenever you like")
	}
	if r.Calibrated {
		fmt.Fprintf(&b, "the calibration of %s holds: its mean p is not shown to be off by more than %g\n",
			r.B.Model, comparison.Tolerance)
	} else {
		fmt.Fprintf(&b, "the calibration of %s does not hold: its mean p is off by more than %g\n",
			r.B.Model, comparison.Tolerance)
	}
	return b.String()
}

func missing(r *comparison.Result) (lines []string) {
	for i, s := range []*comparison.Side{&r.A, &r.B} {
		other := [...]*comparison.Side{&r.B, &r.A}[i]
		if s.Deleted {
			lines = append(lines, fmt.Sprintf("retention has deleted the first predictions of %s", s.Model))
		}
		if s.Before > 0 {
			lines = append(lines,
				fmt.Sprintf("the predictions of %s begin at offset %d: %d events that %s predicted before are left out",
					other.Model, other.Begins, s.Before, s.Model))
		}
		if s.Only > 0 {
			lines = append(lines, fmt.Sprintf("%d events have a prediction of %s alone: they are left out", s.Only, s.Model))
		}
		if s.Ahead > 0 {
			lines = append(lines, fmt.Sprintf("%d events or more wait for the predictions of %s", s.Ahead, other.Model))
		}
	}
	return lines
}

func figure(m eval.Measure, digits int) string {
	if !m.Defined() {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, float64(m))
}

func span(i comparison.Interval, digits int) string {
	return fmt.Sprintf("%+.*f [%+.*f, %+.*f]", digits, i.Mean, digits, i.Low, digits, i.High)
}
