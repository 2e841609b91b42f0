package history

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/answered"
	"hamlet/cmd/internal/cli"
	"hamlet/stream"
)

// A labelled is a decision with the label that its message got; without one it is empty.
type labelled struct {
	*stream.JournalEntry
	Label string `json:"label,omitempty"`
}

func writeJSON(w io.Writer, entries []Entry) error {
	encoder := json.NewEncoder(w)
	for i := range entries {
		if err := encoder.Encode(labelled{&entries[i].JournalEntry, entries[i].Given.String()}); err != nil {
			return fmt.Errorf("write the decisions: %w", err)
		}
	}
	return nil
}

func writeTable(w io.Writer, entries []Entry) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "no such decision")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "time\tverdict\tlabel\tp\t90 %\tdoor\ttenant\tms\tid\treasons")
	for i := range entries {
		e := &entries[i]
		id := e.ID
		if id == "" { // a text or a vector
			id = e.Request
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.4f\t%.4f–%.4f\t%s\t%s\t%.1f\t%s\t%s\n", e.Time.Local().Format("2006-01-02 15:04:05"), cli.Cell(string(e.Verdict)), cli.Cell(e.Given.String()),
			e.P, e.Low, e.High, cli.Cell(e.Door), cli.Cell(e.Tenant), e.MS, cli.Cell(id), cli.Cell(strings.Join(e.Reasons, "; ")))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the decisions: %w", err)
	}
	return nil
}

// writeFigures prints figures, the first of which is that of all answers.
func writeFigures(w io.Writer, all []answered.Figures, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		for i := range all {
			if err := encoder.Encode(&all[i]); err != nil {
				return fmt.Errorf("write the figures: %w", err)
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "door\ttenant\tanswers\tlabelled\tcorrected\terror %\tlog loss\tp − spam %\tslope\t1-ROCA%\tlabel after")
	for i := range all {
		f := &all[i]
		door, tenant := cli.Cell(f.Door), cli.Cell(f.Tenant)
		if i == 0 {
			door, tenant = "all", ""
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", door, tenant, f.Answers, f.Labelled, f.Corrected,
			interval(f.Error, 100, 2), interval(f.LogLoss, 1, 4), interval(f.Bias, 100, 2), interval(f.Slope, 1, 2), interval(f.ROCA, 1, 3), Delay(f.DelayMedian))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}

// interval returns an estimate as "value (low to high)".
func interval(e answered.Estimate, unit float64, digits int) string {
	if !e.Value.Defined() {
		return "-"
	}
	value := strconv.FormatFloat(unit*float64(e.Value), 'f', digits, 64)
	if !e.Low.Defined() || !e.High.Defined() {
		return value
	}
	return fmt.Sprintf("%s (%.*f to %.*f)", value, digits, unit*float64(e.Low), digits, unit*float64(e.High))
}

// Delay returns seconds as people say them: 12.5s, 3m0s, 5h0m0s.
func Delay(s eval.Measure) string {
	d := time.Duration(float64(s) * float64(time.Second))
	switch {
	case !s.Defined():
		return "-"
	case d < 2*time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 2*time.Hour:
		return d.Round(time.Minute).String()
	}
	return d.Round(time.Hour).String()
}
