package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/operate/incidents"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/show/report"
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
// some 230 bytes. Where ctx has a deadline and it passes, the newest lines are missing. What is
// expected heeds the incidents of each model that answered.
func ReadFigures(ctx context.Context, conn *natsgo.Conn, model string, f *Filter, most int) (Figures, error) {
	all := *f
	all.Label = ""
	table, match := Figures{}, all.Match()
	var failed error
	known := map[string]answered.Doubts{}
	asked := sync.OnceValue(func() *stream.Info { return incidents.Asked(ctx, conn, model) })
	doubts := func(model string) answered.Doubts {
		d, read := known[model]
		if !read && failed == nil && stream.CheckModelName(model) == nil {
			if d, failed = doubtsOf(ctx, conn, model, asked()); failed != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				table.Stopped, failed, d = true, nil, answered.Doubts{{}}
			}
			known[model] = d
		}
		return d
	}
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
			if (labelled || match(&e, stream.Unlabelled)) && !yield(&e) || failed != nil {
				return
			}
		}
	}, most, doubts)
	return table, failed
}

// doubtsOf returns the times in which a model was in doubt, by NATS and by what a scorer says.
func doubtsOf(ctx context.Context, conn *natsgo.Conn, model string, info *stream.Info) (answered.Doubts, error) {
	_, kept, err := nats.AlertsEnd(ctx, conn)
	if err != nil {
		return nil, err
	}
	all, damaged, err := incidents.Read(ctx, conn, model)
	if err != nil {
		return nil, err
	}
	return incidents.Known(all, !kept || damaged > 0, info, model), nil
}

// tablesOf returns figures for people: what labels say, and how many errors are expected without. The first line of
// each is that of all answers.
func tablesOf(all []answered.Figures) (labelled, expected *report.Table) {
	labelled = report.NewTable("door", "tenant", "answers", "labelled", "corrected", "error %", "log loss", "p − spam %",
		"slope", "1-ROCA%", "label after")
	expected = report.NewTable("door", "tenant", "ham lost: labelled", "expected", "spam missed: labelled", "expected",
		"left out", "why not known")
	for i := range all {
		f := &all[i]
		door, tenant := cli.Cell(f.Door), cli.Cell(f.Tenant)
		if i == 0 {
			door, tenant = "all", ""
		}
		labelled.Add(door, tenant, f.Answers, f.Labelled, f.Corrected, interval(f.Error, 100, 2), interval(f.LogLoss, 1, 4),
			interval(f.Bias, 100, 2), interval(f.Slope, 1, 2), interval(f.ROCA, 1, 3), delay(f.DelayMedian))
		lost, missed := "not known", "not known"
		if f.Expected.Withdrawn == "" {
			lost, missed = interval(f.Expected.Lost, 1, 0), interval(f.Expected.Missed, 1, 0)
		}
		expected.Add(door, tenant, f.Lost, lost, f.Missed, missed, f.Expected.LeftOut, f.Expected.Withdrawn)
	}
	return labelled, expected
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
