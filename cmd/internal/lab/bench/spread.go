package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
)

// A spread is what several splits of one stream measured.
type spread struct {
	by           string
	partitions   int
	splits       int
	events, spam int
	rejected     int
	perEvent     float64 // records of the order log for each event, mean
	rows         []spreadRow
}

// A spreadRow is an outcome by figure and split.
type spreadRow struct {
	name    string
	figures [figures][]float64
}

// spreadRows are the outcomes in the table. Ratios are to the first one.
var spreadRows = []struct{ outcome, name string }{
	{singleOutcome, singleOutcome},
	{orderOutcome, orderOutcome},
	{string(model.PooledExperts), "models of all, jointly"},
	{ownOutcome, ownOutcome},
}

// spreadFigures are the figures in the table.
var spreadFigures = []figure{roca, logLoss, wrongAtHalf, firstLoss}

// spread replays the source once for each interleaving, and prints mean and spread.
func (c *Partitions) spread(ctx context.Context, stdio cli.IO, src partitionSource, cfg model.Config) error {
	result := spread{by: "by " + c.By, partitions: c.Partitions, splits: c.Interleavings}
	if c.By == "random" {
		result.by = "at random"
	}
	for k := range c.Interleavings {
		s, err := c.replay(ctx, stdio, src, cfg, []model.Pooling{model.PooledExperts}, k)
		if err != nil {
			return err
		}
		result.add(s)
	}
	if c.JSON {
		return result.writeJSON(stdio.Out)
	}
	return result.writeTable(stdio.Out)
}

// add adds the replay of one split.
func (r *spread) add(s *partitionReplay) {
	ones := slices.Repeat([]int32{1}, len(s.truth))
	if r.rows == nil {
		r.events, r.rejected = len(s.truth), s.rejects
		for _, spam := range s.truth {
			if spam {
				r.spam++
			}
		}
		r.rows = make([]spreadRow, len(spreadRows))
	}
	for i, row := range spreadRows {
		r.rows[i].name = row.name
		o := s.outcomes[slices.IndexFunc(s.outcomes, func(o *outcome) bool { return o.name == row.outcome })]
		v := newRanking(s.truth, o, 0).measure(ones)
		for f := range figures {
			r.rows[i].figures[f] = append(r.rows[i].figures[f], v[f])
		}
	}
	r.perEvent += float64(s.backlog.runs) / float64(len(s.truth)) / float64(r.splits)
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// ratio returns the mean of a row's figure over that of one partition.
func (r *spread) ratio(row *spreadRow, f figure) float64 {
	return mean(row.figures[f]) / mean(r.rows[0].figures[f])
}

// writeTable prints r as a table, a line for each outcome.
func (r *spread) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%d events, %d spam, %d ham, in %d partitions %s: mean of %d splits, lowest and highest\n\n",
		r.events, r.spam, r.events-r.spam, r.partitions, r.by, r.splits)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range spreadFigures {
		fmt.Fprintf(t, "\t%s", strings.TrimSpace(rowOf(f).name))
	}
	fmt.Fprintf(t, "\t1-ROCA%% and log loss to %s\n", singleOutcome)
	for i := range r.rows {
		row := &r.rows[i]
		fmt.Fprint(t, row.name)
		for _, f := range spreadFigures {
			x := row.figures[f]
			fmt.Fprintf(t, "\t%s", rowOf(f).text(estimate{mean(x), slices.Min(x), slices.Max(x)}))
		}
		if i > 0 {
			fmt.Fprintf(t, "\t%.3f %.3f", r.ratio(row, roca), r.ratio(row, logLoss))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\nThe one model of all partitions takes %.2f order records for each event.\nMade by: %s\n", r.perEvent, commandLine())
	return err
}

type jsonSpread struct {
	Command    string          `json:"command"`
	By         string          `json:"by"`
	Partitions int             `json:"partitions"`
	Splits     int             `json:"interleavings"`
	Events     int             `json:"events"`
	Spam       int             `json:"spam"`
	Ham        int             `json:"ham"`
	Rejected   int             `json:"rejected"`
	PerEvent   float64         `json:"order_records_per_event"`
	Rows       []jsonSpreadRow `json:"models"`
}

type jsonSpreadRow struct {
	Name    string         `json:"name"`
	ROCA    []eval.Measure `json:"roca"` // by split
	LogLoss []eval.Measure `json:"log_loss"`
	Error   []eval.Measure `json:"error"`
	First   []eval.Measure `json:"first_400_log_loss"`
	Ratio   eval.Measure   `json:"roca_to_one_partition"` // of the means
	Loss    eval.Measure   `json:"log_loss_to_one_partition"`
}

func (r *spread) writeJSON(w io.Writer) error {
	out := jsonSpread{
		Command: commandLine(), By: r.by, Partitions: r.partitions, Splits: r.splits, Events: r.events,
		Spam: r.spam, Ham: r.events - r.spam, Rejected: r.rejected, PerEvent: r.perEvent,
	}
	measures := func(x []float64) (all []eval.Measure) {
		for _, v := range x {
			all = append(all, finite(v))
		}
		return all
	}
	for i := range r.rows {
		row := &r.rows[i]
		v := &row.figures
		out.Rows = append(out.Rows, jsonSpreadRow{
			Name: row.name, ROCA: measures(v[roca]), LogLoss: measures(v[logLoss]), Error: measures(v[wrongAtHalf]), First: measures(v[firstLoss]),
			Ratio: finite(r.ratio(row, roca)), Loss: finite(r.ratio(row, logLoss)),
		})
	}
	return writeJSON(w, out)
}

func finite(v float64) eval.Measure {
	if math.IsInf(v, 0) {
		v = math.NaN()
	}
	return eval.Measure(v)
}
