package answered

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"hamlet/algos/promise"
	"hamlet/stream"
)

// Expected says how many answers are probably wrong, by p and its interval alone: see [promise.Expected]. Each
// message counts once, with its first answer.
type Expected struct {
	Answers int `json:"answers"`  // that are counted
	LeftOut int `json:"left_out"` // that are not: an incident was open in the model when it gave them

	Lost   Interval `json:"ham_lost"`    // ham that was answered spam
	Missed Interval `json:"spam_missed"` // spam that was answered ham or unsure

	// Withdrawn says why Lost and Missed are not known, and have no value; "": they are known.
	Withdrawn string `json:"withdrawn,omitempty"`
}

// A Doubt is a time in which a model's p may be wrong by more than its interval says: an incident of
// concept or label noise was open, or it was not known yet of what.
type Doubt struct {
	Kind string    // stream.AlertConcept and the others; "": nobody says whether there is one
	From time.Time // of the suspicion; zero: not known
	To   time.Time // zero: it is open
}

// Doubts are all those of a model.
type Doubts []Doubt

// During reports whether p was in doubt at any moment from a time to another.
func (d Doubts) During(from, to time.Time) bool {
	return slices.ContainsFunc(d, func(one Doubt) bool {
		return !to.Before(one.From) && (one.To.IsZero() || !from.After(one.To))
	})
}

// Hours returns the doubts that reach to a time or beyond, each as whole hours.
func (d Doubts) Hours(since time.Time) (hours Doubts) {
	for _, one := range d {
		if !one.To.IsZero() {
			one.To = one.To.Truncate(time.Hour).Add(time.Hour - 1)
			if one.To.Before(since) {
				continue
			}
		}
		one.From = one.From.Truncate(time.Hour)
		hours = append(hours, one)
	}
	return hours
}

// Open says which incident is open, in words; "": none.
func (d Doubts) Open() string {
	for _, one := range d {
		if !one.To.IsZero() {
			continue
		}
		what := "an incident of " + one.Kind
		switch one.Kind {
		case "":
			return "neither NATS nor a scorer says whether an incident is open"
		case stream.AlertUnknown:
			what = "a suspicion that something changed"
		}
		if one.From.IsZero() {
			return what + " is open"
		}
		return fmt.Sprintf("%s is open since %s", what, one.From.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return ""
}

// probability returns that of spam, with its interval. One that does not contain p is widened.
func probability(e *stream.JournalEntry) (p, low, high float64) {
	clip := func(p float64) float64 { return max(0, min(1, p)) }
	p = clip(e.P)
	return p, min(p, clip(e.Low)), max(p, clip(e.High))
}

// wrong says which error the label shows.
func (m *Match) wrong() (lost, missed bool) {
	return m.Verdict == stream.DecideSpam && !m.Spam, m.Verdict != stream.DecideSpam && m.Spam
}

// Expect counts an answer into e.
func Expect(e *promise.Expected, answer *stream.JournalEntry) {
	p, low, high := probability(answer)
	e.Add(p, low, high, answer.Verdict == stream.DecideSpam)
}

// Expect says what is expected of the answers that sums count. reason says why that is not known; "": it is.
func (f *Figures) Expect(sums promise.Expected, leftOut int, reason string) {
	x := &Expected{Answers: sums.Lost.N + sums.Missed.N, LeftOut: leftOut, Withdrawn: reason}
	if reason == "" && x.Answers == 0 && leftOut > 0 {
		x.Withdrawn = "an incident was open all the time"
	}
	x.Lost, x.Missed = figure(sums.Lost), figure(sums.Missed)
	if x.Withdrawn != "" {
		nan := math.NaN()
		x.Lost, x.Missed = newInterval(nan, nan, nan), newInterval(nan, nan, nan)
	}
	f.Expected = x
}

func figure(c promise.Count) Interval {
	low, high := c.Interval()
	return newInterval(c.Mean, float64(low), float64(high))
}

// SlopeReason says that the newest labelled answers are not calibrated; "": they may be. Where fewer than half of
// the answers have a label, it says nothing: people label what they see wrong, and
// these are less calibrated than all.
func SlopeReason(f *Figures) string {
	s, n := f.newest, min(f.Labelled, slopeOf)
	if n < slopeLeast || 2*f.Labelled < f.Answers || !(s.High < 1 || s.Low > 1) {
		return ""
	}
	return fmt.Sprintf("the last %d labelled answers have the slope %.2f (%.2f to %.2f), and not 1", n, s.Value, s.Low, s.High)
}

// Of so many labelled answers the slope is asked. Of all, it would see a change too late, and of very many
// it leaves 1 by a hundredth, which harms no sum. Of fewer, its interval is not to be trusted.
const (
	slopeOf    = 500
	slopeLeast = 100
)

// ExcessReason says that labels contradict what was expected. It cannot say which of the two is wrong: slips in 1 %
// of labels are more than promise.Slips.
func ExcessReason(e promise.Excess) string {
	return fmt.Sprintf("labels contradict it: %d errors in %d answers, %.1f expected; p or the labels are wrong",
		e.Wrong, e.Verdicts, e.Expected)
}

// Groups number doors and tenants for a Record: at most mostGroups, and all others together.
type Groups map[group]int

// Number returns that of an answer's door and tenant.
func (g Groups) Number(e *stream.JournalEntry) int {
	of := group{e.Door, e.Tenant}
	if _, known := g[of]; !known && len(g) >= mostGroups {
		of = group{others, others}
	}
	n, known := g[of]
	if !known {
		n = len(g)
		g[of] = n
	}
	return n
}

// A Record keeps the newest answers in their order, with what labels said, some 24 bytes each.
type Record struct {
	all   []judgement
	first int64 // Match.Nth of all[0]
	most  int
}

// A judgement is one answer.
type judgement struct {
	at      int64 // seconds since 1970
	p, high float32
	group   int32
	wrong   bool
	out     bool // it is not counted
	unnamed bool // it can get no label
}

// NewRecord returns a Record of at most so many answers.
func NewRecord(most int) *Record { return &Record{most: most} }

// Add takes an answer that counts: nth is Matcher.Decisions before the matcher took it. All of them must be added,
// in order. group is any number. What is left out contradicts nothing, nor does what can get no label.
func (r *Record) Add(nth int64, e *stream.JournalEntry, group int, leftOut bool) {
	if len(r.all) == 0 {
		r.first = nth
	}
	if len(r.all) >= r.most+r.most/4 {
		n := len(r.all) - r.most
		r.all, r.first = slices.Delete(r.all, 0, n), r.first+int64(n)
	}
	p, low, high := probability(e)
	if e.Verdict == stream.DecideSpam {
		p, high = 1-p, 1-low
	}
	_, named := parse(e.ID)
	r.all = append(r.all, judgement{at: e.Time.Unix(), p: float32(p), high: float32(high), group: int32(group),
		out: leftOut, unnamed: !named})
}

// Label takes the label of an answer. A later one replaces it.
func (r *Record) Label(m *Match) {
	if j := r.of(m); j != nil {
		lost, missed := m.wrong()
		j.wrong = lost || missed
	}
}

// of returns the answer of a match; nil if it was forgotten.
func (r *Record) of(m *Match) *judgement {
	if i := m.Nth - r.first; i >= 0 && i < int64(len(r.all)) {
		return &r.all[i]
	}
	return nil
}

func (r *Record) leftOut(m *Match) bool {
	j := r.of(m)
	return j != nil && j.out
}

// Kept returns the figures of the answers since a time that are not left out, and in no time of doubt. It changes
// matches.
func (r *Record) Kept(matches []Match, since time.Time, doubts Doubts) Figures {
	counts := func(j *judgement) bool {
		at := time.Unix(j.at, 0)
		return !j.out && j.at >= since.Unix() && !doubts.During(at, at)
	}
	f := FiguresOf(slices.DeleteFunc(matches, func(m Match) bool {
		j := r.of(&m)
		return j == nil || !counts(j)
	}))
	for i := range r.all {
		if counts(&r.all[i]) {
			f.Answers++
		}
	}
	return f
}

// Clone returns a copy.
func (r *Record) Clone() *Record { return &Record{slices.Clone(r.all), r.first, r.most} }

// Contradictions returns which groups' answers since a time labels contradict, and all together. Answers in
// a time of doubt contradict nothing.
func (r *Record) Contradictions(since time.Time, doubts Doubts) (groups map[int]promise.Excess, all promise.Excess,
	ok bool) {
	var sum promise.Contradiction
	each := map[int32]*promise.Contradiction{}
	var one *promise.Contradiction // of the group last
	var last int32
	for i := range r.all {
		j := &r.all[i]
		if at := time.Unix(j.at, 0); j.out || j.unnamed || j.at < since.Unix() || doubts.During(at, at) {
			continue
		}
		if one == nil || j.group != last {
			if one, last = each[j.group], j.group; one == nil {
				one = &promise.Contradiction{}
				each[j.group] = one
			}
		}
		one.Add(float64(j.p), float64(j.high), j.wrong)
		sum.Add(float64(j.p), float64(j.high), j.wrong)
	}
	groups = map[int]promise.Excess{}
	for g, one := range each {
		if e, ok := one.Excess(); ok {
			groups[int(g)] = e
		}
	}
	all, ok = sum.Excess()
	if !ok { // a sum of which a part is not known is not known
		for _, g := range slices.Sorted(maps.Keys(groups)) {
			if e := groups[g]; !ok || e.Wrong > all.Wrong {
				all, ok = e, true
			}
		}
	}
	return groups, all, ok
}
