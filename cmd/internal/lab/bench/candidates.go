package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"hamlet/algos/model"
	"hamlet/cmd/internal/lab/experiment"
	sequential "hamlet/cmd/internal/operate/comparison"
	"hamlet/cmd/internal/process/cli"
	"hamlet/stream/predictions"
)

// Candidates holds the flags of `hamlet-lab bench candidates`.
type Candidates struct {
	Stream

	Champion int `help:"table_bits of the model that answers." default:"11" placeholder:"BITS"`
	Better   int `help:"Those of the better candidate." default:"18" placeholder:"BITS"`
	Worse    int `help:"Those of the worse one." default:"9" placeholder:"BITS"`
	Orders   int `help:"Random orders of the events." default:"20" placeholder:"N"`
	BurnIn   int `help:"Events that are not compared." default:"1000" placeholder:"N"`
	Output
}

// Help is shown by kong below the flags.
func (Candidates) Help() string {
	return `Examples:
  hamlet-lab bench candidates spam-stream.svm.gz
  hamlet-lab bench candidates --champion 13 --orders 5 spam-stream.svm.gz

Is a better candidate promoted, an equal one seldom and a worse one never? Models with tables of
other sizes learn the same events, in random orders. Each comparison is looked at after every event.
The candidate is promoted once the interval is above 0 and its calibration holds.

The equal candidate has an expected difference of 0 at every event: a fair coin, thrown for each
event, says whether the champion's or the better model's prediction is the candidate's; the other
one is the champion's.`
}

// The candidates, in the order of the table.
var candidateNames = []string{"better", "equal", "worse"}

// A candidateRun is the comparison of the champion and a candidate over one order.
type candidateRun struct {
	Candidate string  `json:"candidate"`
	Order     int     `json:"order"`
	Promoted  int     `json:"promoted"` // at this event; 0: not
	Events    int     `json:"events"`   // compared, also after a promotion
	Mean      float64 `json:"difference"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Worse     bool    `json:"worse"` // shown to be worse, at the end
}

// A candidatesResult is the comparison of all candidates over all orders.
type candidatesResult struct {
	Command string         `json:"command"`
	Runs    []candidateRun `json:"runs"`
}

// Run measures and prints the table.
func (c *Candidates) Run(ctx context.Context, stdio cli.IO) error {
	if err := atLeast(limit{"--orders", c.Orders, 1}, limit{"--burn-in", c.BurnIn, 1}); err != nil {
		return err
	}
	return c.run(ctx, stdio, c.Output, c.measure)
}

// measure compares every candidate over every order.
func (c *Candidates) measure(ctx context.Context, set *population, show *phases) (measurement, error) {
	if len(set.set) <= c.BurnIn {
		return nil, fmt.Errorf("--burn-in %d leaves nothing to compare: there are %d events", c.BurnIn, len(set.set))
	}
	runs := make([]candidateRun, c.Orders*len(candidateNames))
	name := fmt.Sprintf("%d orders, three models each", c.Orders)
	err := show.each(ctx, name, 3*c.Orders*len(set.set), c.Orders, func(order int, turn func() error) error {
		at := rand.New(rand.NewPCG(uint64(order+1), 0x63616e64)).Perm(len(set.set))
		var made [3][]predictions.Prediction // of the champion, the better and the worse model
		for i, bits := range []int{c.Champion, c.Better, c.Worse} {
			cfg := set.model
			cfg.TableBits = bits
			var err error
			if made[i], err = predictAll(set, cfg, at, turn); err != nil {
				return err
			}
		}
		coin := rand.New(rand.NewPCG(uint64(order+1), 0x636f696e))
		equal := [2][]predictions.Prediction{slices.Clone(made[0]), slices.Clone(made[1])}
		for i := range at {
			if coin.IntN(2) == 1 {
				equal[0][i], equal[1][i] = equal[1][i], equal[0][i]
			}
		}
		for i, pair := range [][2][]predictions.Prediction{{made[0], made[1]}, equal, {made[0], made[2]}} {
			run, err := c.compare(pair[0], pair[1])
			if err != nil {
				return err
			}
			run.Candidate, run.Order = candidateNames[i], order+1
			runs[order*len(candidateNames)+i] = run
		}
		return nil
	})
	return &candidatesResult{commandLine(), runs}, err
}

// predictAll returns what a model predicts of each event before it learns it.
func predictAll(set *population, cfg model.Config, at []int, turn func() error) ([]predictions.Prediction, error) {
	m, err := model.New(cfg)
	if err != nil {
		return nil, err
	}
	made := make([]predictions.Prediction, len(at))
	for i, n := range at {
		if err := turn(); err != nil {
			return nil, err
		}
		ex := set.event(n)
		effect, err := m.Apply(&ex)
		if err != nil {
			return nil, err
		}
		made[i] = predictions.Prediction{Offset: int64(i), Spam: ex.Spam, LogOdds: float32(effect.Prediction.LogOdds)}
	}
	return made, nil
}

// compare looks after every event.
func (c *Candidates) compare(champion, candidate []predictions.Prediction) (run candidateRun, err error) {
	compared, err := sequential.New(sequential.Options{BurnIn: c.BurnIn})
	if err != nil {
		return run, err
	}
	for i := range champion {
		compared.Add(&champion[i], &candidate[i])
		if better, calibrated := compared.Verdict(); run.Promoted == 0 && better && calibrated {
			run.Promoted = i + 1
		}
	}
	r := compared.Result()
	run.Events, run.Worse = r.Events, r.Worse
	run.Mean, run.Low, run.High = r.Difference.Mean, r.Difference.Low, r.Difference.High
	return run, nil
}

// section has a line for each candidate.
func (r *candidatesResult) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"candidate", "orders", "promoted", "at event: least", "median",
		"most", "shown to be worse", "difference, nats"}}}
	for _, name := range candidateNames {
		var at []int
		orders, worse, sum := 0, 0, 0.0
		for i := range r.Runs {
			if r := &r.Runs[i]; r.Candidate == name {
				orders++
				sum += r.Mean
				if r.Promoted > 0 {
					at = append(at, r.Promoted)
				}
				if r.Worse {
					worse++
				}
			}
		}
		slices.Sort(at)
		least, middle, most := "-", "-", "-"
		if n := len(at); n > 0 {
			least, middle, most = strconv.Itoa(at[0]), strconv.Itoa(at[n/2]), strconv.Itoa(at[n-1])
		}
		t.Addf("%s\t%d\t%d\t%s\t%s\t%s\t%d\t%+.4f", name, orders, len(at), least, middle, most, worse,
			sum/float64(orders))
	}
	return &experiment.Section{Table: t}
}
