package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/algos/promise"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
)

// Promise holds the flags of `hamlet-lab bench promise`.
type Promise struct {
	Sets
	Messages int    `help:"Messages of the generator that a model judges and learns." default:"20000" placeholder:"N"`
	Streams  int    `help:"Streams that are drawn from the judged messages of each set." default:"1000" placeholder:"K"`
	Length   int    `help:"Ham of each stream." default:"20000" placeholder:"N"`
	Again    int    `help:"Other orders in which each set is judged and learnt again." default:"50" placeholder:"K"`
	Seed     uint64 `help:"Seed of the draws." default:"1" placeholder:"S"`
	Output
}

// Help is shown by kong below the flags.
func (Promise) Help() string {
	return `Examples:
  hamlet-lab bench promise
  hamlet-lab bench promise --index index.csv corpus.tar.gz SMSSpamCollection stream.svm.gz
  hamlet-lab bench promise --no-generator --streams 100 SMSSpamCollection

Is a budget for lost ham kept, and what does it cost? A model judges each message of a set, and then
learns it. From the judged messages --streams streams are drawn with replacement, in any order or in
that of the set. The threshold of a budget is that of package promise: it knows the ham before it.

  any order     messages in any order
  in order      each from the twentieth of the set around its place
  backwards     from the end of the set to its beginning: ham that a young model judged comes last
  10 % flips    in any order; one label in ten is wrong, for the model and for the table
  new campaign  in order; it begins in the middle of the set
  new policy    likewise
  2 %           in any order; the model learns its errors and a random 2 %, the table only the 2 %
  learnt again  no draw: --again models judge and learn the whole set, each in another order, and
                the generator's messages of another seed

"from" is the ham in the stream when the budget could be promised (median of the streams in which it
could), "never" the streams in which it could not. "ever" are streams in which, at any moment, the
threshold in force lost a larger share of the whole set's ham than the budget. "broken" are those in
which it lost more, from the promise to the end. "lost" is in % of the budget. Of the spam from
10/budget judged ham on, "caught" is called spam, and "best" by the threshold that
would have kept the budget by the labels given; both in %, and their ratio.`
}

var budgets = [...]float64{0.001, 0.002, 0.005, 0.01}

// A judged message is one that was scored before it was learnt.
type judged struct {
	prediction model.Prediction
	spam       bool // truly
	ham        bool // the label is ham
}

// A reading is a way to draw and to label a stream.
type reading struct {
	name    string
	ordered bool
	back    bool    // from the end of the set to its beginning
	fault   string  // of faults, from the middle of the set; "": none
	flip    float64 // share of wrong labels
	asked   float64 // share of messages whose labels are asked for; the others' are given for errors
	again   bool    // each stream is judged by a model of its own: its messages, each once, in any order
}

var readings = []reading{
	{name: "any order", asked: 1},
	{name: "in order", ordered: true, asked: 1},
	{name: "backwards", ordered: true, back: true, asked: 1},
	{name: "10 % flips", flip: 0.1, asked: 1},
	{name: "new campaign", ordered: true, fault: "new campaign", asked: 1},
	{name: "new policy", ordered: true, fault: "new policy", asked: 1},
	{name: "2 %", asked: 0.02},
	{name: "learnt again", asked: 1, again: true},
}

// A promiseLine is one budget in the streams of one reading of a set.
type promiseLine struct {
	Set     string       `json:"set"`
	Reading string       `json:"stream"`
	Budget  float64      `json:"budget"`
	From    eval.Measure `json:"from"`   // ham
	Never   float64      `json:"never"`  // share of streams
	Ever    eval.Measure `json:"ever"`   // share of streams, undefined in order
	Broken  float64      `json:"broken"` // share of streams
	Lost    eval.Measure `json:"lost"`   // mean share of ham, from the promise on
	Caught  eval.Measure `json:"caught"` // shares of spam, from 10/budget on
	Best    eval.Measure `json:"best"`
}

// An expectedLine compares the expected errors of a set's weeks with the true ones.
type expectedLine struct {
	Set     string          `json:"set"`
	Reading string          `json:"stream"`
	Weeks   int             `json:"weeks"`
	Inside  [2]int          `json:"inside"` // weeks with the truth in the interval: of lost ham, of missed spam
	Plain   [2]int          `json:"plain"`  // the same without the model's doubt
	True    [2]int          `json:"true"`
	Sum     [2]eval.Measure `json:"expected"`
}

// A promiseResult is the table.
type promiseResult struct {
	Command  string         `json:"command"`
	Streams  int            `json:"streams"`
	Ham      int            `json:"ham"`
	Lines    []promiseLine  `json:"lines"`
	Expected []expectedLine `json:"expected"`

	took time.Duration
}

// Run draws the streams and prints the table.
func (c *Promise) Run(ctx context.Context, stdio cli.IO) error {
	if err := atLeast(limit{"--messages", c.Messages, week}, limit{"--streams", c.Streams, 1},
		limit{"--length", c.Length, 1}, limit{"--again", c.Again, 1}); err != nil {
		return err
	}
	if err := c.Sets.check(); err != nil {
		return err
	}
	populations, err := c.populations(stdio)
	if err != nil {
		return err
	}
	start := time.Now()
	r := &promiseResult{Command: commandLine(), Streams: c.Streams, Ham: c.Length}
	show := newPhases(stdio.Err)
	for _, set := range populations {
		for i := range readings {
			if err := c.read(ctx, r, set, &readings[i], show); err != nil {
				return err
			}
		}
	}
	r.took = time.Since(start)
	return c.show(stdio.Out, r)
}

// read judges a set's messages and measures the streams that are drawn from them.
func (c *Promise) read(ctx context.Context, r *promiseResult, set *population, way *reading, show *phases) error {
	var all []judged
	var pool *pool
	streams := c.Again
	if !way.again {
		var err error
		if all, err = c.judge(ctx, set, way, c.Seed, nil); err != nil || all == nil {
			return err
		}
		if pool, err = newPool(set, all); err != nil {
			return err
		}
		streams = c.Streams
	}
	runs := make([][len(budgets)]kept, streams)
	name := fmt.Sprintf("%s, %s: streams", set.name, way.name)
	err := show.each(ctx, name, streams, streams, func(i int, turn func() error) error {
		random := rand.New(rand.NewPCG(c.Seed, drawStream+uint64(i)))
		if !way.again {
			runs[i] = pool.stream(c.Length, way, random)
			return turn()
		}
		judged, err := c.judge(ctx, set, way, c.Seed+uint64(i), random.Perm(len(set.set)))
		if err != nil {
			return err
		}
		own, err := newPool(set, judged)
		if err != nil {
			return err
		}
		runs[i] = own.stream(own.ham, way, random)
		return turn()
	})
	for k := range budgets {
		r.Lines = append(r.Lines, lineOf(set.name, way, budgets[k], runs, k))
	}
	if way.ordered && !way.back {
		r.Expected = append(r.Expected, expect(set.name, way, all))
	}
	return err
}

// judge runs a model over the set, or over the generator's messages of a seed. order is that of a set's messages; nil
// is the set's own. It returns nothing if the fault does not apply to the set.
func (c *Promise) judge(ctx context.Context, set *population, way *reading, seed uint64, order []int) ([]judged,
	error) {
	n := len(set.set)
	if set.set == nil {
		n = c.Messages
	}
	var f *fault
	alter := change(keepAll)
	random := rand.New(rand.NewPCG(seed, faultStream))
	if way.fault != "" {
		f = &faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == way.fault })]
		if alter = f.of(set, random); alter == nil {
			return nil, nil
		}
	}
	next := func(i int) (model.Example, error) {
		if order != nil {
			i = order[i]
		}
		return set.event(i), nil
	}
	if set.set == nil {
		before, err := set.open(seed, 0, nil)
		if err != nil {
			return nil, err
		}
		after, err := set.open(seed, n/2, f)
		if err != nil {
			return nil, err
		}
		next = func(i int) (model.Example, error) {
			if i < n/2 {
				return before()
			}
			return after()
		}
	}
	m, err := model.New(set.model)
	if err != nil {
		return nil, err
	}
	predictor := m.NewPredictor()
	all := make([]judged, 0, n)
	for i := range n {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		ex, err := next(i)
		if err != nil {
			return nil, err
		}
		if i >= n/2 && !alter(&ex) {
			continue
		}
		j := judged{spam: ex.Spam}
		if j.prediction, err = predictor.Predict(&ex.Body); err != nil {
			return nil, err
		}
		ex.Spam = ex.Spam != (random.Float64() < way.flip)
		j.ham = !ex.Spam
		all = append(all, j)
		if random.Float64() < way.asked || ex.Spam != (j.prediction.LogOdds >= 0) {
			if _, err := m.Apply(&ex); err != nil {
				return nil, err
			}
		}
	}
	if way.back {
		slices.Reverse(all)
	}
	return all, nil
}

// A pool is what streams are drawn from.
type pool struct {
	all    []judged
	sorted []int     // indices of all, from the highest log-odds to the lowest
	ham    int       // true ham
	hams   []float64 // log-odds of true ham, ascending
}

func newPool(set *population, all []judged) (*pool, error) {
	p := &pool{all: all, sorted: make([]int, len(all))}
	for i := range all {
		p.sorted[i] = i
		if !all[i].spam {
			p.ham++
			p.hams = append(p.hams, all[i].prediction.LogOdds)
		}
	}
	slices.Sort(p.hams)
	slices.SortFunc(p.sorted, func(a, b int) int {
		return cmp.Compare(all[b].prediction.LogOdds, all[a].prediction.LogOdds)
	})
	if p.ham == 0 || p.ham == len(all) {
		return nil, fmt.Errorf("%s: all messages are of one class", set.name)
	}
	return p, nil
}

// loses returns the share of the pool's ham that a threshold loses.
func (p *pool) loses(threshold float64) float64 {
	at, _ := slices.BinarySearch(p.hams, threshold)
	return float64(p.ham-at) / float64(p.ham)
}

// A kept is what became of one budget in one stream.
type kept struct {
	promised           bool
	from               int  // ham before the promise
	ever               bool // the threshold once lost more of the pool
	lost, of           int  // ham from the promise on
	caught, best, spam int  // spam from 10/budget on
}

// looks is how much the ham grows between two looks at the table. A ham that is lost is a look as well.
const looks = 1.05

// stream draws a stream until it has about n ham, and keeps all budgets. One that is learnt again is the pool, once.
func (p *pool) stream(n int, way *reading, r *rand.Rand) (out [len(budgets)]kept) {
	var table promise.Table
	thresholds := [len(budgets)]float64{}
	for k := range thresholds {
		thresholds[k] = math.Inf(1)
	}
	look := func(k int) {
		thresholds[k] = table.Threshold(budgets[k]).LogOdds
		o := &out[k]
		o.promised = o.promised || !math.IsInf(thresholds[k], 1)
		o.ever = o.ever || o.promised && p.loses(thresholds[k]) > budgets[k]
	}
	length := n * len(p.all) / p.ham
	counts := make([]int32, len(p.all))
	var begun [len(budgets)][]int32 // counts at 10/budget
	ham, due, next := 0, 0, 1
	for at := range length {
		i := at
		switch {
		case way.again: // length is that of the pool
		case !way.ordered:
			i = r.IntN(len(p.all))
		default:
			width := max(1, len(p.all)/20)
			i = max(0, min(len(p.all)-width, at*len(p.all)/length-width/2)) + i%width
		}
		counts[i]++
		j := &p.all[i]
		z := j.prediction.LogOdds
		if !j.spam {
			ham++
		}
		labelled := j.ham && (way.asked == 1 || r.Float64() < way.asked)
		for k := range out {
			o := &out[k]
			above := z >= thresholds[k]
			if o.promised && !j.spam {
				o.of++
				if above {
					o.lost++
				}
			} else if !o.promised {
				o.from = ham
			}
			if j.spam && begun[k] != nil {
				o.spam++
				if above {
					o.caught++
				}
			}
		}
		if !labelled {
			continue
		}
		due++
		table.Observe(z, 1)
		for k := range out {
			if due == next || z >= thresholds[k] {
				look(k)
			}
			if begun[k] == nil && float64(due)*budgets[k] >= 10 {
				begun[k] = slices.Clone(counts)
			}
		}
		if due == next {
			next = max(next+1, int(looks*float64(next)))
		}
	}
	for k := range out {
		if begun[k] != nil {
			out[k].best = p.best(counts, begun[k], budgets[k])
		}
	}
	return out
}

// best returns the spam that is caught between two counts by the smallest threshold that kept the
// budget by the labels of that time.
func (p *pool) best(counts, begun []int32, budget float64) (caught int) {
	ham := 0
	for i := range counts {
		if p.all[i].ham {
			ham += int(counts[i] - begun[i])
		}
	}
	left := int(budget * float64(ham))
	for _, i := range p.sorted {
		n := int(counts[i] - begun[i])
		if p.all[i].ham {
			left -= n
		}
		if left < 0 {
			break
		}
		if p.all[i].spam {
			caught += n
		}
	}
	return caught
}

// lineOf sums up one budget of all streams.
func lineOf(set string, way *reading, budget float64, runs [][len(budgets)]kept, k int) promiseLine {
	line := promiseLine{Set: set, Reading: way.name, Budget: budget}
	var from []float64
	never, ever, broken, lost, of, caught, best, spam := 0, 0, 0, 0, 0, 0, 0, 0
	for i := range runs {
		o := &runs[i][k]
		if !o.promised {
			never++
			continue
		}
		from = append(from, float64(o.from))
		if o.ever {
			ever++
		}
		if float64(o.lost) > budget*float64(o.of) {
			broken++
		}
		lost += o.lost
		of += o.of
		caught += o.caught
		best += o.best
		spam += o.spam
	}
	share := func(a, b int) eval.Measure { return eval.Measure(float64(a) / float64(b)) }
	line.Never, line.Broken = float64(never)/float64(len(runs)), float64(broken)/float64(len(runs))
	line.From, line.Ever = eval.Measure(math.NaN()), eval.Measure(math.NaN())
	if len(from) > 0 {
		slices.Sort(from)
		line.From = eval.Measure(from[len(from)/2])
	}
	if !way.ordered && !way.again {
		line.Ever = share(ever, len(runs))
	}
	line.Lost, line.Caught, line.Best = share(lost, of), share(caught, spam), share(best, spam)
	return line
}

// week is the number of messages over which errors are counted.
const week = 500

// expect compares the expected errors of each week of a set with the true ones, for the
// scorer's verdict.
func expect(set string, way *reading, all []judged) expectedLine {
	line := expectedLine{Set: set, Reading: way.name}
	for chunk := range slices.Chunk(all, week) {
		if len(chunk) < week {
			break
		}
		var e promise.Expected
		truth := [2]int{}
		for i := range chunk {
			p := chunk[i].prediction.P()
			low, high := chunk[i].prediction.Interval(model.Z90)
			spam := p >= 0.9 && low > 0.5
			e.Add(p, low, high, spam)
			if spam && !chunk[i].spam {
				truth[0]++
			} else if !spam && chunk[i].spam {
				truth[1]++
			}
		}
		line.Weeks++
		for k, count := range [2]promise.Count{e.Lost, e.Missed} {
			line.True[k] += truth[k]
			line.Sum[k] += eval.Measure(count.Mean)
			for _, of := range []struct {
				inside *[2]int
				count  promise.Count
			}{{&line.Inside, count}, {&line.Plain, promise.Count{N: count.N, Mean: count.Mean,
				Independent: count.Independent}}} {
				if low, high := of.count.Interval(); low <= truth[k] && truth[k] <= high {
					of.inside[k]++
				}
			}
		}
	}
	return line
}

// section has a line for each budget of each reading of each set.
func (r *promiseResult) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"set", "stream", "budget %", "from", "never %", "ever %",
		"broken %", "lost", "caught", "best", "ratio"}}}
	percent := func(m eval.Measure, digits int) string {
		if !m.Defined() {
			return "–"
		}
		return strconv.FormatFloat(100*float64(m), 'f', digits, 64)
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		from := "–"
		if l.From.Defined() {
			from = strconv.Itoa(int(l.From))
		}
		t.Add(l.Set, l.Reading, percent(eval.Measure(l.Budget), 1), from, percent(eval.Measure(l.Never), 1),
			percent(l.Ever, 1), percent(eval.Measure(l.Broken), 1), percent(l.Lost/eval.Measure(l.Budget), 0),
			percent(l.Caught, 1), percent(l.Best, 1), percent(l.Caught/l.Best, 1))
	}
	var notes []string
	for _, e := range r.Expected {
		notes = append(notes, fmt.Sprintf("%s, %s, %d weeks of %d: ham lost %d, expected %.1f, inside %d (%d without doubt); "+
			"spam missed %d, expected %.1f, inside %d (%d)", e.Set, e.Reading, e.Weeks, week, e.True[0], e.Sum[0], e.Inside[0],
			e.Plain[0], e.True[1], e.Sum[1], e.Inside[1], e.Plain[1]))
	}
	lead := fmt.Sprintf("%d streams of %d ham for each line", r.Streams, r.Ham)
	return &experiment.Section{Lead: experiment.Plain(lead), Table: t,
		Notes: append(experiment.Plain(notes...), made(r.Command, r.took)...)}
}
