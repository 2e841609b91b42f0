package answered

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"hamlet/algos/eval"
	"hamlet/algos/promise"
	"hamlet/stream"
)

// z90 is the 95 % quantile of the standard normal distribution: intervals are 90 %.
const z90 = 1.6448536269514722

// An Interval is a figure with its 90 % interval; null in JSON where it has no value.
type Interval struct {
	Value eval.Measure `json:"value"`
	Low   eval.Measure `json:"lo"`
	High  eval.Measure `json:"hi"`
}

func newInterval(value, low, high float64) Interval {
	return Interval{eval.Measure(value), eval.Measure(low), eval.Measure(high)}
}

// Figures are those of the labelled answers of one door and tenant.
type Figures struct {
	Door     string `json:"door"`
	Tenant   string `json:"tenant"`
	Answers  int    `json:"answers"`  // decisions, labelled or not; 0 if nobody counted them
	Labelled int    `json:"labelled"` // of these
	// Corrected of them had a verdict, spam or ham, that the label contradicts. Unsure had the verdict unsure.
	Corrected int `json:"corrected"`
	Unsure    int `json:"unsure"`

	Error   Interval `json:"error"`    // fraction with p on the wrong side of ½; Wilson's interval
	LogLoss Interval `json:"log_loss"` // nats
	Bias    Interval `json:"bias"`     // mean of p less the fraction of spam: 0 if p is calibrated in the large
	Slope   Interval `json:"slope"`    // of the calibration line, see eval.Calibrate: below 1 is overconfident
	ROCA    Interval `json:"roca"`     // 1-ROCA%; DeLong's interval

	// From the answer to its label, in seconds: half and nine tenths came within.
	DelayMedian     eval.Measure `json:"delay_median"`
	DelayNineTenths eval.Measure `json:"delay_p90"`

	Expected *Expected `json:"expected,omitempty"` // nil if nobody counted the answers
	Lost     int       `json:"ham_lost"`           // labelled ham that was answered spam
	Missed   int       `json:"spam_missed"`        // labelled spam that was answered ham or unsure

	newest Interval // slope of the newest slopeOf labelled answers
}

// FiguresOf computes those of matches, the newest last, without door, tenant and answers. O(N log N).
func FiguresOf(matches []Match) (f Figures) {
	f.Labelled = len(matches)
	n := float64(len(matches))
	points := make([]eval.Point, len(matches))
	delays := make([]float64, len(matches))
	var wrong, loss, squares, bias, biases float64
	for i := range matches {
		m := &matches[i]
		z := m.LogOdds()
		points[i] = eval.Point{LogOdds: z, Ham: 1}
		y := 0.0
		if m.Spam {
			points[i], y = eval.Point{LogOdds: z, Spam: 1}, 1
		}
		if (m.P >= 0.5) != m.Spam {
			wrong++
		}
		if m.Corrected() {
			f.Corrected++
		}
		if m.Verdict == stream.DecideUnsure {
			f.Unsure++
		}
		switch lost, missed := m.wrong(); {
		case lost:
			f.Lost++
		case missed:
			f.Missed++
		}
		l := eval.LogLoss(m.Spam, z)
		loss, squares = loss+l, squares+l*l
		bias, biases = bias+m.P-y, biases+(m.P-y)*(m.P-y)
		delays[i] = m.Delay.Seconds()
	}
	f.Error = wilson(wrong, n)
	f.LogLoss, f.Bias = mean(loss, squares, n), mean(bias, biases, n)
	f.LogLoss.Low = max(0, f.LogLoss.Low)
	f.ROCA = newInterval(eval.ROCAInterval(points, z90))
	f.Slope = slope(points)
	f.newest = f.Slope
	if len(points) > slopeOf {
		f.newest = slope(points[len(points)-slopeOf:])
	}
	slices.Sort(delays)
	f.DelayMedian, f.DelayNineTenths = quantile(delays, 0.5), quantile(delays, 0.9)
	return f
}

func slope(points []eval.Point) Interval {
	line := eval.Calibrate(slices.Values(points))
	spread := z90 * float64(line.SlopeError)
	return newInterval(float64(line.Slope), float64(line.Slope)-spread, float64(line.Slope)+spread)
}

// wilson returns k of n with Wilson's interval (Wilson 1927).
func wilson(k, n float64) Interval {
	p, z2 := k/n, z90*z90
	middle, spread := p+z2/(2*n), z90*math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return newInterval(p, max(0, (middle-spread)/(1+z2/n)), min(1, (middle+spread)/(1+z2/n)))
}

// mean returns the mean of n numbers with the interval of its standard error.
func mean(sum, squares, n float64) Interval {
	at := sum / n
	spread := z90 * math.Sqrt(max(0, squares/n-at*at)/(n-1))
	return newInterval(at, at-spread, at+spread)
}

func quantile(sorted []float64, q float64) eval.Measure {
	if len(sorted) == 0 {
		return eval.Measure(math.NaN())
	}
	return eval.Measure(sorted[int(math.Ceil(q*float64(len(sorted))))-1])
}

func compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(a.door, b.door), cmp.Compare(a.tenant, b.tenant))
}

// Of returns the figures of what the journal's lines say: one of all answers, whose door and
// tenant are empty, and one of each door and tenant, in this order. A label that was changed
// counts as it was last. Lines that are further apart than most messages are not joined. doubts
// returns those of a model by its name; nil: there are none.
func Of(lines func(yield func(*stream.JournalEntry) bool), most int, doubts func(model string) Doubts) []Figures {
	matcher, record := NewMatcher(most), NewRecord(most)
	groups, all := map[group]*tally{}, &tally{}
	var found []Match
	at := map[string]int{} // in found, by identity
	for e := range lines {
		nth := matcher.Decisions()
		if e.Label == stream.Unlabelled {
			g := group{e.Door, e.Tenant}
			one := groups[g]
			if one == nil {
				one = &tally{number: len(groups)}
				groups[g] = one
			}
			one.answers++
			all.answers++
		}
		m, ok := matcher.Add(e)
		if matcher.Decisions() > nth {
			one := groups[group{e.Door, e.Tenant}]
			var doubt Doubts
			if doubts != nil {
				doubt = doubts(ModelOf(e))
			}
			leftOut := doubt.During(e.Time, e.Time)
			one.add(e, leftOut, doubt)
			all.add(e, leftOut, doubt)
			record.Add(nth, e, one.number, leftOut)
		}
		if !ok {
			continue
		}
		record.Label(&m)
		if i, changed := at[e.ID]; changed {
			found[i] = m
			continue
		}
		at[e.ID] = len(found)
		found = append(found, m)
	}
	matches := map[group][]Match{}
	for _, m := range found {
		matches[group{m.Door, m.Tenant}] = append(matches[group{m.Door, m.Tenant}], m)
	}
	excess, sum, contradicted := record.Contradictions(time.Time{}, nil)
	table := make([]Figures, 1, len(groups)+1)
	for _, g := range slices.SortedFunc(maps.Keys(groups), compareGroups) {
		one := groups[g]
		e, ok := excess[one.number]
		f := one.figures(matches[g], record, e, ok)
		f.Door, f.Tenant = g.door, g.tenant
		table = append(table, f)
	}
	table[0] = all.figures(found, record, sum, contradicted)
	return table
}

// ModelOf returns the name of the model that answered.
func ModelOf(e *stream.JournalEntry) string {
	name, _, _ := strings.Cut(e.Model, "/")
	return name
}

// A tally adds up the answers of a group.
type tally struct {
	number   int
	answers  int
	expected promise.Expected
	leftOut  int
	last     string // the model that answered last
	models   map[string]*answering
}

// An answering is a model that gave some of the answers.
type answering struct {
	last   time.Time // of its answers
	doubts Doubts
}

func (t *tally) add(e *stream.JournalEntry, leftOut bool, doubts Doubts) {
	t.last = ModelOf(e)
	m := t.models[t.last]
	if m == nil {
		if t.models == nil {
			t.models = map[string]*answering{}
		}
		m = &answering{}
		t.models[t.last] = m
	}
	m.doubts = doubts
	if e.Time.After(m.last) {
		m.last = e.Time
	}
	if leftOut {
		t.leftOut++
		return
	}
	Expect(&t.expected, e)
}

// open says which incident is open in the model that answered last, or in one that answered since it began.
func (t *tally) open() string {
	for _, name := range slices.Sorted(maps.Keys(t.models)) {
		m := t.models[name]
		later := func(one Doubt) bool { return name != t.last && m.last.Before(one.From) }
		if reason := slices.DeleteFunc(slices.Clone(m.doubts), later).Open(); reason != "" {
			return reason
		}
	}
	return ""
}

func (t *tally) figures(matches []Match, r *Record, e promise.Excess, contradicted bool) Figures {
	f := FiguresOf(matches)
	f.Answers = t.answers
	reason := t.open()
	switch {
	case reason != "":
	case contradicted:
		reason = ExcessReason(e)
	case t.leftOut == 0:
		reason = SlopeReason(&f)
	default:
		kept := FiguresOf(slices.DeleteFunc(slices.Clone(matches), func(m Match) bool { return r.leftOut(&m) }))
		kept.Answers = f.Answers - t.leftOut
		reason = SlopeReason(&kept)
	}
	f.Expect(t.expected, t.leftOut, reason)
	return f
}
