package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"hamlet/algos/blr"
	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
)

// Coverage holds the flags of `hamlet-lab bench coverage`.
type Coverage struct {
	Dim         []int  `help:"Numbers of inputs, separated by commas." default:"10,58" placeholder:"D,…"`
	Events      []int  `help:"After how many events to measure, ascending." default:"200,1000,5000" placeholder:"N,…"`
	Repetitions int    `help:"Streams for each number of inputs, each with weights of its own." default:"1000" placeholder:"K"`
	Questions   int    `help:"New inputs asked about after each number of events." default:"100" placeholder:"Q"`
	Seed        uint64 `help:"Seed of weights, inputs and labels." default:"1" placeholder:"S"`
	Output
}

// Help is shown by kong below the flags.
func (Coverage) Help() string {
	return `Examples:
  hamlet-lab bench coverage
  hamlet-lab bench coverage --dim 20 --events 500 --repetitions 200

Does the 90 % interval hold the true probability in 90 % of the answers? Only a simulation knows it:
weights β ~ N(0, I), which is the head's prior, inputs x ~ N(0, I), labels with P(spam) = σ(βᵀx). A
head (R-VGA, as served) learns a stream of them and is asked about new inputs. Two intervals are
compared: that of the belief as learnt, N(m, a), and the served one, whose variance is larger and
which always contains the answer's p.

Answers in the middle and in both tails are counted apart: by the answer's p, on which an exact
belief covers 90 % in every part, and by the true p. By the true p no belief does: in the tails it
has met what it thought unlikely. Standard errors are over repetitions.`
}

func (c *Coverage) check() error {
	if err := atLeast(limit{"--repetitions", c.Repetitions, 1}, limit{"--questions", c.Questions, 1}); err != nil {
		return err
	}
	for _, d := range c.Dim {
		if d < 1 || d > mostInputs {
			return cli.Usagef("--dim: %d is not in 1 to %d", d, mostInputs)
		}
	}
	last := 0
	for _, n := range c.Events {
		if n <= last {
			return cli.Usagef("--events: %d after %d: want ascending numbers above 0", n, last)
		}
		last = n
	}
	return nil
}

// mostInputs bounds --dim: an event costs D².
const mostInputs = 1024

// Run measures the coverage and prints it.
func (c *Coverage) Run(ctx context.Context, stdio cli.IO) error {
	if err := c.check(); err != nil {
		return err
	}
	result := &coverageResult{Command: commandLine(), Repetitions: c.Repetitions, Questions: c.Questions, Seed: c.Seed}
	phases := newPhases(stdio.Err)
	for _, d := range c.Dim {
		all, err := c.measure(ctx, d, phases)
		if err != nil {
			return err
		}
		for k, n := range c.Events {
			for by := range groupings {
				for region := range regions {
					result.Rows = append(result.Rows, rowOfCoverage(d, n, by, region, all[k]))
				}
			}
		}
	}
	return c.show(stdio.Out, result)
}

// Where an answer lies, by its own p or by the true one.
const (
	below   = iota // p < .05
	middle         //
	above          // p > .95
	anyP           // all answers
	regions        // their number
)

const (
	byAnswer = iota
	byTruth
	groupings // their number
)

var (
	regionNames   = [regions]string{"p < .05", "middle", "p > .95", "all"}
	groupingNames = [groupings]string{byAnswer: "answer", byTruth: "truth"}
)

// A tally counts one repetition's answers of one region: all, and those whose interval
// holds the true p.
type tally struct{ n, plain, served int }

// tallies are one repetition's after one number of events.
type tallies [groupings][regions]tally

// measure returns the tallies after each number of events, by repetition. Repetition r
// draws from PCG(seed, D·2³²+r), so concurrency does not affect the result.
func (c *Coverage) measure(ctx context.Context, dim int, show *phases) ([][]tallies, error) {
	all := make([][]tallies, len(c.Events))
	for k := range all {
		all[k] = make([]tallies, c.Repetitions)
	}
	name := fmt.Sprintf("%d inputs: repetitions", dim)
	return all, show.each(ctx, name, c.Repetitions, c.Repetitions, func(r int, turn func() error) error {
		s, err := newKnown(dim, c.Seed, uint64(dim)<<32+uint64(r))
		if err != nil {
			return err
		}
		learnt := 0
		for k, n := range c.Events {
			for ; learnt < n; learnt++ {
				s.learn()
			}
			for range c.Questions {
				s.ask(&all[k][r])
			}
		}
		return turn()
	})
}

// A known is a stream whose probabilities are known, and the head that learns it.
type known struct {
	random  *rand.Rand
	weights []float64
	x       []float64
	head    *blr.Posterior
}

func newKnown(dim int, seed, stream uint64) (*known, error) {
	head, err := blr.New(blr.Config{Dim: dim}) // prior N(0, I)
	if err != nil {
		return nil, fmt.Errorf("a head of %d inputs: %w", dim, err)
	}
	s := &known{random: rand.New(rand.NewPCG(seed, stream)), weights: make([]float64, dim), x: make([]float64, dim),
		head: head}
	for j := range s.weights {
		s.weights[j] = s.random.NormFloat64()
	}
	return s, nil
}

// draw sets x and returns its true log-odds.
func (s *known) draw() (z float64) {
	for j := range s.x {
		s.x[j] = s.random.NormFloat64()
		z += s.weights[j] * s.x[j]
	}
	return z
}

func (s *known) learn() {
	y := -1.0
	if z := s.draw(); s.random.Float64() < 1/(1+math.Exp(-z)) {
		y = 1
	}
	s.head.Update(s.x, y, 1)
}

// ask counts the answer for a new input.
func (s *known) ask(t *tallies) {
	z := s.draw()
	m, a := s.head.Moments(s.x)
	plain := math.Abs(z-m) <= model.Z90*math.Sqrt(a)
	answer := model.Expect(m, model.Inflation*a)
	served := math.Abs(z-m) <= model.Z90*math.Sqrt(answer.Variance)
	if !served && answer.Skewed(model.Z90) { // widened to contain the answer's p
		served = min(m, answer.LogOdds) <= z && z <= max(m, answer.LogOdds)
	}
	for by, logOdds := range [groupings]float64{byAnswer: answer.LogOdds, byTruth: z} {
		for _, region := range [2]int{regionOf(logOdds), anyP} {
			c := &t[by][region]
			c.n++
			if plain {
				c.plain++
			}
			if served {
				c.served++
			}
		}
	}
}

var tailLogit = math.Log(19) // of p = .95

func regionOf(logOdds float64) int {
	switch {
	case logOdds < -tailLogit:
		return below
	case logOdds > tailLogit:
		return above
	}
	return middle
}

// A coverageResult is the output of --json.
type coverageResult struct {
	Command     string        `json:"command"`
	Repetitions int           `json:"repetitions"`
	Questions   int           `json:"questions"`
	Seed        uint64        `json:"seed"`
	Rows        []coverageRow `json:"rows"`
}

// A coverageRow is the coverage of one region. Shares are null without an answer in it.
type coverageRow struct {
	Dim    int          `json:"dim"`
	Events int          `json:"events"`
	By     string       `json:"by"` // whose p chose the region: the answer's or the truth
	Region string       `json:"region"`
	Share  eval.Measure `json:"share"` // of the answers, in this region
	Plain  jsonShare    `json:"plain"` // coverage of the interval of N(m, a)
	Served jsonShare    `json:"served"`
}

// A jsonShare is a share with its standard error over repetitions.
type jsonShare struct {
	Value eval.Measure `json:"value"`
	Error eval.Measure `json:"standard_error"`
}

func rowOfCoverage(dim, events, by, region int, all []tallies) coverageRow {
	count := func(of func(t *tally) int) []int {
		counts := make([]int, len(all))
		for r := range all {
			counts[r] = of(&all[r][by][region])
		}
		return counts
	}
	n := count(func(t *tally) int { return t.n })
	total := 0
	for r := range all {
		total += all[r][by][anyP].n
	}
	here := 0
	for _, k := range n {
		here += k
	}
	return coverageRow{
		Dim: dim, Events: events, By: groupingNames[by], Region: regionNames[region],
		Share:  eval.Measure(float64(here) / float64(total)),
		Plain:  shareOf(count(func(t *tally) int { return t.plain }), n),
		Served: shareOf(count(func(t *tally) int { return t.served }), n),
	}
}

// shareOf returns Σh/Σn over repetitions with the standard error of a ratio of sums,
// √Σ(h−cn)²/Σn: answers of one repetition share their weights and are not independent
// (Cochran, Sampling Techniques, 1977, eq. 2.39 for a large population). NaN without an
// answer.
func shareOf(h, n []int) jsonShare {
	hits, total, squares := 0, 0, 0.0
	for r := range n {
		hits += h[r]
		total += n[r]
	}
	c := float64(hits) / float64(total)
	for r := range n {
		d := float64(h[r]) - c*float64(n[r])
		squares += d * d
	}
	return jsonShare{eval.Measure(c), eval.Measure(math.Sqrt(squares) / float64(total))}
}

// section has a line for each number of inputs, of events, and whose p counts.
func (r *coverageResult) section() *experiment.Section {
	t := experiment.Table{Head: [][]string{append([]string{"inputs", "events", "p of the"}, regionNames[:]...)}}
	for line := range slices.Chunk(r.Rows, regions) {
		cells := []string{strconv.Itoa(line[0].Dim), strconv.Itoa(line[0].Events), line[0].By}
		for i := range line {
			cells = append(cells, line[i].text())
		}
		t.Add(cells...)
	}
	return &experiment.Section{Table: t,
		Lead: experiment.Plain("Percentage of answers whose 90 % interval holds the true p: of the belief as learnt " +
			"| as served."),
		Notes: experiment.Plain(fmt.Sprintf("%d streams of each number of inputs, %d answers after each number of "+
			"events; ± standard error; seed %d.", r.Repetitions, r.Questions, r.Seed), "Made by: "+r.Command)}
}

func (r *coverageRow) text() string {
	if !r.Plain.Value.Defined() {
		return "–"
	}
	return fmt.Sprintf("%.1f | %.1f ± %.1f", 100*float64(r.Plain.Value), 100*float64(r.Served.Value),
		100*float64(r.Served.Error))
}
