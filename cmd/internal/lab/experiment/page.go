package experiment

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/chart"
)

// A Section is a measurement for people: sentences, a table, notes and pictures. Print writes
// it for a terminal, a Page shows it in a browser.
type Section struct {
	ID     string // of its heading in a page
	Title  Text
	Lead   []Text // paragraphs before the table
	Table  Table
	Notes  []Text // paragraphs below it
	Charts []chart.Chart
	Foot   []Text // one more paragraph, in a page alone
}

// A Text is a paragraph or a part of one. Class is one of page.html's, Link where it leads in a page.
type Text struct{ Text, Class, Link string }

// Plain returns sentences as paragraphs.
func Plain(sentences ...string) (all []Text) {
	for _, s := range sentences {
		all = append(all, Text{Text: s})
	}
	return all
}

// A Table has rows whose first cell names them.
type Table struct {
	Head  [][]string // lines of the heading
	Rows  []TableRow
	Right bool // cells are set to the right on a terminal
}

// A TableRow is a line of a table. In a page its last cell has Class, and its first leads to Link.
type TableRow struct {
	Cells       []string
	Class, Link string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, TableRow{Cells: cells}) }

// Addf adds a row whose cells a format separates by tabs.
func (t *Table) Addf(format string, args ...any) {
	t.Add(strings.Split(fmt.Sprintf(format, args...), "\t")...)
}

// Print writes the table for a terminal.
func (t *Table) Print(w io.Writer) error {
	flags, end := uint(0), "\n"
	if t.Right {
		flags, end = tabwriter.AlignRight, "\t\n"
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', flags)
	for _, line := range t.Head {
		fmt.Fprint(out, strings.Join(line, "\t"), end)
	}
	for _, row := range t.Rows {
		fmt.Fprint(out, strings.Join(row.Cells, "\t"), end)
	}
	return cli.Written(out.Flush())
}

// Print writes the section for a terminal, without its pictures and its foot.
func (s *Section) Print(w io.Writer) error {
	var b strings.Builder
	paragraphs := func(all []Text) {
		for _, t := range all {
			fmt.Fprintln(&b, t.Text)
		}
	}
	if s.Title.Text != "" {
		paragraphs([]Text{s.Title})
	}
	paragraphs(s.Lead)
	if len(s.Table.Rows) > 0 {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if err := s.Table.Print(&b); err != nil {
			return err
		}
		if len(s.Notes) > 0 {
			b.WriteByte('\n')
		}
	}
	paragraphs(s.Notes)
	return cli.Print(w, b.String())
}

// Figures returns the pictures as a page holds them.
func (s *Section) Figures() (all []template.HTML, err error) {
	for i := range s.Charts {
		figure, err := s.Charts[i].HTML()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Title.Text, err)
		}
		all = append(all, figure)
	}
	return all, nil
}

// A Page shows sections.
type Page struct {
	Title    string
	Lead     []Text
	Sections []*Section
	Foot     string
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(chart.Style) },
}).Parse(pageText))

// Write writes the page into a file that needs no other.
func (p *Page) Write(path string) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
