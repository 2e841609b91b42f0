package bench

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A partitionResult is the measurement of a partitionReplay.
type partitionResult struct {
	by        string
	learnt    []int
	events    int
	spam      int
	rejected  int
	resamples int
	seed      uint64
	poolings  []measured
	ratios    []estimate // 1-ROCA% of the first pooling over that of each other one
}

func (c *Partitions) measure(ctx context.Context, s *partitionReplay) (*partitionResult, error) {
	rankings := make([]*ranking, len(s.outcomes))
	for i, o := range s.outcomes {
		rankings[i] = newRanking(s.truth, o, 0)
	}
	estimates, pairs, err := bootstrap(ctx, rankings, c.Resamples, c.BootstrapSeed)
	if err != nil {
		return nil, err
	}
	r := &partitionResult{
		by: "by " + c.By, learnt: s.learnt, events: len(s.truth), rejected: s.rejects, resamples: c.Resamples, seed: c.BootstrapSeed,
	}
	if c.By == "random" {
		r.by = fmt.Sprintf("at random, seed %d", c.Seed)
	}
	for _, spam := range s.truth {
		if spam {
			r.spam++
		}
	}
	for i, o := range s.outcomes {
		r.poolings = append(r.poolings, measured{name: o.name, figures: estimates[i]})
	}
	for _, p := range pairs {
		r.ratios = append(r.ratios, p.roca)
	}
	return r, nil
}

// partitionRows are the figures in the table.
var partitionRows = []figure{roca, logLoss, wrongAtHalf, calibration, slope, slopeBelow, slopeAbove, firstLoss}

func rowOf(f figure) *row {
	for i := range rows {
		if rows[i].figure == f {
			return &rows[i]
		}
	}
	panic("bench: a figure without a row")
}

// writeTable prints r as a table, a line for each pooling.
func (r *partitionResult) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%d events, %d spam, %d ham, in %d partitions %s: %v\n\n",
		r.events, r.spam, r.events-r.spam, len(r.learnt), r.by, r.learnt)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range partitionRows {
		fmt.Fprintf(t, "\t%s", strings.TrimSpace(rowOf(f).name))
	}
	fmt.Fprintf(t, "\t1-ROCA%% of %s to it\n", r.poolings[0].name)
	for i, j := range r.poolings {
		fmt.Fprint(t, j.name)
		for _, f := range partitionRows {
			fmt.Fprintf(t, "\t%s", rowOf(f).text(j.figures[f]))
		}
		if i > 0 {
			fmt.Fprintf(t, "\t%s", ratioText(r.ratios[i-1]))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\nIn brackets 95 %% bootstrap intervals, %d resamples of the events, seed %d; ratios are paired.\nMade by: %s\n",
		r.resamples, r.seed, commandLine())
	return err
}

type jsonPartitions struct {
	Command    string        `json:"command"`
	By         string        `json:"by"`
	Partitions []int         `json:"partitions"` // events learnt
	Events     int           `json:"events"`
	Spam       int           `json:"spam"`
	Ham        int           `json:"ham"`
	Rejected   int           `json:"rejected"`
	Resamples  int           `json:"resamples"`
	Seed       uint64        `json:"bootstrap_seed"`
	Poolings   []jsonPooling `json:"joins"`
}

type jsonPooling struct {
	Name      string        `json:"name"`
	ROCA      jsonEstimate  `json:"roca"`
	LogLoss   jsonEstimate  `json:"log_loss"`
	Error     jsonEstimate  `json:"error"`
	ECE       jsonEstimate  `json:"ece"`
	Slope     jsonEstimate  `json:"calibration_slope"`
	Below     jsonEstimate  `json:"slope_below_05"`
	Above     jsonEstimate  `json:"slope_above_95"`
	First     jsonEstimate  `json:"first_400_log_loss"`
	FirstROCA jsonEstimate  `json:"first_400_roca"`
	Ratio     *jsonEstimate `json:"mean_to_it,omitempty"` // 1-ROCA% of the mean over that of this one
}

func (r *partitionResult) writeJSON(w io.Writer) error {
	out := jsonPartitions{
		Command: commandLine(), By: r.by, Partitions: r.learnt, Events: r.events, Spam: r.spam, Ham: r.events - r.spam,
		Rejected: r.rejected, Resamples: r.resamples, Seed: r.seed,
	}
	for i, j := range r.poolings {
		v := &j.figures
		line := jsonPooling{
			Name: j.name, ROCA: toJSON(v[roca]), LogLoss: toJSON(v[logLoss]), Error: toJSON(v[wrongAtHalf]),
			ECE: toJSON(v[calibration]), Slope: toJSON(v[slope]),
			Below: toJSON(v[slopeBelow]), Above: toJSON(v[slopeAbove]), First: toJSON(v[firstLoss]), FirstROCA: toJSON(v[firstROCA]),
		}
		if i > 0 {
			ratio := toJSON(r.ratios[i-1])
			line.Ratio = &ratio
		}
		out.Poolings = append(out.Poolings, line)
	}
	return writeJSON(w, out)
}
