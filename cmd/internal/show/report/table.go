package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"hamlet/cmd/internal/process/cli"
)

// A Table is columns of text: a terminal shows String, and a page Titles and Rows. Senders and
// clients choose some of the text: see [cli.Cell].
type Table struct {
	Right bool // columns end at the same place, as those of numbers do
	Rows  [][]string
	head  []string
}

// NewTable returns a table that has the names of its columns; none is a table without names.
func NewTable(head ...string) *Table {
	t := &Table{head: head}
	for i, name := range head {
		head[i] = printable(name)
	}
	return t
}

// Titles are the names of the columns for a page: they begin with a capital letter.
func (t *Table) Titles() (all []string) {
	for _, name := range t.head {
		first := min(1, len(name))
		all = append(all, strings.ToUpper(name[:first])+name[first:])
	}
	return all
}

// Add adds a row. A cell is what fmt.Sprint makes of a value.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = printable(fmt.Sprint(cell))
	}
	t.Rows = append(t.Rows, row)
}

// printable is cli.Cell, but leaves an empty cell empty.
func printable(cell string) string {
	if cell == "" {
		return ""
	}
	return cli.Cell(cell)
}

// String returns the table's lines, without blanks at their ends.
func (t *Table) String() string {
	var padded, b strings.Builder
	flags, end := uint(0), "\n"
	if t.Right {
		flags, end = tabwriter.AlignRight, "\t\n"
	}
	all := t.Rows
	if len(t.head) > 0 {
		all = append([][]string{t.head}, all...)
	}
	columns := tabwriter.NewWriter(&padded, 0, 0, 2, ' ', flags)
	for _, row := range all {
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
