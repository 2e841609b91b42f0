package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"hamlet/algos/eval"
	labels "hamlet/algos/lab/review"
	"hamlet/algos/model"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/worth"
)

// Review holds the flags of `hamlet-lab bench review`.
type Review struct {
	Stream

	TeachFirst int    `help:"Messages at the beginning that are all labelled." default:"300" placeholder:"N"`
	Every      int    `help:"Of so many further messages in a row one is labelled." default:"10" placeholder:"N"`
	Seeds      int    `help:"Random choices to average." default:"5" placeholder:"N"`
	Seed       uint64 `help:"First seed of the random choices." default:"1" placeholder:"S"`
	Output
}

// Help is shown by kong below the flags.
func (Review) Help() string {
	return `Examples:
  hamlet-lab bench review SMSSpamCollection
  hamlet-lab bench review --index index.csv corpus.tar.gz
  hamlet-lab bench review --every 50 --seeds 20 SMSSpamCollection

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
	score func(p model.Prediction, w labels.Worth, r *rand.Rand) float64
}

// randomChoice is the last of choosings.
const randomChoice = "random"

var choosings = []choosing{
	{"value", func(_ model.Prediction, w labels.Worth, _ *rand.Rand) float64 { return w.Fall }},
	{"information", func(_ model.Prediction, w labels.Worth, _ *rand.Rand) float64 { return w.Information }},
	{"doubt", func(p model.Prediction, _ labels.Worth, _ *rand.Rand) float64 { return -math.Abs(p.LogOdds) }},
	{"both", func(p model.Prediction, w labels.Worth, _ *rand.Rand) float64 { return w.Fall * p.P() * (1 - p.P()) }},
	{"journal", func(p model.Prediction, _ labels.Worth, _ *rand.Rand) float64 {
		lo, hi := p.Interval(model.Z90)
		return worth.Of(p.P(), lo, hi)
	}},
	{randomChoice, func(_ model.Prediction, _ labels.Worth, r *rand.Rand) float64 { return r.Float64() }},
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

// Run measures every way of choosing and prints the table.
func (c *Review) Run(ctx context.Context, stdio cli.IO) error {
	if err := atLeast(limit{"--teach-first", c.TeachFirst, 0}, limit{"--every", c.Every, 1},
		limit{"--seeds", c.Seeds, 1}); err != nil {
		return err
	}
	return c.run(ctx, stdio, c.Output, c.measure)
}

func (c *Review) measure(ctx context.Context, set *population, show *phases) (measurement, error) {
	if len(set.set) < c.TeachFirst+c.Every {
		return nil, fmt.Errorf("--teach-first %d and --every %d leave nothing to choose: there are %d events",
			c.TeachFirst, c.Every, len(set.set))
	}
	start := time.Now()
	r := &reviewResult{Command: commandLine(), Events: len(set.set), First: c.TeachFirst, Every: c.Every,
		Seeds: c.Seeds}
	last := len(choosings) - 1
	runs := make([]reviewRun, last+c.Seeds)
	name := fmt.Sprintf("%d ways of choosing, the random one %d times", len(choosings), c.Seeds)
	err := show.each(ctx, name, len(runs)*len(set.set), len(runs), func(i int, turn func() error) (err error) {
		runs[i], err = c.choose(set, &choosings[min(i, last)], c.Seed+uint64(max(0, i-last)), turn)
		return err
	})
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
func (c *Review) choose(set *population, way *choosing, seed uint64,
	turn func() error) (run reviewRun, err error) {
	m, err := model.New(set.model)
	if err != nil {
		return run, err
	}
	random := rand.New(rand.NewPCG(seed, 2))
	reviewer, all, later := labels.NewReviewer(m), eval.New(), eval.New()
	best, highest, spam := -1, 0.0, 0
	for i := range set.set {
		if err := turn(); err != nil {
			return run, err
		}
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
		ex := set.event(best)
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

// section has a line for each way of choosing.
func (r *reviewResult) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"chosen by", "labels", "spam", "log loss", "less", "1-ROCA%",
		"later log loss", "later 1-ROCA%"}}}
	random := &r.Lines[len(r.Lines)-1]
	for i := range r.Lines {
		l := &r.Lines[i]
		t.Addf("%s\t%d\t%.0f %%\t%.4f\t%.1f %%\t%.3f\t%.4f\t%.3f", l.Choice, l.Labels, 100*l.Spam, l.LogLoss,
			100*(1-l.LogLoss/random.LogLoss), l.ROCA, l.LaterLogLoss, l.LaterROCA)
	}
	lead := fmt.Sprintf("%d messages; the first %d are labelled, then one of %d", r.Events, r.First, r.Every)
	note := fmt.Sprintf("random: log loss %.4f to %.4f in %d choices", random.Lowest, random.Highest, r.Seeds)
	return &experiment.Section{Lead: experiment.Plain(lead), Table: t,
		Notes: append(experiment.Plain(note), made(r.Command, r.took)...)}
}
