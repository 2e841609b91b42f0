package papers

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/lab/papers/viboost"
)

// DataSets is `hamlet lab data`.
type DataSets struct {
	Data  string `help:"Folder of the data sets." default:"data" type:"path" placeholder:"DIR"`
	Write string `help:"Write the synthetic sets into this folder, as CSV with the label last." type:"path" placeholder:"DIR"`
	Seed  uint64 `help:"Seed of the synthetic sets." default:"1" placeholder:"S"`
	JSON  bool   `name:"json" help:"Print one object in JSON a line."`
}

// Help is shown by kong below the flags.
func (DataSets) Help() string {
	return `Examples:
  hamlet lab data --data ../data      which sets are there, and where the others may be had
  hamlet lab data --write synthetic/  the sets that the sources draw at random

A file counts only if its SHA-256 is the documented one: sets of one name differ from copy to copy.
--json prints the hashes.`
}

// A generator draws a synthetic set.
type generator struct {
	name, what string
	draw       func(seed uint64) (x [][]float64, y []float64)
}

// synthetic returns the sets that sources draw at random.
func synthetic() []generator {
	return []generator{
		{"step", "VIBoost figures 8 and 9: 100 points, labels true with probability .8, noise of grade ln 3", viboost.DrawStep},
		{"long-servedio", "VIBoost figure 10: 1,200 rows of 31 signs, every label noise of grade ln 4", viboost.DrawLongServedio},
	}
}

// Run lists the sets, or writes the synthetic ones.
func (c *DataSets) Run(_ context.Context, stdio cli.IO) error {
	if c.Write != "" {
		return c.write(stdio)
	}
	data := experiment.NewData(c.Data)
	table := tabwriter.NewWriter(stdio.Out, 0, 0, 2, ' ', 0)
	out := json.NewEncoder(stdio.Out)
	for _, set := range experiment.Sets() {
		state, err := stateOf(data, set.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			line := struct {
				Name  string            `json:"name"`
				State string            `json:"state"`
				What  string            `json:"what"`
				Where string            `json:"where"`
				Files []experiment.File `json:"files"`
			}{set.Name, state, set.What, set.Where, set.Files}
			if err := out.Encode(line); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n\t\t%s\n", set.Name, state, set.What, set.Where)
		for _, f := range set.Files {
			fmt.Fprintf(table, "\t\t%s\n", filepath.Join(c.Data, filepath.FromSlash(f.Path)))
		}
	}
	return table.Flush()
}

// stateOf returns "here", "missing" or "differs".
func stateOf(data *experiment.Data, name string) (string, error) {
	err := data.Check(name)
	var missing *experiment.MissingError
	switch {
	case err == nil:
		return "here", nil
	case !errors.As(err, &missing):
		return "", err
	case missing.Other:
		return "differs", nil
	}
	return "missing", nil
}

func (c *DataSets) write(stdio cli.IO) error {
	if err := os.MkdirAll(c.Write, 0o755); err != nil {
		return err
	}
	for _, g := range synthetic() {
		x, y := g.draw(c.Seed)
		path := filepath.Join(c.Write, g.name+".csv")
		if err := writeTable(path, x, y); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, err := fmt.Fprintf(stdio.Out, "%s: %d rows. %s\n", path, len(x), g.what); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(path string, x [][]float64, y []float64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := csv.NewWriter(file)
	for i, row := range x {
		line := make([]string, 0, len(row)+1)
		for _, v := range row {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
		}
		if err := out.Write(append(line, strconv.FormatFloat(y[i], 'g', -1, 64))); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	out.Flush()
	return errors.Join(out.Error(), file.Close())
}
