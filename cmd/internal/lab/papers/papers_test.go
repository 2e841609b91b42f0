package papers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
)

func TestExperimentsKeepTheRules(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range all() {
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
		if seen[e.Name] {
			t.Errorf("two experiments are called %s", e.Name)
		}
		seen[e.Name] = true
	}
	if len(seen) < 8 {
		t.Errorf("only %d experiments", len(seen))
	}
}

// Experiments that take a second or less compute something and compare it; one that lacks
// its data set says so.
func TestQuickExperiments(t *testing.T) {
	n := experiment.Runner{Data: experiment.NewData(filepath.Join("..", "..", "..", "..", "..", "shared", "data")),
		Seed: 1, Cores: 2}
	var quick []*experiment.Experiment
	for _, e := range all() {
		if e.Cost <= time.Second {
			quick = append(quick, e)
		}
	}
	outcomes, err := n.Run(t.Context(), quick)
	if err != nil {
		t.Fatal(err)
	}
	computed := 0
	for _, o := range outcomes {
		var missing *experiment.MissingError
		switch {
		case errors.As(o.Err, &missing):
			t.Log(missing)
		case o.Err != nil:
			t.Error(o.Err)
		default:
			computed++
		}
	}
	if computed < 2 {
		t.Errorf("%d experiments were computed", computed)
	}
}

// run computes experiments into a folder and returns what is printed.
func run(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	c := Run{Names: args, Data: t.TempDir(), Report: folder, Seed: 1, Cores: 2}
	err := c.Run(t.Context(), cli.IO{Out: &out, Err: &errs})
	return out.String(), err
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Real experiments, from the command to the pages; and one without its data. The alarm of label
// noise rests on figure 10.
func TestRun(t *testing.T) {
	folder := t.TempDir()
	out, err := run(t, folder, "viboost/figure-5", "viboost/channel", "viboost/figure-7", "viboost/figure-10")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"viboost/figure-5  Figure 5", "reproduced: 5 of 5 rows reproduced",
		"reproduced: 2 of 2 rows reproduced",
		"state.svm is missing; it may be had from",
		"4 experiments: 3 reproduced, 0 better, 0 not reproduced, 1 without their data.", "Pages: "} {
		if !strings.Contains(out, want) {
			t.Errorf("printed without %q:\n%s", want, out)
		}
	}
	page := read(t, folder, "viboost.html")
	for _, want := range []string{"<svg", "Z = 100", "reproduced: 5 of 5 rows", "state.svm is missing",
		`href="viboost/figure-5.csv"`} {
		if !strings.Contains(page, want) {
			t.Errorf("viboost.html has no %q", want)
		}
	}
	if index := read(t, folder, "index.html"); !strings.Contains(index, `href="viboost.html#figure-5"`) ||
		strings.Contains(index, "poeboost.html") {
		t.Error("index.html does not lead to the experiments that were computed, and to no others")
	}
	if svg := read(t, folder, "viboost", "figure-5-1.svg"); !strings.HasPrefix(svg, "<svg") {
		t.Errorf("figure-5-1.svg:\n%s", svg)
	}
	if csv := read(t, folder, "viboost", "figure-5.csv"); !strings.Contains(csv,
		"largest difference of (17) and (18)") {
		t.Errorf("figure-5.csv:\n%s", csv)
	}
}

// The verdict rests on the printed number: with a wrong one planted in its place, every
// row of real experiments changes its verdict.
func TestPlantedNumbersChangeVerdicts(t *testing.T) {
	folder := t.TempDir()
	if _, err := run(t, folder, "viboost/figure-5", "viboost/channel"); err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, name := range []string{"figure-5", "channel"} {
		var r experiment.Result
		if err := json.Unmarshal([]byte(read(t, folder, "viboost", name+".json")), &r); err != nil {
			t.Fatal(err)
		}
		for i := range r.Rows {
			row := r.Rows[i]
			if row.Verdict != experiment.Reproduced {
				continue
			}
			judged++
			wrong := row
			switch row.Relation {
			case experiment.AtMost:
				wrong.Paper = "-1000"
			case experiment.AtLeast:
				wrong.Paper = "1000"
			default:
				wrong.Paper = "123456"
			}
			p := &experiment.Report{Rows: []experiment.Row{wrong}}
			if verdict, err := p.Judge(); err != nil || verdict == experiment.Reproduced {
				t.Errorf("%s, %s: %q beside %s, %v", name, row.What, verdict, wrong.Paper, err)
			}
			p.Rows[0] = row
			if verdict, err := p.Judge(); err != nil || verdict != experiment.Reproduced {
				t.Errorf("%s, %s: %q beside the source's own number, %v", name, row.What, verdict, err)
			}
		}
	}
	if judged < 8 {
		t.Errorf("only %d rows were judged", judged)
	}
}

func TestNames(t *testing.T) {
	list := all()
	if picked, err := chosen(list, []string{"viboost/channel", "viboost", "all"}); err != nil ||
		len(picked) != len(list) || picked[0].Name != "viboost/channel" {
		t.Errorf("%d of %d, %v", len(picked), len(list), err)
	}
	for name, want := range map[string]string{"viboost/figure-99": "viboost/figure-8",
		"poeboost/figure-8": "viboost/figure-8", "nothing": "hamlet-lab list"} {
		if _, err := chosen(list, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to name %s", name, err, want)
		}
	}
}

func TestWrongUse(t *testing.T) {
	var usage *cli.UsageError
	for name, c := range map[string]Run{
		"an unknown experiment": {Names: []string{"viboost/none"}},
		"cores below zero":      {Names: []string{"viboost/channel"}, Cores: -1},
		"no folder of data":     {Names: []string{"viboost/figure-6"}, Data: "not-here"},
	} {
		c.Report = t.TempDir()
		if err := c.Run(t.Context(), cli.IO{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}); !errors.As(err, &usage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := run(t, t.TempDir(), "viboost/figure-7"); err == nil || !strings.Contains(err.Error(), "state.svm") {
		t.Errorf("one experiment without its data: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs bytes.Buffer
	c := Run{Names: []string{"viboost/channel"}, Report: t.TempDir(), Cores: 1}
	if err := c.Run(ctx, cli.IO{Out: &bytes.Buffer{}, Err: &errs}); !errors.Is(err, context.Canceled) ||
		!strings.Contains(errs.String(), "goes on from there") {
		t.Errorf("interrupted: %v, %s", err, &errs)
	}
}

// What a source, a data set or an error says is shown as text.
func TestPagesEscape(t *testing.T) {
	folder := t.TempDir()
	r := experiment.Result{Name: "viboost/channel", Title: "<script>t", Claim: "<script>c", Failed: "<script>f",
		Date: time.Now().String(), Report: &experiment.Report{}}
	if err := r.Write(folder); err != nil {
		t.Fatal(err)
	}
	if err := writePages(folder, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"index.html", "viboost.html"} {
		if strings.Contains(read(t, folder, page), "<script>") {
			t.Errorf("%s holds a script", page)
		}
	}
}

func TestSyntheticSets(t *testing.T) {
	folder := t.TempDir()
	var out bytes.Buffer
	if err := (&DataSets{Write: folder, Seed: 1}).Run(t.Context(), cli.IO{Out: &out}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]int{"step.csv": {100, 2}, "long-servedio.csv": {1200, 32}} {
		lines := strings.Split(strings.TrimSpace(read(t, folder, name)), "\n")
		if len(lines) != want[0] || len(strings.Split(lines[0], ",")) != want[1] {
			t.Errorf("%s: %d lines, the first is %q", name, len(lines), lines[0])
		}
	}
}

func TestDataSets(t *testing.T) {
	var out bytes.Buffer
	if err := (&DataSets{Data: t.TempDir()}).Run(t.Context(), cli.IO{Out: &out}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"spambase", "missing", "archive.ics.uci.edu", "bupa.data"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestCells(t *testing.T) {
	row := experiment.Row{Group: "pima", What: "error", Ours: experiment.Statistic{Value: .2412, SE: .004},
		Relation: experiment.Equals, Paper: "0.24"}
	if got, want := cellsOf(&row), []string{"pima, error", "0.2412", "0.2334 to 0.2490", "0.24", "+0.0012",
		""}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	row = experiment.Row{What: "least gain", Ours: experiment.Exact(-1e-13), Relation: experiment.AtLeast, Paper: "0",
		Slack: 1e-9}
	if got := cellsOf(&row); got[3] != "≥ 0 ± 1e-09" {
		t.Errorf("%+v", got)
	}
	row = experiment.Row{What: "largest error", Ours: experiment.Exact(2e-16), Relation: experiment.AtMost,
		Paper: "1e-12"}
	if got := cellsOf(&row); got[1] != "2e−16" || got[3] != "≤ 1e-12" || got[4] != "" {
		t.Errorf("%+v", got)
	}
}
