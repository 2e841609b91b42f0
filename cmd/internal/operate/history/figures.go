package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// Figures say how right answers were, by the labels that came later.
type Figures struct {
	Figures []answered.Figures // as answered.Of returns them
	Damaged int                // lines that cannot be read
	Looked  int                // decisions, wanted or not

	// Stopped: ctx ended first. The figures are those of what was written until Until.
	Stopped bool
	Until   time.Time
}

// ReadFigures compares the decisions that a filter wants with the labels that came later. It does
// not heed Filter.Label. It joins lines that are at most so many messages apart; a message takes
// some 150 bytes. Where ctx has a deadline and it passes, the newest lines are missing.
func ReadFigures(ctx context.Context, conn *natsgo.Conn, model string, f *Filter, most int) (Figures, error) {
	all := *f
	all.Label = ""
	table, match := Figures{}, all.Match()
	var failed error
	table.Figures = answered.Of(func(yield func(*stream.JournalEntry) bool) {
		for e, err := range nats.ReadJournal(ctx, conn, model, f.Since) {
			switch {
			case errors.As(err, new(*nats.MessageError)):
				table.Damaged++
				continue
			case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
				table.Stopped = true
				return
			case err != nil:
				failed = err
				return
			}
			table.Until = e.Time
			labelled := e.Label != stream.Unlabelled
			if !labelled {
				table.Looked++
			}
			if (labelled || match(&e, stream.Unlabelled)) && !yield(&e) {
				return
			}
		}
	}, most)
	return table, failed
}

// A figure is a line of the table of figures, for people.
type figure struct {
	Door, Tenant                             string
	Answers, Labelled, Corrected             int
	Error, LogLoss, Bias, Slope, ROCA, Delay string
}

// shown returns the lines of a table of figures, the first of which is that of all answers.
func shown(all []answered.Figures) (lines []figure) {
	for i := range all {
		f := &all[i]
		line := figure{
			Door: f.Door, Tenant: f.Tenant, Answers: f.Answers, Labelled: f.Labelled, Corrected: f.Corrected,
			Error: interval(f.Error, 100, 2), LogLoss: interval(f.LogLoss, 1, 4), Bias: interval(f.Bias, 100, 2),
			Slope: interval(f.Slope, 1, 2), ROCA: interval(f.ROCA, 1, 3), Delay: delay(f.DelayMedian),
		}
		if i == 0 {
			line.Door, line.Tenant = "all", ""
		}
		lines = append(lines, line)
	}
	return lines
}

// interval returns an estimate as "value (low to high)".
func interval(e answered.Interval, unit float64, digits int) string {
	text := page.Decimal(unit*float64(e.Value), digits)
	if !e.Value.Defined() || !e.Low.Defined() || !e.High.Defined() {
		return text
	}
	low, high := page.Decimal(unit*float64(e.Low), digits), page.Decimal(unit*float64(e.High), digits)
	return fmt.Sprintf("%s (%s to %s)", text, low, high)
}

// delay returns seconds as people say them: 12.5s, 3m0s, 5h0m0s.
func delay(s eval.Measure) string {
	d := time.Duration(float64(s) * float64(time.Second))
	switch {
	case !s.Defined():
		return "–"
	case d < 2*time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 2*time.Hour:
		return d.Round(time.Minute).String()
	}
	return d.Round(time.Hour).String()
}
