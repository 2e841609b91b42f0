package papers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/show/progress"
)

// List is `hamlet-lab list`.
type List struct {
	Names []string `arg:"" optional:"" help:"A source or experiments (default all)." placeholder:"NAME"`
	JSON  bool     `name:"json" help:"Print one object in JSON a line."`
}

// Help is shown by kong below the flags.
func (List) Help() string {
	return `Examples:
  hamlet-lab list             all experiments
  hamlet-lab list viboost     those of one source

Sources: viboost, poeboost, blr (Bayesian logistic regression), bblr, slides.`
}

// Run prints the experiments.
func (c *List) Run(_ context.Context, stdio cli.IO) error {
	list := all()
	if len(c.Names) > 0 {
		var err error
		if list, err = chosen(list, c.Names); err != nil {
			return cli.Usagef("%w", err)
		}
	}
	if c.JSON {
		for _, e := range list {
			line := struct {
				Name    string   `json:"name"`
				Title   string   `json:"title"`
				Where   string   `json:"where"`
				Claim   string   `json:"claim"`
				Sets    []string `json:"sets,omitempty"`
				Seconds float64  `json:"seconds"`
			}{e.Name, e.Title, e.Where, e.Claim, e.Sets, e.Cost.Seconds()}
			if err := cli.PrintJSON(stdio.Out, line); err != nil {
				return err
			}
		}
		return nil
	}
	var table experiment.Table
	for _, e := range list {
		table.Add(e.Name, about(e.Cost), e.Title)
	}
	return table.Print(stdio.Out)
}

// about rounds the time of one core for people.
func about(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", max(1, d.Seconds()))
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// Run is `hamlet-lab run`.
type Run struct {
	Names  []string `arg:"" help:"Experiments: SOURCE/WHAT, a source, or all." placeholder:"NAME"`
	Data   string   `help:"Folder of the data sets: hamlet-lab data lists them." default:"data" type:"path" placeholder:"DIR"`
	Report string   `help:"Write pages, CSV and JSON into this folder; finished steps are kept there too." default:"lab-report" type:"path" placeholder:"DIR"`
	Seed   uint64   `help:"Seed of all that is random." default:"1" placeholder:"S"`
	Cores  int      `help:"Steps at a time (default: the machine's cores)." placeholder:"N"`
	Again  bool     `help:"Compute these experiments again, also what an earlier run left of them."`
	JSON   bool     `name:"json" help:"Print one object in JSON for each experiment."`
}

// Help is shown by kong below the flags.
func (Run) Help() string {
	return `Examples:
  hamlet-lab run viboost/figure-8 --data ../data
  hamlet-lab run bblr                          all of a source
  hamlet-lab run all --data ../data --report lab/     then open lab/index.html

Each row prints our number with its 95 % Monte Carlo interval, the source's, the difference, and one of:

  reproduced       they agree within rounding and Monte Carlo error
  better           they differ, and ours is better
  not reproduced   they differ; the row says why, as far as it is known

A claim without a number is a row with ≤ or ≥: ours keeps the bound, or misses it by chance alone.
With many rows each has less room, so that chance breaks one table in twenty (Bonferroni).

An interrupted run goes on where it was if the same command is called again with the same program,
data and seed. The numbers do not depend on --cores.

The exit status is 1 if an experiment could not be computed. A result that is not reproduced is
no failure. In a run of several experiments a missing data set is no failure either.`
}

// Run computes the experiments.
func (c *Run) Run(ctx context.Context, stdio cli.IO) error {
	list, err := chosen(all(), c.Names)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	return c.run(ctx, stdio, list)
}

func (c *Run) run(ctx context.Context, stdio cli.IO, list []*experiment.Experiment) error {
	if err := cli.NotNegative("--cores", c.Cores); err != nil {
		return err
	}
	cores := c.Cores
	if cores == 0 {
		cores = runtime.GOMAXPROCS(0)
	}
	if info, err := os.Stat(c.Data); slices.ContainsFunc(list, needsData) && (err != nil || !info.IsDir()) {
		return cli.Usagef("--data: there is no folder %s; hamlet-lab data says what belongs there", c.Data)
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	code, err := experiment.CodeOf(executable)
	if err != nil {
		return err
	}
	if c.Again {
		for _, e := range list {
			if err := e.Forget(c.Report); err != nil {
				return err
			}
		}
	}
	p := &printer{stdio: stdio, line: progress.NewLine(stdio.Err), folder: c.Report, json: c.JSON}
	defer p.line.Clear()
	runner := experiment.Runner{Data: experiment.NewData(c.Data), Seed: c.Seed, Cores: cores, Code: code,
		Folder:   c.Report,
		Progress: p.progress, Done: p.done}
	results, err := runner.Run(ctx, list)
	p.line.Clear()
	if err != nil {
		fmt.Fprintf(stdio.Err, "Finished steps are kept in %s: the same command goes on from there.\n", c.Report)
		return err
	}
	err = p.err
	for _, r := range results {
		var missing *experiment.MissingError
		if r.Err != nil && (len(list) == 1 || !errors.As(r.Err, &missing)) {
			err = errors.Join(err, r.Err)
		}
	}
	if pages := writePages(c.Report, time.Now()); pages != nil {
		return errors.Join(err, pages)
	}
	if c.JSON {
		return err
	}
	text := fmt.Sprintf("Pages: %s\n", filepath.Join(c.Report, "index.html"))
	if len(list) > 1 {
		text = p.tally.String() + "\n" + text
	}
	return errors.Join(err, cli.Print(stdio.Out, text))
}

func needsData(e *experiment.Experiment) bool { return len(e.Sets) > 0 }

// A printer shows progress, prints what ended and writes its files.
type printer struct {
	stdio  cli.IO
	line   *progress.Line
	folder string
	json   bool
	tally  tally
	err    error // the first that could not be written
}

func (p *printer) progress(at experiment.Progress) {
	parts := []string{fmt.Sprintf("%d of %d experiments", at.Ended, at.Of)}
	if at.Left > 0 {
		parts = append(parts, "about "+about(at.Left)+" left")
	}
	if at.Running != "" {
		parts = append(parts, fmt.Sprintf("%s: step %d of %d", at.Running, at.Steps, at.Known))
	}
	p.line.Draw(parts...)
}

func (p *printer) done(result *experiment.Result) {
	p.line.Clear()
	p.tally.add(result)
	err := result.Write(p.folder)
	switch {
	case err != nil:
	case p.json:
		err = cli.PrintJSON(p.stdio.Out, result)
	default:
		out := p.stdio.Out
		err = errors.Join(cli.Print(out, result.Name+"  "), sectionOf(result).Print(out), cli.Print(out, "\n"))
	}
	if err != nil && p.err == nil {
		p.err = err
	}
}
