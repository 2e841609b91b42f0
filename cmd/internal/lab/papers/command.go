package papers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/progress"
)

// List is `hamlet lab list`.
type List struct {
	Names []string `arg:"" optional:"" help:"A source or experiments (default all)." placeholder:"NAME"`
	JSON  bool     `name:"json" help:"Print one object in JSON a line."`
}

// Help is shown by kong below the flags.
func (List) Help() string {
	return `Examples:
  hamlet lab list             all experiments
  hamlet lab list viboost     those of one source

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
		out := json.NewEncoder(stdio.Out)
		for _, e := range list {
			line := struct {
				Name    string   `json:"name"`
				Title   string   `json:"title"`
				Where   string   `json:"where"`
				Claim   string   `json:"claim"`
				Sets    []string `json:"sets,omitempty"`
				Seconds float64  `json:"seconds"`
			}{e.Name, e.Title, e.Where, e.Claim, e.Sets, e.Cost.Seconds()}
			if err := out.Encode(line); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(stdio.Out, 0, 0, 2, ' ', 0)
	for _, e := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\n", e.Name, about(e.Cost), e.Title)
	}
	return table.Flush()
}

// about rounds the time of one core for people.
func about(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", max(1, d.Seconds()))
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// Run is `hamlet lab run`.
type Run struct {
	Names  []string `arg:"" help:"Experiments: SOURCE/WHAT, a source, or all." placeholder:"NAME"`
	Data   string   `help:"Folder of the data sets: hamlet lab data lists them." default:"data" type:"path" placeholder:"DIR"`
	Report string   `help:"Write pages, CSV and JSON into this folder; finished steps are kept there too." default:"lab-report" type:"path" placeholder:"DIR"`
	Seed   uint64   `help:"Seed of all that is random." default:"1" placeholder:"S"`
	Cores  int      `help:"Steps at a time (default: the machine's cores)." placeholder:"N"`
	Again  bool     `help:"Compute these experiments again, also what an earlier run left of them."`
	JSON   bool     `name:"json" help:"Print one object in JSON for each experiment."`
}

// Help is shown by kong below the flags.
func (Run) Help() string {
	return `Examples:
  hamlet lab run viboost/figure-8 --data ../data
  hamlet lab run bblr                          all of a source
  hamlet lab run all --data ../data --report lab/     then open lab/index.html

Each row prints our number with its 95 % Monte Carlo interval, the source's, the difference, and one of:

  reproduced       they agree within rounding and Monte Carlo error
  better           they differ, and ours is better
  not reproduced   they differ; the row says why, as far as it is known

A claim without a number is a row with ≤ or ≥: ours keeps the bound, or misses it by chance alone.
With many rows each has less room, so that chance breaks one table in twenty (Bonferroni).

An interrupted run goes on where it was if the same command is called again with the same program,
data and seed. The numbers do not depend on --cores.

The exit status is 1 if an experiment could not be computed. A result that is not reproduced is
no failure, and in a run of several a data set that is missing neither.`
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
	if info, err := os.Stat(c.Data); needData(list) && (err != nil || !info.IsDir()) {
		return cli.Usagef("--data: there is no folder %s; hamlet lab data says what belongs there", c.Data)
	}
	code, err := codeOf()
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
	p := &printer{stdio: stdio, line: progress.NewLine(stdio.Err), folder: c.Report, seed: c.Seed, json: c.JSON}
	defer p.line.Clear()
	runner := experiment.Runner{Data: experiment.NewData(c.Data), Seed: c.Seed, Cores: cores, Code: code, Folder: c.Report,
		Progress: p.progress, Done: p.done}
	outcomes, err := runner.Run(ctx, list)
	p.line.Clear()
	if err != nil {
		fmt.Fprintf(stdio.Err, "Finished steps are kept in %s: the same command goes on from there.\n", c.Report)
		return err
	}
	err = p.err
	for _, o := range outcomes {
		var missing *experiment.MissingError
		if o.Err != nil && (len(list) == 1 || !errors.As(o.Err, &missing)) {
			err = errors.Join(err, o.Err)
		}
	}
	if pages := writePages(c.Report, time.Now()); pages != nil {
		return errors.Join(err, pages)
	}
	if len(list) > 1 && !c.JSON {
		fmt.Fprintln(stdio.Out, summary(outcomes))
	}
	if !c.JSON {
		fmt.Fprintf(stdio.Out, "Pages: %s\n", filepath.Join(c.Report, "index.html"))
	}
	return err
}

func needData(list []*experiment.Experiment) bool {
	for _, e := range list {
		if len(e.Sets) > 0 {
			return true
		}
	}
	return false
}

func codeOf() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	return experiment.CodeOf(executable)
}

// A printer shows progress, prints what ended and writes its files.
type printer struct {
	stdio  cli.IO
	line   *progress.Line
	folder string
	seed   uint64
	json   bool
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

func (p *printer) done(o experiment.Outcome) {
	p.line.Clear()
	result := experiment.ResultOf(o, p.seed, time.Now())
	err := result.Write(p.folder)
	if err == nil {
		err = errors.Join(writeCSV(p.folder, &result), writePictures(p.folder, &result))
	}
	if err == nil && p.json {
		err = json.NewEncoder(p.stdio.Out).Encode(result)
	} else if err == nil {
		err = printResult(p.stdio.Out, &result)
	}
	if err != nil && p.err == nil {
		p.err = err
	}
}

// summary counts the verdicts of experiments and of rows.
func summary(outcomes []experiment.Outcome) string {
	var whole, rows experiment.Count
	missing, failed, shown := 0, 0, 0
	for _, o := range outcomes {
		var lacks *experiment.MissingError
		switch {
		case errors.As(o.Err, &lacks):
			missing++
		case o.Err != nil:
			failed++
		default:
			whole.Add(o.Verdict)
			if o.Verdict == experiment.NoVerdict {
				shown++
			}
			count := o.Report.Count()
			rows.Reproduced += count.Reproduced
			rows.Better += count.Better
			rows.NotReproduced += count.NotReproduced
		}
	}
	text := fmt.Sprintf("%d experiments: %d reproduced, %d better, %d not reproduced", len(outcomes), whole.Reproduced, whole.Better, whole.NotReproduced)
	if shown > 0 {
		text += fmt.Sprintf(", %d without a verdict", shown)
	}
	if missing > 0 {
		text += fmt.Sprintf(", %d without their data", missing)
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text + fmt.Sprintf(".\nTheir rows: %d reproduced, %d better, %d not reproduced.", rows.Reproduced, rows.Better, rows.NotReproduced)
}

// printResult prints a result for a terminal.
func printResult(w io.Writer, r *experiment.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s (%s)\n", r.Name, r.Title, r.Where)
	switch {
	case r.Missing != "":
		fmt.Fprintf(&b, "  not computed: %s\n\n", r.Missing)
	case r.Failed != "":
		fmt.Fprintf(&b, "  failed: %s\n\n", r.Failed)
	default:
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(table, "  \tours\t95 %%\tsource\tdifference\t\n")
		for _, row := range r.Rows {
			c := cellsOf(&row)
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Ours, c.Interval, c.Paper, c.Difference, c.Verdict)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, reason := range reasons(r.Rows) {
			fmt.Fprintf(&b, "  why: %s\n", reason)
		}
		for _, note := range r.Notes {
			fmt.Fprintf(&b, "  %s\n", note)
		}
		fmt.Fprintf(&b, "  %s\n\n", verdictLine(r))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reasons returns why rows are not reproduced, each once.
func reasons(rows []experiment.Row) []string {
	var all []string
	for _, row := range rows {
		if row.Verdict == experiment.NotReproduced && row.Reason != "" && !slices.Contains(all, row.Reason) {
			all = append(all, row.Reason)
		}
	}
	return all
}

// verdictLine says the verdict with the counts of rows.
func verdictLine(r *experiment.Result) string {
	if r.Count.Judged() == 0 {
		return fmt.Sprintf("no verdict: the source gives no number (%.1f s, summed over its steps)", r.Seconds)
	}
	text := fmt.Sprintf("%s: %d of %d rows reproduced", r.Verdict, r.Count.Reproduced, r.Count.Judged())
	if r.Count.Better > 0 {
		text += fmt.Sprintf(", %d better", r.Count.Better)
	}
	if r.Count.NotReproduced > 0 {
		text += fmt.Sprintf(", %d not reproduced", r.Count.NotReproduced)
	}
	return text + fmt.Sprintf(" (%.1f s, summed over its steps)", r.Seconds)
}
