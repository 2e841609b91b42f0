package experiment

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"hamlet/cmd/internal/show/chart"
)

// A Report is what an experiment found.
type Report struct {
	Rows   []Row         `json:"rows"`
	Charts []chart.Chart `json:"charts,omitempty"`
	Notes  []string      `json:"notes,omitempty"` // sentences below the table: protocol, departures, meaning
}

// Figure adds a row for a number that the source prints.
func (p *Report) Figure(group, what string, ours Statistic, paper string, better Direction) *Row {
	return p.add(Row{Group: group, What: what, Ours: ours, Relation: Equals, Paper: paper, Better: better})
}

// AtMost adds a row for a claim: ours is not above the bound.
func (p *Report) AtMost(group, what string, ours Statistic, bound string) *Row {
	return p.add(Row{Group: group, What: what, Ours: ours, Relation: AtMost, Paper: bound})
}

// AtLeast adds a row for a claim: ours is not below the bound.
func (p *Report) AtLeast(group, what string, ours Statistic, bound string) *Row {
	return p.add(Row{Group: group, What: what, Ours: ours, Relation: AtLeast, Paper: bound})
}

// Rounding is how far sums of some thousand terms near 1 may be off.
const Rounding = 1e-9

// Never adds a row for a number that is above the bound by rounding errors at most.
func (p *Report) Never(group, what string, v float64, bound string) {
	p.AtMost(group, what, Exact(v), bound).Slack = Rounding
}

// Show adds a row without a verdict.
func (p *Report) Show(group, what string, ours Statistic) *Row {
	return p.add(Row{Group: group, What: what, Ours: ours, Relation: Alone})
}

// add returns the row, so that its caller sets Reason, PaperSE or Slack before the next
// row is added.
func (p *Report) add(r Row) *Row {
	p.Rows = append(p.Rows, r)
	return &p.Rows[len(p.Rows)-1]
}

// Chart adds a picture.
func (p *Report) Chart(c chart.Chart) { p.Charts = append(p.Charts, c) }

// Note adds a sentence below the table.
func (p *Report) Note(sentence string) { p.Notes = append(p.Notes, sentence) }

// Judge sets the verdict of every row and returns that of all: NoVerdict if the source
// says nothing that could be compared.
func (p *Report) Judge() (Verdict, error) {
	random := 0
	for i := range p.Rows {
		if p.Rows[i].random() {
			random++
		}
	}
	within := bonferroni(random)
	for i := range p.Rows {
		if err := p.Rows[i].judge(within); err != nil {
			return NoVerdict, err
		}
	}
	for i := range p.Charts {
		if err := p.Charts[i].Validate(); err != nil {
			return NoVerdict, err
		}
	}
	count := p.Count()
	switch {
	case len(p.Rows) == 0:
		return NoVerdict, errors.New("nothing was computed")
	case count.Judged() == 0:
		return NoVerdict, nil
	case count.NotReproduced > 0:
		return NotReproduced, nil
	case count.Better > 0:
		return Better, nil
	}
	return Reproduced, nil
}

// A Count says how many rows have each verdict.
type Count struct {
	Reproduced    int `json:"reproduced"`
	Better        int `json:"better"`
	NotReproduced int `json:"not_reproduced"`
}

// Judged returns how many rows have a verdict.
func (c Count) Judged() int { return c.Reproduced + c.Better + c.NotReproduced }

// Add counts a verdict.
func (c *Count) Add(v Verdict) {
	switch v {
	case Reproduced:
		c.Reproduced++
	case Better:
		c.Better++
	case NotReproduced:
		c.NotReproduced++
	}
}

// Merge adds the counts of others.
func (c *Count) Merge(other Count) {
	c.Reproduced += other.Reproduced
	c.Better += other.Better
	c.NotReproduced += other.NotReproduced
}

func (c Count) String() string {
	return fmt.Sprintf("%d reproduced, %d better, %d not reproduced", c.Reproduced, c.Better, c.NotReproduced)
}

// Count counts the rows' verdicts.
func (p *Report) Count() (c Count) {
	for i := range p.Rows {
		c.Add(p.Rows[i].Verdict)
	}
	return c
}

// A Statistic is a number with its Monte Carlo error.
type Statistic struct {
	Value float64 `json:"value"`
	SE    float64 `json:"se,omitempty"` // standard error; 0 if the number is exact
	N     int     `json:"n,omitempty"`  // repetitions
}

// Exact returns a number without error.
func Exact(v float64) Statistic { return Statistic{Value: v} }

// Mean returns the mean of independent repetitions and its standard error. With one
// repetition the error is not known: use Exact and say so.
func Mean(v []float64) Statistic {
	mean, variance := stat.MeanVariance(v, nil)
	return Statistic{Value: mean, SE: math.Sqrt(variance / float64(len(v))), N: len(v)}
}

// Scaled returns factor times the statistic.
func (e Statistic) Scaled(factor float64) Statistic {
	return Statistic{Value: factor * e.Value, SE: math.Abs(factor) * e.SE, N: e.N}
}

// Interval returns the central interval of 95 %, by Student's t.
func (e Statistic) Interval() (lo, hi float64) {
	half := e.quantile(.975) * e.SE
	return e.Value - half, e.Value + half
}

// quantile returns the p-quantile of (statistic − its mean)/SE: Student's t with N−1 degrees
// of freedom, since the standard error is estimated too. Without N it is the normal one.
func (e Statistic) quantile(p float64) float64 {
	if e.N > 1 {
		return distuv.StudentsT{Sigma: 1, Nu: float64(e.N - 1)}.Quantile(p)
	}
	return distuv.UnitNormal.Quantile(p)
}

// A Relation is how a row's number stands to the source's.
type Relation string

const (
	Equals  Relation = "=" // the source prints a number
	AtMost  Relation = "≤" // it claims that ours is not above Paper
	AtLeast Relation = "≥" // it claims that ours is not below Paper
	Alone   Relation = ""  // it says nothing: the row is for the reader, without a verdict
)

// A Direction says which numbers are better than the source's.
type Direction string

const (
	Lower   Direction = "lower"
	Higher  Direction = "higher"
	Neither Direction = "" // a number that is neither good nor bad
)

// A Verdict is the result of a comparison.
type Verdict string

const (
	Reproduced    Verdict = "reproduced"
	Better        Verdict = "better"
	NotReproduced Verdict = "not reproduced"
	NoVerdict     Verdict = "" // nothing to compare with
)

// A Row compares a number of ours with one of the source.
type Row struct {
	Group    string    `json:"group,omitempty"` // what rows have in common, such as a data set
	What     string    `json:"what"`
	Ours     Statistic `json:"ours"`
	Relation Relation  `json:"relation"`
	// Paper is the number as the source prints it: its digits say how it was rounded.
	Paper   string    `json:"paper,omitempty"`
	PaperSE float64   `json:"paper_se,omitempty"` // standard error of the printed number, from its repetitions
	Slack   float64   `json:"slack,omitempty"`    // how far Paper may be off for other reasons, as read off a picture
	Better  Direction `json:"better,omitempty"`
	// Reason says why the row is not reproduced. It is shown only then.
	Reason  string  `json:"reason,omitempty"`
	Verdict Verdict `json:"verdict,omitempty"` // written by Judge
}

// printed returns a printed number and the largest error of its rounding.
func printed(text string) (value, rounding float64, err error) {
	digits := strings.ReplaceAll(strings.TrimSpace(text), "−", "-")
	value, err = strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, 0, fmt.Errorf("%q is not a printed number", text)
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(digits), "e")
	power := 0
	if exponent != "" {
		if power, err = strconv.Atoi(exponent); err != nil {
			return 0, 0, fmt.Errorf("%q is not a printed number", text)
		}
	}
	_, fraction, _ := strings.Cut(mantissa, ".")
	return value, .5 * math.Pow10(power-len(fraction)), nil
}

// Difference returns ours minus the source's number. ok is false if it has none.
func (r *Row) Difference() (d float64, ok bool) {
	if r.Relation == Alone {
		return 0, false
	}
	paper, _, err := printed(r.Paper)
	return r.Ours.Value - paper, err == nil
}

// random reports whether the row's verdict depends on chance.
func (r *Row) random() bool {
	return r.Relation != Alone && (r.Ours.SE > 0 || r.Relation == Equals && r.PaperSE > 0)
}

// judge sets the row's verdict; p is the probability below the upper end of the two-sided
// interval that belongs to it.
func (r *Row) judge(p float64) error {
	r.Verdict = NoVerdict
	if math.IsNaN(r.Ours.Value) || math.IsInf(r.Ours.Value, 0) || math.IsNaN(r.Ours.SE) || math.IsInf(r.Ours.SE, 0) {
		return fmt.Errorf("%s: our number is %v ± %v", r.Name(), r.Ours.Value, r.Ours.SE)
	}
	if r.Relation == Alone {
		return nil
	}
	paper, rounding, err := printed(r.Paper)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Name(), err)
	}
	d := r.Ours.Value - paper
	chance := r.Ours.quantile(2*p-1) * r.Ours.SE // of a claim, which has one side
	agrees := false
	switch r.Relation {
	case AtMost:
		agrees = d <= r.Slack+chance
	case AtLeast:
		agrees = d >= -r.Slack-chance
	case Equals:
		// A value on the border of rounding may be off by the last bits.
		agrees = math.Abs(d) <= rounding*(1+1e-9)+r.Slack+r.Ours.quantile(p)*math.Hypot(r.Ours.SE, r.PaperSE)
	default:
		return fmt.Errorf("%s: no relation %q", r.Name(), r.Relation)
	}
	switch {
	case agrees:
		r.Verdict = Reproduced
	case r.Relation == Equals && (r.Better == Lower && d < 0 || r.Better == Higher && d > 0):
		r.Verdict = Better
	default:
		r.Verdict = NotReproduced
	}
	return nil
}

// Name returns the group, if there is one, and what the number is.
func (r *Row) Name() string {
	if r.Group == "" {
		return r.What
	}
	return r.Group + ", " + r.What
}

// bonferroni returns the p-quantile's p for m two-sided comparisons: each may err with
// probability .05/m.
func bonferroni(m int) float64 { return 1 - .025/float64(max(1, m)) }
