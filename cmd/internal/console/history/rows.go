package history

import (
	"fmt"
	"net/url"
	"time"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/answered"
	"hamlet/cmd/internal/console/page"
	"hamlet/cmd/internal/history"
	"hamlet/stream"
)

// A row is a decision. Its texts are visible ones.
type row struct {
	Time         time.Time
	Verdict      string
	P, Low, High float64
	Label, By    string
	GivenAt      time.Time
	Corrected    bool
	Door, Tenant string
	MS           float64
	ID           string // of the message or the request
	Why          string // address; empty: there is nothing to show
	Reasons      []string
}

func newRow(e *history.Entry) row {
	r := row{
		Time: e.Time, Verdict: page.Visible(string(e.Verdict)), P: e.P, Low: e.Low, High: e.High, Corrected: e.Corrected(),
		Door: page.Visible(e.Door), Tenant: page.Visible(e.Tenant), MS: e.MS, ID: page.Visible(e.ID),
	}
	if e.Given != stream.Unlabelled {
		r.Label, r.By, r.GivenAt = e.Given.String(), page.Visible(e.By), e.GivenAt
	}
	id := e.ID
	if id == "" { // a text or a vector
		id, r.ID = e.Request, page.Visible(e.Request)
	}
	if id != "" {
		r.Why = fmt.Sprintf("/why?id=%s&at=%d-%d", url.QueryEscape(id), e.Place.Sequence, e.Place.Line)
	}
	for _, reason := range e.Reasons {
		r.Reasons = append(r.Reasons, page.Visible(reason))
	}
	return r
}

// A figure is a line of the table of figures, as `hamlet history --stats` prints it.
type figure struct {
	Door, Tenant                             string
	Answers, Labelled, Corrected             int
	Error, LogLoss, Bias, Slope, ROCA, Delay string
}

func newFigures(all []answered.Figures) (figures []figure) {
	for i := range all {
		f := &all[i]
		line := figure{
			Door: page.Visible(f.Door), Tenant: page.Visible(f.Tenant), Answers: f.Answers, Labelled: f.Labelled, Corrected: f.Corrected,
			Error: interval(f.Error, 100, 2), LogLoss: interval(f.LogLoss, 1, 4), Bias: interval(f.Bias, 100, 2),
			Slope: interval(f.Slope, 1, 2), ROCA: interval(f.ROCA, 1, 3), Delay: delay(f.DelayMedian),
		}
		if i == 0 {
			line.Door = "all"
		}
		figures = append(figures, line)
	}
	return figures
}

// interval returns an estimate as "value (low to high)".
func interval(e answered.Estimate, unit float64, digits int) string {
	text := page.Decimal(unit*float64(e.Value), digits)
	if !e.Value.Defined() || !e.Low.Defined() || !e.High.Defined() {
		return text
	}
	return fmt.Sprintf("%s (%s to %s)", text, page.Decimal(unit*float64(e.Low), digits), page.Decimal(unit*float64(e.High), digits))
}

func delay(seconds eval.Measure) string {
	if !seconds.Defined() {
		return "–"
	}
	return history.Delay(seconds)
}
