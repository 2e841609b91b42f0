package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"hamlet/cmd/internal/process/cli"
)

// A Table is columns of text for a terminal. Senders and clients choose some of the text: see
// [cli.Cell].
type Table struct {
	Right bool // columns end at the same place, as those of numbers do
	rows  [][]string
}

// NewTable returns a table that has the names of its columns; none is a table without names.
func NewTable(head ...any) *Table {
	t := &Table{}
	if len(head) > 0 {
		t.Add(head...)
	}
	return t
}

// Add adds a row. A cell is what fmt.Sprint makes of a value.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if row[i] = fmt.Sprint(cell); row[i] != "" {
			row[i] = cli.Cell(row[i])
		}
	}
	t.rows = append(t.rows, row)
}

// String returns the table's lines, without blanks at their ends.
func (t *Table) String() string {
	var padded, b strings.Builder
	flags, end := uint(0), "\n"
	if t.Right {
		flags, end = tabwriter.AlignRight, "\t\n"
	}
	columns := tabwriter.NewWriter(&padded, 0, 0, 2, ' ', flags)
	for _, row := range t.rows {
		fmt.Fprint(columns, strings.Join(row, "\t"), end)
	}
	_ = columns.Flush() // a builder takes all
	for line := range strings.Lines(padded.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// PrintLines writes a line of JSON to standard output for each value.
func PrintLines[T any](w io.Writer, all []T) error {
	for i := range all {
		if err := cli.PrintJSON(w, &all[i]); err != nil {
			return err
		}
	}
	return nil
}
