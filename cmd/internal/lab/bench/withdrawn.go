package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/algos/promise"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/service/scorer"
	"hamlet/stream"
)

// Withdrawn holds the flags of `hamlet-lab bench withdrawn`.
type Withdrawn struct {
	Sets
	Messages int    `help:"Messages of the generator that a model judges and learns." default:"6000" placeholder:"N"`
	Policies int    `help:"Changes of policy for each set." default:"5" placeholder:"K"`
	Seed     uint64 `help:"Seed of the choice of policies." default:"1" placeholder:"S"`
	Output
}

// Help is shown by kong below the flags.
func (Withdrawn) Help() string {
	return `Examples:
  hamlet-lab bench withdrawn
  hamlet-lab bench withdrawn --index index.csv corpus.tar.gz SMSSpamCollection stream.svm.gz

When is the number of expected errors withdrawn, after a change that p is blind to? A model judges
each message of a set in its order, and then learns it. From the middle on, all messages with a
certain word are spam; it stands in 2 to 15 % of them, nearly all of them ham. In the generator
newsletters are spam from then on. Events are counted from the first that is judged by the new policy.

"Errors" are those of the scorer's verdicts in 150 events, "expected" with the 90 % interval what p
said. They are of ham that is lost and spam that is missed together. Then: after how many events something
was suspected, an incident of concept, label noise or a source was named, labels contradicted what
was expected, the slope of the last 500 answers left 1; and when the figure was withdrawn, by the
first of them. "–" is never, until the end of the set.

The lines without a policy say in how many % of the events the figure was withdrawn, and by what.`
}

// A withdrawnLine is one stream. Events are counted from the first with the new policy; −1 is never.
type withdrawnLine struct {
	Set      string  `json:"set"`
	Policy   string  `json:"policy"` // "": none
	Turned   int     `json:"turned"`
	Errors   int     `json:"errors"`
	Expected float64 `json:"expected"`
	Low      int     `json:"lo"`
	High     int     `json:"hi"`
	// Suspected, named, contradicted, slope and withdrawn: of a policy the first event, else events.
	Suspected, Named, Contradicted, Slope, Withdrawn int
}

type withdrawnResult struct {
	Command string          `json:"command"`
	Lines   []withdrawnLine `json:"lines"`

	events map[string]int // of each set
	took   time.Duration
}

const (
	inTime    = 150 // events after a change until the figure must be withdrawn
	slopeEach = 25  // events
)

// Run measures all sets and prints the table.
func (c *Withdrawn) Run(ctx context.Context, stdio cli.IO) error {
	if err := atLeast(limit{"--messages", c.Messages, week}, limit{"--policies", c.Policies, 0}); err != nil {
		return err
	}
	if cfg, err := c.ResearchModel.Config(nil); err == nil && cfg.Alarms.Off {
		return cli.Usagef("--no-alarms: they are what is measured")
	}
	if err := c.Sets.check(); err != nil {
		return err
	}
	populations, err := c.populations(stdio)
	if err != nil {
		return err
	}
	start := time.Now()
	r := &withdrawnResult{Command: commandLine(), events: map[string]int{}}
	show := newPhases(stdio.Err)
	for _, set := range populations {
		streams, err := c.streams(set)
		if err != nil {
			return err
		}
		r.events[set.name] = streams[0].n
		lines := make([]withdrawnLine, len(streams))
		err = show.each(ctx, set.name, len(streams), len(streams), func(i int, turn func() error) (err error) {
			if lines[i], err = streams[i].run(ctx); err != nil {
				return err
			}
			return turn()
		})
		if err != nil {
			return err
		}
		r.Lines = append(r.Lines, lines...)
	}
	r.took = time.Since(start)
	return c.show(stdio.Out, r)
}

// A policyStream is a set with a change of policy in its middle.
type policyStream struct {
	set    *population
	policy string
	n      int
	event  func(i int) (ex model.Example, turned bool, err error)
}

// streams returns the stream of a set without a policy, and those with one.
func (c *Withdrawn) streams(set *population) (all []policyStream, err error) {
	if set.set == nil {
		for k := range c.Policies + 1 {
			seed := c.Seed + uint64(max(0, k-1))
			var f *fault
			if k > 0 {
				f = &faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == "new policy" })]
			}
			before, err := set.open(seed, 0, nil)
			if err != nil {
				return nil, err
			}
			after, err := set.open(seed, c.Messages/2, f)
			if err != nil {
				return nil, err
			}
			s := policyStream{set: set, n: c.Messages, event: func(i int) (ex model.Example, turned bool, err error) {
				if i < c.Messages/2 {
					ex, err = before()
				} else {
					ex, err = after()
				}
				return ex, f != nil && i >= c.Messages/2, err
			}}
			if f != nil {
				s.policy = fmt.Sprintf("newsletters, seed %d", seed)
			}
			all = append(all, s)
		}
		return all, nil
	}
	words := make([]map[string]bool, len(set.set))
	for i := range set.set {
		words[i] = wordsOf(&set.set[i])
	}
	for _, policy := range append([]string{""}, c.policies(set, words)...) {
		all = append(all, policyStream{set: set, policy: policy, n: len(set.set),
			event: func(i int) (model.Example, bool, error) {
				ex := set.event(i)
				turned := i >= len(set.set)/2 && policy != "" && words[i][policy]
				ex.Spam = ex.Spam || turned
				return ex, turned, nil
			}})
	}
	return all, nil
}

// policies returns words that stand in 2 to 15 % of the messages, 97 % of them ham.
func (c *Withdrawn) policies(set *population, words []map[string]bool) (found []string) {
	in, ham := map[string]int{}, map[string]int{}
	for i := range words {
		for w := range words[i] {
			in[w]++
			if !set.set[i].Spam {
				ham[w]++
			}
		}
	}
	for w, n := range in {
		if 100*n >= 2*len(words) && 100*n <= 15*len(words) && 100*ham[w] >= 97*n {
			found = append(found, w)
		}
	}
	slices.Sort(found)
	r := rand.New(rand.NewPCG(c.Seed, faultStream))
	r.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found[:min(len(found), c.Policies)]
}

// wordsOf returns the words of a message, of three letters at least, or the names of a vector's numbers.
func wordsOf(ex *model.Example) map[string]bool {
	all := map[string]bool{}
	if m := ex.Body.Message; m != nil {
		text := strings.ToLower(string(m.Subject) + " " + string(m.Body))
		for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
			if len(w) >= 3 {
				all[w] = true
			}
		}
	}
	for _, v := range ex.Body.Vector {
		if v.Value != 0 {
			all[v.Name] = true
		}
	}
	return all
}

// run judges and learns the stream.
func (s *policyStream) run(ctx context.Context) (withdrawnLine, error) {
	line := withdrawnLine{Set: s.set.name, Policy: s.policy}
	m, err := model.New(s.set.model)
	if err != nil {
		return line, err
	}
	predictor := m.NewPredictor()
	var contradiction promise.Contradiction
	var expected promise.Expected
	var matches []answered.Match
	slope, first := false, -1
	for _, f := range []*int{&line.Suspected, &line.Named, &line.Contradicted, &line.Slope, &line.Withdrawn} {
		if *f = 0; s.policy != "" {
			*f = -1
		}
	}
	for i := range s.n {
		if i%64 == 0 && ctx.Err() != nil {
			return line, context.Cause(ctx)
		}
		ex, turned, err := s.event(i)
		if err != nil {
			return line, err
		}
		prediction, err := predictor.Predict(&ex.Body)
		if err != nil {
			return line, err
		}
		if turned {
			line.Turned++
			if first < 0 {
				first = i
				contradiction = promise.Contradiction{} // what was before is another story
			}
		}
		p := prediction.P()
		low, high := prediction.Interval(model.Z90)
		match := answered.Match{P: p, Spam: ex.Spam, Verdict: stream.Decide(p, low, scorer.SpamAt, scorer.HamAt)}
		spam := match.Verdict == stream.DecideSpam
		wrong := spam != ex.Spam
		q, most := p, high
		if spam {
			q, most = 1-p, 1-low
		}
		contradiction.Add(q, most, wrong)
		if first >= 0 && i < first+inTime {
			expected.Add(p, low, high, spam)
			if wrong {
				line.Errors++
			}
		}
		matches = append(matches, match)
		if i%slopeEach == 0 && len(matches) >= week {
			f := answered.FiguresOf(matches[len(matches)-week:])
			slope = answered.SlopeReason(&f) != ""
		}
		if _, err := m.Apply(&ex); err != nil {
			return line, err
		}
		suspected, named := false, false
		for _, open := range m.Incidents() {
			suspected = suspected || open.Kind == drift.KindUnknown
			named = named || open.Kind != drift.KindUnknown && open.Kind != drift.KindCovariate
		}
		_, against := contradiction.Excess()
		for _, one := range []struct {
			to *int
			is bool
		}{{&line.Suspected, suspected}, {&line.Named, named}, {&line.Contradicted, against}, {&line.Slope, slope},
			{&line.Withdrawn, suspected || named || against || slope}} {
			switch {
			case !one.is:
			case s.policy == "":
				*one.to++
			case first >= 0 && *one.to < 0:
				*one.to = i - first
			}
		}
	}
	sum := expected.Lost.Plus(expected.Missed)
	line.Expected = sum.Mean
	line.Low, line.High = sum.Interval()
	return line, nil
}

// section has a line for each stream.
func (r *withdrawnResult) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"set", "spam from the middle on", "turned", "errors", "expected",
		"suspected", "named", "contradicted", "slope", "withdrawn"}}}
	blind, late := 0, 0
	for i := range r.Lines {
		l := &r.Lines[i]
		after := func(n int) string {
			switch {
			case l.Policy == "":
				return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(r.events[l.Set]))
			case n < 0:
				return "–"
			}
			return fmt.Sprint(n)
		}
		policy, errors, expected := l.Policy, fmt.Sprint(l.Errors), fmt.Sprintf("%.1f (%d to %d)", l.Expected, l.Low, l.High)
		if policy == "" {
			policy, errors, expected = "nothing", "", ""
		} else if l.Errors > l.High {
			blind++
			if l.Withdrawn < 0 || l.Withdrawn >= inTime {
				late++
			}
		}
		t.Add(l.Set, policy, fmt.Sprint(l.Turned), errors, expected, after(l.Suspected), after(l.Named),
			after(l.Contradicted), after(l.Slope), after(l.Withdrawn))
	}
	lead := fmt.Sprintf("in %d streams there were more errors in %d events than the interval says; %d of these were not "+
		"withdrawn by then", blind, inTime, late)
	return &experiment.Section{Lead: experiment.Plain(lead), Table: t, Notes: made(r.Command, r.took)}
}
