package now

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"hamlet/algos/promise"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
)

// Errors say how many of a week's answers are probably wrong, without labels.
type Errors struct {
	Since    time.Time          // of the answers: a week ago, or later if the past was too long to read
	Expected *answered.Expected // nil: there are no answers
	Foreign  int                // answers of other models, which are not counted
}

const week = 7 * day

// An outlook adds up what is expected of a week's answers.
type outlook struct {
	hours  map[int64]*hour // by hours since 1970; some 169
	record *answered.Record
	groups answered.Groups // in record
	model  string          // that answered last
	other  string          // the last to answer that is not the console's
	seen   time.Time       // when other answered last

	changed bool // since the last look for a contradiction
	looked  time.Time
	excess  promise.Excess
	against bool             // labels contradict what is expected
	kept    answered.Figures // of the answers that count
}

// An hour is the answers of one hour.
type hour struct {
	sums    promise.Expected // of the console's model
	foreign int              // answers of another model, whose incidents are not known here
}

func newOutlook() *outlook {
	return &outlook{hours: map[int64]*hour{}, record: answered.NewRecord(Remembered), groups: answered.Groups{}}
}

// add takes an answer that counts and stands for weight answers. nth is as Record.Add wants it.
func (o *outlook) add(nth int64, e *stream.JournalEntry, model string, now time.Time, weight float64) {
	inTime := !e.Time.Before(now.Add(-week))
	if o.model = answered.ModelOf(e); o.model != model {
		o.other = o.model
		if e.Time.Before(now) {
			o.seen = latest(o.seen, e.Time)
		} else {
			o.seen = now
		}
	}
	o.record.Add(nth, e, o.groups.Number(e), !inTime || o.model != model)
	if !inTime {
		return
	}
	at := min(e.Time.Unix(), now.Unix()) / 3600 // a scorer's clock may be ahead
	h := o.hours[at]
	if h == nil {
		least := now.Add(-week).Unix() / 3600
		maps.DeleteFunc(o.hours, func(at int64, _ *hour) bool { return at < least })
		h = &hour{}
		o.hours[at] = h
	}
	if o.model != model {
		h.foreign += int(math.Round(weight))
		return
	}
	var one promise.Expected
	answered.Expect(&one, e)
	h.sums.Lost = h.sums.Lost.Plus(scaled(one.Lost, weight))
	h.sums.Missed = h.sums.Missed.Plus(scaled(one.Missed, weight))
}

// scaled returns the count of weight answers, of which one was read. The others are like it, but for chance.
func scaled(one promise.Count, weight float64) promise.Count {
	return promise.Count{N: one.N * int(math.Round(weight)), Mean: weight * one.Mean,
		Independent: weight*one.Independent + weight*(weight-1)*one.Mean*one.Mean, Doubt: weight * one.Doubt}
}

// label takes the label of an answer.
func (o *outlook) label(m *answered.Match) {
	o.record.Label(m)
	o.changed = true
}

// again is how old an answer to "do labels contradict it" may be: to look takes some 20 ms.
const again = 10 * time.Second

// together is how long after its last answer another model is said to answer, if the console's does too.
const together = 10 * time.Minute

// errors returns what is expected of the answers since a time. Those of an hour with an incident are left out, in
// the sums and before labels are asked. labels are of the time since labelled.
func (o *outlook) errors(model string, alarms *Alarms, labels func() []answered.Match,
	labelled, since, at time.Time) Errors {
	doubts := alarms.Doubts.Hours(since)
	if o.changed && at.Sub(o.looked) >= again || at.Sub(o.looked) >= time.Minute {
		_, o.excess, o.against = o.record.Contradictions(since, doubts)
		o.kept = o.record.Kept(labels(), labelled, doubts)
		o.changed, o.looked = false, at
	}
	var sums promise.Expected
	leftOut, foreign := 0, 0
	for start, h := range o.hours {
		begin := time.Unix(3600*start, 0)
		if begin.Add(time.Hour).Before(since) {
			continue
		}
		foreign += h.foreign
		if doubts.During(begin, begin) {
			leftOut += h.sums.Lost.N + h.sums.Missed.N
			continue
		}
		sums.Lost, sums.Missed = sums.Lost.Plus(h.sums.Lost), sums.Missed.Plus(h.sums.Missed)
	}
	reason := alarms.Doubts.Open()
	switch {
	case alarms.Away != "":
		reason = "the incidents cannot be read"
	case reason != "":
	case o.other != "" && (o.model == o.other || at.Sub(o.seen) < together):
		reason = fmt.Sprintf("the model %s answers, and its incidents are not read here",
			page.Clip(page.Visible(o.other), doorLetters))
	case foreign > 0 && sums.Lost.N+sums.Missed.N+leftOut == 0:
		reason = "other models gave all answers, and their incidents are not read here"
	case o.against:
		reason = answered.ExcessReason(o.excess)
	default:
		reason = answered.SlopeReason(&o.kept)
	}
	if sums.Lost.N+sums.Missed.N+leftOut+foreign == 0 {
		return Errors{Since: since}
	}
	var f answered.Figures
	f.Expect(sums, leftOut, reason)
	return Errors{Since: since, Expected: f.Expected, Foreign: foreign}
}

// Unknown reports whether Promise can only say why there is no number.
func (v *view) Unknown() bool { return v.Errors.Expected != nil && v.Errors.Expected.Withdrawn != "" }

// Promise is the sentence at the top: what went wrong in the last week, though nobody said so. It is empty
// without answers.
func (v *view) Promise() string {
	x := v.Errors.Expected
	if x == nil || v.Journal.Reading {
		return ""
	}
	if x.Withdrawn != "" {
		return fmt.Sprintf("How much of your ham went to Junk %s is not known: %s.", v.week(), x.Withdrawn)
	}
	var out []string
	for _, one := range []struct {
		n    int
		what string
	}{{x.LeftOut, " answers of hours with an incident"}, {v.Errors.Foreign, " answers of other models"}} {
		if one.n > 0 {
			n, _ := page.Number(one.n)
			out = append(out, n+one.what)
		}
	}
	text := fmt.Sprintf("About %s of yours went to Junk %s (%s), and about %s spam came through (%s).",
		page.Decimal(float64(x.Lost.Value), 0), v.week(), ends(x.Lost),
		page.Decimal(float64(x.Missed.Value), 0), ends(x.Missed))
	if len(out) > 0 {
		text += " That leaves out " + strings.Join(out, ", and ") + "."
	}
	return text
}

func ends(i answered.Interval) string {
	return page.Decimal(float64(i.Low), 0) + " to " + page.Decimal(float64(i.High), 0)
}

// week returns how far back the errors go.
func (v *view) week() string {
	switch age := v.read().Sub(v.Errors.Since); {
	case age >= week-time.Hour:
		return "in the last 7 days"
	case age >= 2*day:
		return fmt.Sprintf("in the last %.1f days", age.Hours()/24)
	default:
		return fmt.Sprintf("in the last %.1f hours", age.Hours())
	}
}
