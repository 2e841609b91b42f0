package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
)

// Selective holds the flags of `hamlet-lab bench selective`.
type Selective struct {
	Stream

	TeachFirst int    `help:"Messages at the beginning that are all labelled, and not measured." default:"300" placeholder:"N"`
	After      int    `help:"An answer is assumed to be right after so many further messages." default:"200" placeholder:"N"`
	Seed       uint64 `help:"Seed of who reports a tenth of the errors." default:"1" placeholder:"S"`
	Output
}

// Help is shown by kong below the flags.
func (Selective) Help() string {
	return `Examples:
  hamlet-lab bench selective SMSSpamCollection
  hamlet-lab bench selective --index index.csv corpus.tar.gz
  hamlet-lab bench selective --teach-first 0 SMSSpamCollection

People label what they see wrong: spam in the inbox, ham in the junk folder. What does a model learn
from these labels alone, and what if it learns its own verdicts as well, once nobody has
contradicted them for --after messages? The verdict unsure is not learnt.

Each line is a way of labelling, without and with that. "junked" is ham whose verdict was spam,
"missed" spam whose verdict was not. "wrong" counts the assumed labels that were false. All figures
are of what comes after --teach-first.`
}

// A labelling says which messages are labelled: who sees that a verdict is wrong, and reports it.
type labelling struct {
	name  string
	gives func(spam, junked bool, r *rand.Rand) bool
}

var labellings = []labelling{
	{"all", func(bool, bool, *rand.Rand) bool { return true }},
	{"errors", func(spam, junked bool, _ *rand.Rand) bool { return spam != junked }},
	{"a tenth of the errors", func(spam, junked bool, r *rand.Rand) bool {
		return spam != junked && r.Float64() < 0.1
	}},
	{"junked ham", func(spam, junked bool, _ *rand.Rand) bool { return !spam && junked }},
	{"missed spam", func(spam, junked bool, _ *rand.Rand) bool { return spam && !junked }},
	{"all ham", func(spam, _ bool, _ *rand.Rand) bool { return !spam }},
	{"all spam", func(spam, _ bool, _ *rand.Rand) bool { return spam }},
}

// A selectiveRun is what a model did with one way of labelling.
type selectiveRun struct {
	Labels  int `json:"labels"`
	Assumed int `json:"assumed"`
	Wrong   int `json:"assumed_wrong"`
	Junked  int `json:"junked"` // ham with the verdict spam
	Missed  int `json:"missed"` // spam with another verdict

	LogLoss eval.Measure `json:"log_loss"`
	ROCA    eval.Measure `json:"roca"`
}

// A selectiveResult is the table.
type selectiveResult struct {
	Command string          `json:"command"`
	Events  int             `json:"events"`
	From    int             `json:"from"`
	Lines   []selectiveLine `json:"lines"`

	took time.Duration
}

// A selectiveLine is one way of labelling, without and with assumed answers.
type selectiveLine struct {
	Labels  string       `json:"labels_for"`
	Without selectiveRun `json:"without"`
	With    selectiveRun `json:"with"`
}

// Run measures every way of labelling and prints the table.
func (c *Selective) Run(ctx context.Context, stdio cli.IO) error {
	if err := atLeast(limit{"--teach-first", c.TeachFirst, 0}, limit{"--after", c.After, 1}); err != nil {
		return err
	}
	return c.run(ctx, stdio, c.Output, c.measure)
}

func (c *Selective) measure(ctx context.Context, set *population, show *phases) (measurement, error) {
	if len(set.set) <= c.TeachFirst {
		return nil, fmt.Errorf("--teach-first %d leaves nothing to measure: there are %d events", c.TeachFirst,
			len(set.set))
	}
	start := time.Now()
	r := &selectiveResult{Command: commandLine(), Events: len(set.set), From: c.TeachFirst,
		Lines: make([]selectiveLine, len(labellings))}
	name, n := fmt.Sprintf("%d ways of labelling, twice each", len(labellings)), 2*len(labellings)
	err := show.each(ctx, name, n*len(set.set), n, func(i int, turn func() error) (err error) {
		line := &r.Lines[i/2]
		run := &line.Without
		if i%2 == 1 {
			run = &line.With
		} else {
			line.Labels = labellings[i/2].name
		}
		*run, err = c.label(set, &labellings[i/2], i%2 == 1, turn)
		return err
	})
	r.took = time.Since(start)
	return r, err
}

// label runs a model over the stream with one way of labelling.
func (c *Selective) label(set *population, way *labelling, assume bool,
	turn func() error) (run selectiveRun, err error) {
	m, err := model.New(set.model)
	if err != nil {
		return run, err
	}
	random := rand.New(rand.NewPCG(c.Seed, 1))
	predictor, metrics := m.NewPredictor(), eval.New()
	answered := map[int]bool{} // by message: the verdicts that wait
	for i := range set.set {
		if err := turn(); err != nil {
			return run, err
		}
		ex := set.event(i)
		prediction, err := predictor.Predict(&ex.Body)
		if err != nil {
			return run, err
		}
		p := prediction.P()
		low, _ := prediction.Interval(model.Z90)
		junked := p >= 0.9 && low > 0.5 // the scorer's verdict
		if i >= c.TeachFirst {
			metrics.Add(ex.Spam, prediction.LogOdds)
			if junked && !ex.Spam {
				run.Junked++
			} else if !junked && ex.Spam {
				run.Missed++
			}
		}
		if i < c.TeachFirst || way.gives(ex.Spam, junked, random) {
			run.Labels++
			if _, err := m.Apply(&ex); err != nil {
				return run, err
			}
		} else if junked || p <= 0.5 { // the verdict is not unsure
			answered[i] = junked
		}
		due := i - c.After
		spam, waits := answered[due]
		if !assume || !waits {
			continue
		}
		delete(answered, due)
		old := set.event(due)
		truth := old.Spam
		old.ID, old.Of, old.Identity = old.ID+"/assume", old.ID, ""
		old.Action, old.Spam = model.Assume, spam
		effect, err := m.Apply(&old)
		if err != nil {
			return run, err
		}
		if effect.Unassumed {
			continue
		}
		if run.Assumed++; spam != truth {
			run.Wrong++
		}
	}
	s := metrics.Summary()
	run.LogLoss, run.ROCA = s.LogLoss, s.ROCA
	return run, nil
}

// section has a line for each way of labelling.
func (r *selectiveResult) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"labels for", "labels", "assumed", "wrong", "junked", "",
		"missed", "",
		"log loss", "", "1-ROCA%", ""}}}
	for i := range r.Lines {
		l := &r.Lines[i]
		a, b := &l.Without, &l.With
		t.Addf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.4f\t%.4f\t%.3f\t%.3f", l.Labels, a.Labels, b.Assumed, b.Wrong,
			a.Junked, b.Junked, a.Missed, b.Missed, a.LogLoss, b.LogLoss, a.ROCA, b.ROCA)
	}
	lead := fmt.Sprintf("%d messages; figures from message %d on; beside each other without and with assumed answers",
		r.Events, r.From+1)
	return &experiment.Section{Lead: experiment.Plain(lead), Table: t, Notes: made(r.Command, r.took)}
}
