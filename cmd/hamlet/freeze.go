package main

import (
	"context"
	"errors"
	"fmt"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/show/progress"
	"hamlet/cmd/internal/show/report"
)

type freezeCommand struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Files or directories of labelled mail or text, or - for standard input."`
	source.Flags
	Out       string `help:"Write the frozen expert here; - is standard output." required:"" placeholder:"FILE"`
	MinCount  int    `help:"Leave out 4-grams that fewer messages have." default:"3" placeholder:"N"`
	TableBits int    `help:"2^(N+1) weights of a byte. It is fastest beside a model with equal table bits." default:"18" placeholder:"N"`
}

// Help is shown by kong below the flags.
func (freezeCommand) Help() string {
	return `Examples:
  hamlet freeze --spam Junk/ --ham INBOX/ --out mail.frozen
  hamlet eval other.mbox --frozen mail.frozen

up, eval and the learner take the file with --frozen. Their new models get one
more input: what this expert says of a text. It never learns.

The file holds no text and no header. It is a statistic of the mail, and should
be kept as the mail is. It has a weight for each hashed 4-gram of subject and
body that N messages have (--min-count). Whoever has the file can hash a guess,
such as a name or a product, and see whether its 4-grams are there, and whether
they rather stood in spam or in ham. Overlapping 4-grams can be joined to longer
guesses. A larger --min-count hides what few messages say; it does not hide what
one sender repeats in many.`
}

// freezePasses is how often the source is learnt (algos/text/MEASURED.md).
const freezePasses = 3

func (c *freezeCommand) Run(ctx context.Context, stdio cli.IO) error {
	if err := errors.Join(cli.NotNegative("--limit", c.Limit),
		cli.Range("--min-count", c.MinCount, 1, 1<<16-1)); err != nil {
		return err
	}
	freezer, err := model.NewFreezer(c.TableBits)
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--table-bits: %w", err)}
	}
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	cfg.Stdin = stdio.In
	src, err := source.Open(cfg)
	if err != nil {
		return err
	}
	defer src.Close()

	passes := freezePasses
	if src.Once() {
		passes = 1
		fmt.Fprintf(stdio.Err, "the source can be read once only: one pass in place of %d\n", freezePasses)
	}
	rejections := report.Rejections{W: stdio.Err}
	counter := progress.NewCounter(stdio.Err)
	read := 0
	for pass := range passes {
		rejected := rejections.Add
		if pass > 0 {
			freezer.NextPass()
			rejected = func(error) {} // the first pass has reported it
		}
		err = freezePass(ctx, freezer, src, rejected, func() {
			if read++; read%64 == 0 {
				total, _ := src.Total()
				counter.Set(read, passes*total)
			}
		})
		if err != nil {
			break
		}
	}
	counter.Close()
	rejections.Close()
	if err != nil {
		return err
	}
	f, err := freezer.Freeze(c.MinCount)
	if err != nil {
		return err
	}
	ham, spam, _ := f.Messages()
	if ham == 0 || spam == 0 {
		return fmt.Errorf("a frozen expert of %d ham and %d spam: both are needed", ham, spam)
	}
	if err := save(c.Out, f.Bytes(), stdio.Out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprintf(stdio.Err, "%d ham and %d spam; %d hashed 4-grams of at least %d messages; model.frozen is %s\n",
		ham, spam, f.Features(), c.MinCount, model.Config{}.WithFrozen(f).Frozen)
	return nil
}

// freezePass learns every event of src once.
func freezePass(ctx context.Context, freezer *model.Freezer, src *source.Source, rejected func(error),
	count func()) error {
	for item, err := range src.Events() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var unreadable *source.Rejection
		switch {
		case errors.As(err, &unreadable):
			rejected(err)
			continue
		case err != nil:
			return err
		}
		ex, _, err := example.Of(&item.Event)
		if err == nil {
			err = freezer.Learn(&ex)
		}
		if err != nil {
			rejected(fmt.Errorf("event %s: %w", item.Event.ID, err))
		}
		count()
	}
	return nil
}
