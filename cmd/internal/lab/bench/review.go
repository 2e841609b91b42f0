package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/report"
	"hamlet/cmd/internal/review"
	"hamlet/cmd/internal/settings"
	"hamlet/cmd/internal/source"
)

// Review holds the flags of `hamlet bench review`.
type Review struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Files, directories, or - for standard input; .gz and .zst are unpacked."`
	source.Flags
	settings.ResearchModel

	TeachFirst int    `help:"Messages at the beginning that are all labelled." default:"300" placeholder:"N"`
	Every      int    `help:"Of so many further messages in a row one is labelled." default:"10" placeholder:"N"`
	Seeds      int    `help:"Random choices to average." default:"5" placeholder:"N"`
	Seed       uint64 `help:"First seed of the random choices." default:"1" placeholder:"S"`
	JSON       bool   `name:"json" help:"Print one object in JSON instead of a table."`
}

// Help is shown by kong below the flags.
func (Review) Help() string {
	return `Examples:
  hamlet bench review SMSSpamCollection
  hamlet bench review --index index.csv corpus.tar.gz
  hamlet bench review --every 50 --seeds 20 SMSSpamCollection

A person labels one message in ten. Which? Each line is a way to choose, and each message is scored
before anything is learnt of it. The ways:

  value         the expected fall of the head's doubt about recent messages
  information   the mutual information of the label and the head's weights (BALD)
  doubt         p is nearest to one half
  both          value times p(1-p), by which the experts learn
  journal       information times p(1-p), from the answer's interval alone, as hamlet review does
  random        the mean of --seeds choices, with the lowest and the highest

"less" says how much lower the log loss is than that of the random choice. The last two columns are of
what comes after --teach-first.`
}

// A choosing is a way to choose the message of a row that is labelled: that with the
// highest score.
type choosing struct {
	name  string
	score func(p model.Prediction, w model.Worth, r *rand.Rand) float64
}

// randomChoice is the last of choosings.
const randomChoice = "random"

var choosings = []choosing{
	{"value", func(_ model.Prediction, w model.Worth, _ *rand.Rand) float64 { return w.Fall }},
	{"information", func(_ model.Prediction, w model.Worth, _ *rand.Rand) float64 { return w.Information }},
	{"doubt", func(p model.Prediction, _ model.Worth, _ *rand.Rand) float64 { return -math.Abs(p.LogOdds) }},
	{"both", func(p model.Prediction, w model.Worth, _ *rand.Rand) float64 { return w.Fall * p.P() * (1 - p.P()) }},
	{"journal", func(p model.Prediction, _ model.Worth, _ *rand.Rand) float64 {
		lo, hi := p.Interval(model.Z90)
		return review.Worth(p.P(), lo, hi)
	}},
	{randomChoice, func(_ model.Prediction, _ model.Worth, r *rand.Rand) float64 { return r.Float64() }},
}

// A reviewRun is what one way of choosing came to; of the random one a mean.
type reviewRun struct {
	Choice string  `json:"choice"`
	Labels int     `json:"labels"`
	Spam   float64 `json:"spam"` // share of spam among the labels after the first

	LogLoss      eval.Measure `json:"log_loss"` // of all messages
	ROCA         eval.Measure `json:"roca"`
	LaterLogLoss eval.Measure `json:"later_log_loss"` // after the first
	LaterROCA    eval.Measure `json:"later_roca"`

	Lowest  eval.Measure `json:"lowest_log_loss"` // of all messages, among the seeds
	Highest eval.Measure `json:"highest_log_loss"`
}

// A reviewResult is the table.
type reviewResult struct {
	Command string      `json:"command"`
	Events  int         `json:"events"`
	First   int         `json:"teach_first"`
	Every   int         `json:"every"`
	Seeds   int         `json:"seeds"`
	Lines   []reviewRun `json:"lines"`

	took time.Duration
}

// check reports wrong usage.
func (c *Review) check() error {
	for _, n := range []struct {
		flag         string
		value, least int
	}{{"--teach-first", c.TeachFirst, 0}, {"--every", c.Every, 1}, {"--seeds", c.Seeds, 1}} {
		if n.value < n.least {
			return cli.Usagef("%s: %d is below %d", n.flag, n.value, n.least)
		}
	}
	return nil
}

// Run measures every way of choosing and prints the table.
func (c *Review) Run(ctx context.Context, stdio cli.IO) error {
	if err := c.check(); err != nil {
		return err
	}
	rejections := report.Rejections{W: stdio.Err}
	defer rejections.Close()
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	cfg.Stdin = stdio.In
	set, err := newSet("stream", cfg, c.ResearchModel.Config, rejections.Add)
	if err != nil {
		return err
	}
	if len(set.set) < c.TeachFirst+c.Every {
		return fmt.Errorf("--teach-first %d and --every %d leave nothing to choose: there are %d events", c.TeachFirst, c.Every, len(set.set))
	}
	result, err := c.measure(ctx, set, newPhases(stdio.Err))
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(stdio.Out, result)
	}
	return result.writeTable(stdio.Out)
}

func (c *Review) measure(ctx context.Context, set *population, show *phases) (*reviewResult, error) {
	start := time.Now()
	r := &reviewResult{Command: commandLine(), Events: len(set.set), First: c.TeachFirst, Every: c.Every, Seeds: c.Seeds}
	last := len(choosings) - 1
	runs := make([]reviewRun, last+c.Seeds)
	var done atomic.Int64
	stop := show.begin(fmt.Sprintf("%d ways of choosing, the random one %d times", len(choosings), c.Seeds), len(runs)*len(set.set), &done)
	err := eachOf(ctx, len(runs), func(ctx context.Context, i int) (err error) {
		runs[i], err = c.choose(ctx, set, &choosings[min(i, last)], c.Seed+uint64(max(0, i-last)), &done)
		return err
	})
	stop()
	if err != nil {
		return nil, err
	}
	r.Lines = append(runs[:last:last], meanRun(runs[last:]))
	r.took = time.Since(start)
	return r, nil
}

// meanRun returns the mean of runs of one way.
func meanRun(runs []reviewRun) reviewRun {
	mean := reviewRun{Choice: runs[0].Choice, Labels: runs[0].Labels, Lowest: runs[0].LogLoss, Highest: runs[0].LogLoss}
	n := float64(len(runs))
	for _, run := range runs {
		mean.Spam += run.Spam / n
		for _, f := range []struct{ sum, of *eval.Measure }{
			{&mean.LogLoss, &run.LogLoss}, {&mean.ROCA, &run.ROCA},
			{&mean.LaterLogLoss, &run.LaterLogLoss}, {&mean.LaterROCA, &run.LaterROCA},
		} {
			*f.sum += *f.of / eval.Measure(n)
		}
		mean.Lowest, mean.Highest = min(mean.Lowest, run.LogLoss), max(mean.Highest, run.LogLoss)
	}
	return mean
}

// choose runs a model over the stream with one way of choosing. A row's label is learnt
// once all of the row are scored.
func (c *Review) choose(ctx context.Context, set *population, way *choosing, seed uint64, done *atomic.Int64) (run reviewRun, err error) {
	m, err := model.New(set.model)
	if err != nil {
		return run, err
	}
	random := rand.New(rand.NewPCG(seed, 2))
	reviewer, all, later := m.NewReviewer(), eval.New(), eval.New()
	best, highest, spam := -1, 0.0, 0
	for i := range set.set {
		if ctx.Err() != nil {
			return run, context.Cause(ctx)
		}
		done.Add(1)
		prediction, worth, err := reviewer.Review(&set.set[i].Body)
		if err != nil {
			return run, err
		}
		all.Add(set.set[i].Spam, prediction.LogOdds)
		if i >= c.TeachFirst {
			later.Add(set.set[i].Spam, prediction.LogOdds)
		}
		if score := way.score(prediction, worth, random); best < 0 || score > highest {
			best, highest = i, score
		}
		if i >= c.TeachFirst && (i-c.TeachFirst+1)%c.Every != 0 {
			continue
		}
		ex := set.set[best]
		ex.ID, ex.Source, ex.Identity = strconv.Itoa(best), honest, strconv.Itoa(best)
		if _, err := m.Apply(&ex); err != nil {
			return run, err
		}
		run.Labels++
		if i >= c.TeachFirst && ex.Spam {
			spam++
		}
		best = -1
	}
	a, l := all.Summary(), later.Summary()
	run.Choice, run.Spam = way.name, float64(spam)/float64(run.Labels-c.TeachFirst)
	run.LogLoss, run.ROCA, run.LaterLogLoss, run.LaterROCA = a.LogLoss, a.ROCA, l.LogLoss, l.ROCA
	run.Lowest, run.Highest = a.LogLoss, a.LogLoss
	return run, nil
}

// writeTable prints r as a table, a line for each way of choosing.
func (r *reviewResult) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%d messages; the first %d are labelled, then one of %d\n\n", r.Events, r.First, r.Every)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "chosen by\tlabels\tspam\tlog loss\tless\t1-ROCA%\tlater log loss\tlater 1-ROCA%\t\n")
	random := &r.Lines[len(r.Lines)-1]
	for i := range r.Lines {
		l := &r.Lines[i]
		fmt.Fprintf(t, "%s\t%d\t%.0f %%\t%.4f\t%.1f %%\t%.3f\t%.4f\t%.3f\t\n", l.Choice, l.Labels, 100*l.Spam, l.LogLoss,
			100*(1-l.LogLoss/random.LogLoss), l.ROCA, l.LaterLogLoss, l.LaterROCA)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nrandom: log loss %.4f to %.4f in %d choices\n%s\ntook %v\n",
		random.Lowest, random.Highest, r.Seeds, r.Command, r.took.Round(time.Second))
	return err
}
