package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hamlet/algos/drift"
	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/algos/trust"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
)

// Attackers holds the flags of `hamlet-lab bench attackers`.
type Attackers struct {
	Stream

	Only      string `help:"Only the attacks whose name contains TEXT." placeholder:"TEXT"`
	At        int    `help:"Honest labels before the attack. Sleepers begin with the stream, and lie after 3,000." default:"1000" placeholder:"N"`
	Foreknown bool   `help:"Attackers also label bodies that the honest source has not labelled yet."`
	Seed      uint64 `help:"Seed of what attackers label." default:"1" placeholder:"S"`
	Output
}

// Help is shown by kong below the flags.
func (Attackers) Help() string {
	return `Examples:
  hamlet-lab bench attackers SMSSpamCollection
  hamlet-lab bench attackers --index index.csv corpus.tar.gz --only "ham called spam"
  hamlet-lab bench attackers stream.svm.gz --at 0

What do false labels cost? The stream is one honest source's. From --at on, attackers give 1, 3 or 10
labels after each honest one, to bodies that the honest source has labelled before; with --foreknown
to any. Errors are counted on the honest events after --at, before each is learnt.

"equal" counts all labels the same (--set standing=none). "standing" weighs sources by their
agreement, the default. With "anchor" the honest source is an anchor as well. "accused" is how many
events after the first false label the model accused an attacker, and in brackets how often it accused
the honest source. "alarm" is the same until an alarm was raised, with its name.`
}

// honest is the name of the honest source.
const honest = "honest"

// Ways to run a stream.
const (
	equally = iota
	byStanding
	withAnchor
	treatments
)

var treatmentNames = [treatments]string{"equal", "standing", "anchor"}

// An attackRun is what one attack did to one model.
type attackRun struct {
	Error   float64 `json:"error"`    // of the honest events after the attack began, 0 to 1
	LogLoss float64 `json:"log_loss"` // nats
	Accused int     `json:"accused"`  // events from the first lie to the first accusation of an attacker; 0: none
	Alarm   int     `json:"alarm"`    // the same to the first name of an incident
	Name    string  `json:"name"`     // that name, and who is accused
	False   int     `json:"accusations_of_honest"`
}

// An attackResult is one line of the table.
type attackResult struct {
	Attack string                `json:"attack"`
	Runs   map[string]*attackRun `json:"runs"`
	runs   [treatments]*attackRun
}

// An attackersResult is the table.
type attackersResult struct {
	Command  string         `json:"command"`
	Events   int            `json:"events"`
	From     int            `json:"from"`
	Campaign string         `json:"campaign"`
	Attacks  []attackResult `json:"attacks"`

	took time.Duration
}

// Run measures every attack and prints the table.
func (c *Attackers) Run(ctx context.Context, stdio cli.IO) error {
	if err := atLeast(limit{"--at", c.At, 0}); err != nil {
		return err
	}
	return c.run(ctx, stdio, c.Output, c.measure)
}

func (c *Attackers) measure(ctx context.Context, set *population, show *phases) (measurement, error) {
	if len(set.set) <= c.At {
		return nil, fmt.Errorf("--at %d leaves nothing to measure: there are %d events", c.At, len(set.set))
	}
	start := time.Now()
	r := &attackersResult{Command: commandLine(), Events: len(set.set), From: c.At}
	words := dictionaryOf(set.set)
	name, campaign := campaignOf(set.set)
	r.Campaign = name
	var chosen []attack
	expected := 0
	for _, a := range attacks() {
		if !strings.Contains(a.name, c.Only) {
			continue
		}
		if a.begins == attackBegins {
			a.begins = c.At
		}
		chosen = append(chosen, a)
		expected += treatments * len(set.set) * (1 + a.rate)
		r.Attacks = append(r.Attacks, attackResult{Attack: a.name, Runs: map[string]*attackRun{}})
	}
	if len(chosen) == 0 {
		return nil, errors.New("--only: no attack has such a name")
	}
	name = fmt.Sprintf("%d attacks, three times each", len(chosen))
	err := show.each(ctx, name, expected, len(chosen)*treatments, func(i int, turn func() error) error {
		a := newAssault(&chosen[i/treatments], set.set, words, campaign, c.Seed)
		run, err := c.attacked(set, a, i%treatments, turn)
		r.Attacks[i/treatments].runs[i%treatments] = run
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range r.Attacks {
		for k, run := range r.Attacks[i].runs {
			r.Attacks[i].Runs[treatmentNames[k]] = run
		}
	}
	r.took = time.Since(start)
	return r, nil
}

// attacked runs a model over the stream under an attack.
func (c *Attackers) attacked(set *population, a *assault, treatment int, turn func() error) (*attackRun, error) {
	cfg := set.model
	if treatment == equally {
		cfg.Standing = model.StandingNone
	}
	m, err := model.New(cfg)
	if err != nil {
		return nil, err
	}
	if treatment == withAnchor {
		if err := m.SetRole(honest, trust.Anchor); err != nil {
			return nil, err
		}
	}
	run, metrics := new(attackRun), eval.New()
	since := 0 // events since the first lie, with it
	apply := func(ex *model.Example) (model.Effect, error) {
		if err := turn(); err != nil {
			return model.Effect{}, err
		}
		effect, err := m.Apply(ex)
		if err != nil {
			return effect, err
		}
		if a.lies > 0 {
			since++
		}
		if effect.Accused && strings.HasPrefix(ex.Source, honest) {
			run.False++
		} else if effect.Accused && run.Accused == 0 && since > 0 {
			run.Accused = since
		}
		for _, alert := range effect.Alerts {
			if alert.State == drift.Raised && run.Alarm == 0 && since > 0 {
				run.Alarm, run.Name = since, strings.TrimSpace(alert.Kind+" "+alert.Source)
			}
		}
		return effect, nil
	}
	for i, ex := range set.set {
		ex.ID, ex.Source = strconv.Itoa(i), honest
		if a.honestly != nil {
			ex.Source = a.honestly(i)
		}
		effect, err := apply(&ex)
		if err != nil {
			return nil, err
		}
		if i >= c.At {
			metrics.Add(ex.Spam, effect.Prediction.LogOdds)
		}
		if a.honest++; !c.Foreknown {
			a.pool = set.set[:a.honest]
		}
		if i < a.begins {
			continue
		}
		for range a.rate {
			if lie, ok := a.next(); ok {
				if _, err := apply(&lie); err != nil {
					return nil, err
				}
			}
		}
	}
	s := metrics.Summary()
	run.Error, run.LogLoss = float64(s.Error), float64(s.LogLoss)
	return run, nil
}

// section has a line for each attack.
func (r *attackersResult) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"attack"}}}
	for _, name := range treatmentNames {
		t.Head[0] = append(t.Head[0], name, "log loss")
	}
	t.Head[0] = append(t.Head[0], "accused", "alarm")
	after := func(n int) string {
		if n == 0 {
			return "–"
		}
		return strconv.Itoa(n)
	}
	for _, a := range r.Attacks {
		cells := []string{a.Attack}
		for _, run := range a.runs {
			cells = append(cells, fmt.Sprintf("%.2f", 100*run.Error), fmt.Sprintf("%.4f", run.LogLoss))
		}
		run := a.runs[byStanding]
		t.Add(append(cells, fmt.Sprintf("%s (%d)", after(run.Accused), run.False), after(run.Alarm)+" "+run.Name)...)
	}
	lead := fmt.Sprintf("%d honest events; errors %% and log loss from event %d on; the campaign is spam with %q",
		r.Events, r.From+1, r.Campaign)
	return &experiment.Section{Lead: experiment.Plain(lead), Table: t, Notes: made(r.Command, r.took)}
}
