package score

import (
	"math"
	"slices"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
)

// Bounds of what is shown of an answer.
const (
	mostInputs = 24
	mostWords  = 30
)

// An answer is a verdict as it is shown.
type answer struct {
	Verdict  stream.Verdict
	Identity string // of a mail
	Tenant   string // visible; empty: the default one
	Rule     string // which decided, in words; empty: the scorer's fixed thresholds
	Saved    string // how long ago the model was saved
	Picture  *chart.Chart
	Inputs   *chart.Chart
	Sum      float64 // of all inputs, nats
	Further  int     // inputs that are not in the chart
	FurtherN float64 // what they add
	Words    []word
	MoreN    int // words that are not listed
}

type word struct {
	Text, Where string // visible
	Adds        float64
	Class       string
	Shared      bool
}

func newAnswer(v *stream.Verdict, tenant string, info *stream.Info) *answer {
	a := &answer{
		Verdict: *v, Identity: v.Identity, Tenant: page.Visible(tenant),
		Saved: page.Ago(time.Duration(v.Model.AgeMS) * time.Millisecond), Picture: picture(v, info),
	}
	if v.Rule != nil {
		a.Rule = ruleText(v.Rule)
	}
	for _, r := range v.Reasons {
		a.Sum += r.Contribution
	}
	shown := v.Reasons[:min(len(v.Reasons), mostInputs)]
	a.Further = len(v.Reasons) - len(shown)
	for _, r := range v.Reasons[len(shown):] {
		a.FurtherN += r.Contribution
	}
	a.Inputs = inputs(shown)
	for _, w := range v.Words[:min(len(v.Words), mostWords)] {
		a.Words = append(a.Words,
			word{page.Visible(w.Text), page.Visible(w.Where), w.Contribution, strength(w.Contribution), w.Shared})
	}
	a.MoreN = len(v.Words) - len(a.Words)
	return a
}

// picture draws a probability with its interval, and where spam and ham begin if that is known.
func picture(v *stream.Verdict, info *stream.Info) *chart.Chart {
	const edge = 1e-9
	inside := func(p float64) float64 { return min(max(p, edge), 1-edge) }
	p, low, high := inside(v.P), inside(v.Interval[0]), inside(v.Interval[1])
	if math.IsNaN(p + low + high) {
		return nil
	}
	from, to := min(low, 0.001), max(high, 0.999)
	c := &chart.Chart{
		Title:   "How likely it is spam",
		Caption: "The point is the probability, the bar its 90 % interval.",
		X:       chart.Axis{Label: "probability of spam", Logit: true, Min: &from, Max: &to},
		Y:       chart.Axis{Categories: []string{"message"}},
		Series: []chart.Series{{Name: "answer", Kind: chart.Points, X: []float64{p}, Y: []float64{0}, Lo: []float64{low},
			Hi: []float64{high}}},
	}
	if info != nil && v.Rule == nil && info.SpamAt > 0 && info.HamAt > 0 && info.SpamAt < 1 {
		c.Caption += " It is spam from the hollow mark on the right on, if the whole interval lies above ½, " +
			"and ham up to the one on the left."
		c.Y.Categories = append(c.Y.Categories, "borders")
		c.Series = append(c.Series,
			chart.Series{Name: "borders of ham and spam", Kind: chart.Points, X: []float64{info.HamAt, info.SpamAt},
				Y: []float64{1, 1}, Reference: true})
	}
	return c
}

// inputs draws what the inputs add, each with its doubt.
func inputs(all []stream.Reason) *chart.Chart {
	if len(all) == 0 {
		return nil
	}
	s := chart.Series{Name: "input", Kind: chart.Points}
	c := &chart.Chart{
		Title: "What the model's inputs add",
		Caption: "Above 0 speaks for spam, below for ham. The bars are 90 % intervals: " +
			"how sure the model is of the input's weight.",
		X: chart.Axis{Label: "log-odds of spam, nats"},
	}
	for k, r := range slices.Backward(all) { // the first category stands lowest
		k = len(all) - 1 - k
		c.Y.Categories = append(c.Y.Categories, page.Clip(page.Visible(r.Name), 80))
		s.X, s.Y = append(s.X, r.Contribution), append(s.Y, float64(k))
		s.Lo, s.Hi = append(s.Lo, r.Contribution-model.Z90*r.SD), append(s.Hi, r.Contribution+model.Z90*r.SD)
	}
	c.Series = []chart.Series{s}
	return c
}
