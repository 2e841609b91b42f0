package history

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/answered"
	"hamlet/stream"
)

// A labelled is a decision with the label that its message got; without one it is empty.
type labelled struct {
	*stream.JournalEntry
	Label string `json:"label,omitempty"`
}

func writeJSON(w io.Writer, entries []Entry) error {
	for i := range entries {
		if err := cli.PrintJSON(w, labelled{&entries[i].JournalEntry, entries[i].Given.String()}); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, entries []Entry) error {
	if len(entries) == 0 {
		return cli.Print(w, "no such decision\n")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "time\tverdict\tlabel\tp\t90 %\tdoor\ttenant\tms\tid\treasons")
	for i := range entries {
		e := &entries[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%.4f\t%.4f–%.4f\t%s\t%s\t%.1f\t%s\t%s\n", e.Time.Local().Format(time.DateTime),
			cli.Cell(string(e.Verdict)), cli.Cell(e.Given.String()), e.P, e.Low, e.High, cli.Cell(e.Door), cli.Cell(e.Tenant),
			e.MS, cli.Cell(e.Name()), cli.Cell(strings.Join(e.Reasons, "; ")))
	}
	return cli.Written(table.Flush())
}

// writeFigures prints figures, the first of which is that of all answers.
func writeFigures(w io.Writer, all []answered.Figures, asJSON bool) error {
	if asJSON {
		for i := range all {
			if err := cli.PrintJSON(w, &all[i]); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "door\ttenant\tanswers\tlabelled\tcorrected\terror %\tlog loss\tp − spam %\tslope\t1-ROCA%\tlabel after")
	for _, f := range shown(all) {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Cell(f.Door), cli.Cell(f.Tenant),
			f.Answers, f.Labelled, f.Corrected, f.Error, f.LogLoss, f.Bias, f.Slope, f.ROCA, f.Delay)
	}
	return cli.Written(table.Flush())
}
