package model

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"hamlet/cmd/internal/process/cli"
)

type diff struct {
	A     string `arg:"" name:"a" help:"MODEL, MODEL@VERSION or FILE."`
	B     string `arg:"" name:"b" help:"The other one."`
	Limit int    `help:"Show at most N weights and N sources; 0 shows all." default:"10" placeholder:"N" env:"-"`
}

// Help is what kong prints below the flags.
func (diff) Help() string {
	return `Examples:

  hamlet model diff spam clean          settings, weights and sources
  hamlet model diff spam@1208 spam      what has changed since version 1208
  hamlet model diff ./before spam.tar   files

Weights are those of the head's inputs. They are compared in standard deviations,
(b−a)/√(Va+Vb), and those that differ most come first. An input × 1 is the product of
an input and HTML, × 2 that with the length of the text. A table is that of some
experts, with the part of its slots that is used. A source differs if its role does,
its weight by 0.01 or its flip rate by 0.01, or if one model alone knows it.`
}

func (c *diff) run(ctx context.Context, s *session) error {
	if err := cli.NotNegative("--limit", c.Limit); err != nil {
		return err
	}
	a, err := s.facts(ctx, c.A)
	if err != nil {
		return err
	}
	b, err := s.facts(ctx, c.B)
	if err != nil {
		return err
	}
	d := Compare(a, b, c.Limit)
	if s.JSON {
		return s.json(struct {
			A          string       `json:"a"`
			B          string       `json:"b"`
			Partitions []Difference `json:"partitions"` // one
		}{c.A, c.B, []Difference{d}})
	}
	return c.print(s, &d)
}

// facts are those of what a reference names. The model itself need not stay in memory.
func (s *session) facts(ctx context.Context, text string) (*Facts, error) {
	l, err := s.decoded(ctx, text)
	if err != nil {
		return nil, err
	}
	return l.facts(), nil
}

func (c *diff) print(s *session, d *Difference) error {
	if d.Same {
		return s.print(fmt.Sprintf("the same model: sha256 %s\n", d.A.SHA256))
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, x, y, change string) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", cli.Cell(name), cli.Cell(x), cli.Cell(y), change)
	}
	row(" ", c.A, c.B, "")
	if d.A.Version != 0 || d.B.Version != 0 {
		row("version", versionOf(d.A.Version), versionOf(d.B.Version), "")
	}
	row("events", fmt.Sprint(d.A.Events), fmt.Sprint(d.B.Events), fmt.Sprintf("%+d", int64(d.B.Events)-int64(d.A.Events)))
	row("spam", fmt.Sprint(d.A.Spam), fmt.Sprint(d.B.Spam), fmt.Sprintf("%+d", int64(d.B.Spam)-int64(d.A.Spam)))
	row("position", fmt.Sprint(d.A.Position), fmt.Sprint(d.B.Position), "")
	row("saved", cli.Stamp(d.A.Saved), cli.Stamp(d.B.Saved), "")
	if d.A.Numerics != d.B.Numerics {
		row("numerics", d.A.Numerics, d.B.Numerics, "")
	}
	for _, setting := range d.Settings {
		row(setting.Key, shorten(setting.A), shorten(setting.B), "")
	}
	for _, w := range d.Weights {
		row("weight of "+shorten(w.Input)+", "+w.Body, fmt.Sprintf("%.3f", w.A), fmt.Sprintf("%.3f", w.B), fmt.Sprintf("%+.1f sd", w.SD))
	}
	for _, t := range d.Tables {
		row("table of "+t.Name(), or("%.1f %%", t.A, 100), or("%.1f %%", t.B, 100), "")
	}
	for _, m := range d.Stacks {
		row("weight of "+m.Member+" in the stack, "+m.Body, or("%.3f", m.A, 1), or("%.3f", m.B, 1), "")
	}
	for i := range d.Sources {
		row("source "+d.Sources[i].Source, d.Sources[i].A.Standing(), d.Sources[i].B.Standing(), "")
	}
	if err := table.Flush(); err != nil {
		return cli.Written(err)
	}
	if d.More > 0 {
		fmt.Fprintf(&b, "and %d more sources: --limit 0 shows all\n", d.More)
	}
	var text strings.Builder
	for line := range strings.Lines(b.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return s.print(text.String())
}

func versionOf(version int64) string {
	if version == 0 {
		return "a file"
	}
	return fmt.Sprint(version)
}

// or writes times·v, or "none" if v is nil.
func or(format string, v *float64, times float64) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf(format, times*(*v))
}
