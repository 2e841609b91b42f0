package model

import (
	"context"
	"fmt"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/report"
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
	table := report.NewTable("", c.A, c.B)
	if d.A.Version != 0 || d.B.Version != 0 {
		table.Add("version", versionOf(d.A.Version), versionOf(d.B.Version))
	}
	table.Add("events", d.A.Events, d.B.Events, fmt.Sprintf("%+d", int64(d.B.Events)-int64(d.A.Events)))
	table.Add("spam", d.A.Spam, d.B.Spam, fmt.Sprintf("%+d", int64(d.B.Spam)-int64(d.A.Spam)))
	table.Add("position", d.A.Position, d.B.Position)
	table.Add("saved", cli.Stamp(d.A.Saved), cli.Stamp(d.B.Saved))
	if d.A.Numerics != d.B.Numerics {
		table.Add("numerics", d.A.Numerics, d.B.Numerics)
	}
	for _, setting := range d.Settings {
		table.Add(setting.Key, shorten(setting.A), shorten(setting.B))
	}
	for _, w := range d.Weights {
		table.Add("weight of "+shorten(w.Input)+", "+w.Body, fmt.Sprintf("%.3f", w.A), fmt.Sprintf("%.3f", w.B),
			fmt.Sprintf("%+.1f sd", w.SD))
	}
	for _, t := range d.Tables {
		table.Add("table of "+t.Name(), or("%.1f %%", t.A, 100), or("%.1f %%", t.B, 100))
	}
	for _, m := range d.Stacks {
		table.Add("weight of "+m.Member+" in the stack, "+m.Body, or("%.3f", m.A, 1), or("%.3f", m.B, 1))
	}
	for i := range d.Sources {
		table.Add("source "+d.Sources[i].Source, d.Sources[i].A.Standing(), d.Sources[i].B.Standing())
	}
	text := table.String()
	if d.More > 0 {
		text += fmt.Sprintf("and %d more sources: --limit 0 shows all\n", d.More)
	}
	return s.print(text)
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
