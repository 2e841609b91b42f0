package history

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"hamlet/stream"
)

func writeJSON(w io.Writer, entries []stream.JournalEntry) error {
	for i := range entries {
		line, err := entries[i].AppendJSON(nil)
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("write the decisions: %w", err)
		}
	}
	return nil
}

func writeTable(w io.Writer, entries []stream.JournalEntry) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "no such decision")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "time\tverdict\tp\t90 %\tdoor\ttenant\tms\tid\treasons")
	for i := range entries {
		e := &entries[i]
		id := e.ID
		if id == "" { // a text or a vector
			id = e.Request
		}
		fmt.Fprintf(table, "%s\t%s\t%.4f\t%.4f–%.4f\t%s\t%s\t%.1f\t%s\t%s\n", e.Time.Local().Format("2006-01-02 15:04:05"), shown(string(e.Verdict)),
			e.P, e.Low, e.High, shown(e.Door), shown(e.Tenant), e.MS, shown(id), shown(strings.Join(e.Reasons, "; ")))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the decisions: %w", err)
	}
	return nil
}

// shown returns s as a terminal and a column take it: clients choose names.
func shown(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}
