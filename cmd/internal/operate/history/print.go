package history

import (
	"fmt"
	"io"
	"strings"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/answered"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// A labelled is a decision with the label that its message got; without one it is empty.
type labelled struct {
	*stream.JournalEntry
	Label string `json:"label,omitempty"`
}

func writeJSON(w io.Writer, entries []Entry) error {
	all := make([]labelled, len(entries))
	for i := range entries {
		all[i] = labelled{&entries[i].JournalEntry, entries[i].Given.String()}
	}
	return report.PrintLines(w, all)
}

func writeTable(w io.Writer, entries []Entry) error {
	if len(entries) == 0 {
		return cli.Print(w, "no such decision\n")
	}
	table := report.NewTable("time", "verdict", "label", "p", "90 %", "door", "tenant", "ms", "id", "reasons")
	for i := range entries {
		e := &entries[i]
		table.Add(e.Time.Local().Format(time.DateTime), e.Verdict, cli.Cell(e.Given.String()),
			fmt.Sprintf("%.4f", e.P), fmt.Sprintf("%.4f–%.4f", e.Low, e.High), cli.Cell(e.Door), cli.Cell(e.Tenant),
			fmt.Sprintf("%.1f", e.MS), cli.Cell(e.Name()), cli.Cell(strings.Join(e.Reasons, "; ")))
	}
	return cli.Print(w, table.String())
}

// writeFigures prints figures, the first of which is that of all answers.
func writeFigures(w io.Writer, all []answered.Figures, asJSON bool) error {
	if asJSON {
		return report.PrintLines(w, all)
	}
	labelled, expected := tablesOf(all)
	return cli.Print(w, labelled.String()+"\nErrors, by the probability that each answer is wrong; no label is needed:\n"+expected.String())
}
