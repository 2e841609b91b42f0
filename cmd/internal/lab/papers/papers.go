// Laboratory: the sources' tables and figures, computed again.

// Package papers holds `hamlet-lab`: every table and figure of the sources, computed
// again beside the printed one. A package below it has the experiments of a source; how
// an experiment is written and judged stands in package experiment.
package papers

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/lab/papers/bblr"
	"hamlet/cmd/internal/lab/papers/blr"
	"hamlet/cmd/internal/lab/papers/poeboost"
	"hamlet/cmd/internal/lab/papers/slides"
	"hamlet/cmd/internal/lab/papers/viboost"
	"hamlet/cmd/internal/process/cli"
)

// all returns every experiment, by source in the order of experiment.Sources.
func all() []*experiment.Experiment {
	var list []*experiment.Experiment
	for _, source := range [][]experiment.Experiment{
		viboost.Experiments(), poeboost.Experiments(), blr.Experiments(), bblr.Experiments(), slides.Experiments(),
	} {
		for i := range source {
			list = append(list, &source[i])
		}
	}
	return list
}

// chosen returns the experiments that names mean: "all", a source, or one of them.
func chosen(list []*experiment.Experiment, names []string) ([]*experiment.Experiment, error) {
	var picked []*experiment.Experiment
	for _, name := range names {
		found := false
		for _, e := range list {
			if name != "all" && name != e.Source() && name != e.Name {
				continue
			}
			found = true
			if !slices.Contains(picked, e) {
				picked = append(picked, e)
			}
		}
		if !found {
			return nil, unknown(list, name)
		}
	}
	return picked, nil
}

// unknown names what is near.
func unknown(list []*experiment.Experiment, name string) error {
	source, what, _ := strings.Cut(name, "/")
	var near []string
	for _, e := range list {
		if e.Source() == source || what != "" && strings.HasSuffix(e.Name, "/"+what) {
			near = append(near, e.Name)
		}
	}
	if len(near) > 0 {
		return fmt.Errorf("there is no experiment %q; near it: %s", name, strings.Join(near, ", "))
	}
	return fmt.Errorf("there is no experiment %q: hamlet-lab list shows all", name)
}

// DataSets is `hamlet-lab data`.
type DataSets struct {
	Data  string `help:"Folder of the data sets." default:"data" type:"path" placeholder:"DIR"`
	Write string `help:"Write the synthetic sets into this folder, as CSV with the label last." type:"path" placeholder:"DIR"`
	Seed  uint64 `help:"Seed of the synthetic sets." default:"1" placeholder:"S"`
	JSON  bool   `name:"json" help:"Print one object in JSON a line."`
}

// Help is shown by kong below the flags.
func (DataSets) Help() string {
	return `Examples:
  hamlet-lab data --data ../data      which sets are there, and where the others may be had
  hamlet-lab data --write synthetic/  the sets that the sources draw at random

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
		{"step", "VIBoost figures 8 and 9: 100 points, labels true with probability .8, noise of grade ln 3",
			viboost.DrawStep},
		{"long-servedio", "VIBoost figure 10: 1,200 rows of 31 signs, every label noise of grade ln 4",
			viboost.DrawLongServedio},
	}
}

// Run lists the sets, or writes the synthetic ones.
func (c *DataSets) Run(_ context.Context, stdio cli.IO) error {
	if c.Write != "" {
		return c.write(stdio)
	}
	data := experiment.NewData(c.Data)
	var table experiment.Table
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
			if err := cli.PrintJSON(stdio.Out, line); err != nil {
				return err
			}
			continue
		}
		table.Add(set.Name, state, set.What)
		table.Add("", "", set.Where)
		for _, f := range set.Files {
			table.Add("", "", filepath.Join(c.Data, filepath.FromSlash(f.Path)))
		}
	}
	return table.Print(stdio.Out)
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
