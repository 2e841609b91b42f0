package history

import (
	"context"
	"errors"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/answered"
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
			case errors.As(err, new(*nats.JournalLineError)):
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
