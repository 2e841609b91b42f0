// Package report holds the result that eval and up print at the end, and the list
// of rejected items that they print until then.
//
//	rejections := report.Rejections{W: os.Stderr}
//	rejections.Add(err)                     // "rejected: rows.csv:7: …", ten of them
//	result := report.Result{Summary: metrics.Summary(), Rejected: rejections.N}
//	result.SetModel(sha256.Sum256(bytes))
//	err := result.WriteTable(os.Stdout)     // or WriteJSON
package report

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
)

// A Result is the outcome of a stream that was scored and learnt.
type Result struct {
	eval.Summary
	Rejected        int     `json:"rejected"`             // items that could not be learnt from
	Duplicates      int     `json:"duplicates,omitempty"` // copies of events, neither scored nor learnt
	LeftOut         int     `json:"left_out,omitempty"`   // of sources that the model is without, neither scored nor learnt
	ResumedAt       int     `json:"resumed_at,omitempty"` // events learnt before this run: the metrics leave them out
	ModelSHA256     string  `json:"model_sha256"`
	EventsPerSecond float64 `json:"events_per_second"`

	// Reading says in words what the alarms mean together at the end; empty without alarms.
	Reading string `json:"reading,omitempty"`

	// Gates says which stacks answer in place of their heads at the end. Only a model with
	// ensembles or a second head for mail and text has a gate.
	Gates []Gate `json:"gates,omitempty"`

	// InsideInterval is the share of the measured events with p inside its 90 % interval;
	// InsideCentral the share before intervals were widened to contain p.
	InsideInterval eval.Measure `json:"inside_interval"`
	InsideCentral  eval.Measure `json:"inside_central_interval"`

	// NoChangeError is the error of guessing each label to be the one before.
	NoChangeError float64 `json:"no_change_error"`

	// Doubtful counts the labels of this run that were learnt although they were
	// more likely false than true (label trust below one half). It counts from the
	// first event on. Sources lists who gave such labels, worst first, at most 20.
	Doubtful int                `json:"doubtful"`
	Sources  []eval.SourceDoubt `json:"doubtful_sources"`

	Learned int `json:"-"` // events learnt or scored, from the first on
}

// A Gate is the state of a stack's gate (package stack) in a model.
type Gate struct {
	Partition int     `json:"partition"` // always 0
	Body      string  `json:"body"`
	Open      bool    `json:"open"`   // the stack answers, not the head alone
	Lead      float64 `json:"lead"`   // of the stack in log loss, nats; below 0 the head leads
	Since     uint64  `json:"since"`  // the body's event count when it last opened or closed; 0: never
	Served    uint64  `json:"served"` // events that the stack answered
	Events    uint64  `json:"events"` // of this body
}

// AddGates adds the gates of the model.
func (r *Result) AddGates(gates []model.Gate) {
	for _, g := range gates {
		r.Gates = append(r.Gates,
			Gate{Body: g.Body, Open: g.Open, Lead: g.Lead, Since: g.Since, Served: g.Served, Events: g.Events})
	}
}

// ErrNothing says that no item of a source could be learnt from.
var ErrNothing = errors.New("nothing to learn from: every item was rejected, or there was none")

// Err returns ErrNothing if no event was learnt, now or before.
func (r *Result) Err() error {
	if r.Learned == 0 && r.Duplicates == 0 && r.LeftOut == 0 && r.ResumedAt == 0 {
		return ErrNothing
	}
	return nil
}

// SetIntervals sets the shares of events with p inside its interval.
func (r *Result) SetIntervals(c *Intervals) { r.InsideInterval, r.InsideCentral = c.Shares() }

// SetModel sets the SHA-256 of a model's bytes.
func (r *Result) SetModel(sum [32]byte) { r.ModelSHA256 = hex.EncodeToString(sum[:]) }

// SetDoubts sets the doubtful labels and their sources.
func (r *Result) SetDoubts(d *eval.Doubts) {
	const most = 20
	r.Doubtful, r.Sources = d.Doubtful(), d.Worst(most)
}

// WriteJSON prints r as one line of JSON.
func (r *Result) WriteJSON(w io.Writer) error { return cli.PrintJSON(w, r) }

// A Row is a line of the table for people. A name may be empty: the row belongs to the one
// before it.
type Row struct{ Name, Value, Meaning string }

// WriteTable prints r for people, in lines of at most 80 columns.
func (r *Result) WriteTable(w io.Writer) error {
	text := ""
	for _, row := range r.Rows() {
		line := fmt.Sprintf("%-11s  %-9s  %s", row.Name, row.Value, row.Meaning)
		text += strings.TrimRight(line, " ") + "\n"
	}
	return cli.Print(w, text)
}

// Rows returns the table for people.
func (r *Result) Rows() (rows []Row) {
	row := func(name, value, meaning string) { rows = append(rows, Row{name, value, meaning}) }
	count := func(name string, n int, meaning string) {
		if n > 0 {
			row(name, strconv.Itoa(n), meaning)
		}
	}
	row("events", strconv.Itoa(r.Events), fmt.Sprintf("%d spam, %d ham", r.Spam, r.Ham))
	row("1-ROCA%", measure(r.ROCA, "%.4f"), "pairs of ham and spam in the wrong order, %")
	row("log loss", measure(r.LogLoss, "%.5f"), "nats an event")
	row("error", measure(100*r.Error, "%.3f %%"), "on the wrong side of ½")
	if n := float64(r.Events); n > 0 && r.NoChangeError < 0.9*float64(min(r.Spam, r.Ham))/n {
		row("no change", fmt.Sprintf("%.3f %%", 100*r.NoChangeError),
			"error of repeating the label before: labels come in runs")
	}
	row("lam%", measure(r.LAM, "%.3f"), "logistic average misclassification")
	row("spam missed", measure(r.SMAtHM, "%.2f %%"), "where 0.1 % of ham is lost")
	row("Brier", measure(r.Brier, "%.5f"), "mean squared error of p")
	row("calibration", measure(100*r.ECE, "%.3f %%"), "expected calibration error, 15 bins")
	row("  slope", measure(r.CalibrationSlope, "%.3f"), "below 1: too sure; above 1: not sure enough")
	row("  intercept", measure(r.CalibrationIntercept, "%+.3f"), "nats; above 0: more spam than predicted")
	row("  p < .05", measure(r.Below.Slope, "%.3f"), "slope there; "+ofTail(r.Below))
	row("  p > .95", measure(r.Above.Slope, "%.3f"), "slope there; "+ofTail(r.Above))
	row("p inside", measure(100*r.InsideInterval, "%.2f %%"),
		"in its 90 % interval; before widening "+measure(100*r.InsideCentral, "%.2f %%"))
	row("first 400", measure(r.First.LogLoss, "%.5f"),
		"log loss of the first 400 events; 1-ROCA% "+measure(r.First.ROCA, "%.4f"))
	if r.Approximate {
		row("", "", "a long stream: ranking and calibration from a histogram")
	}
	r.addDoubts(row)
	count("rejected", r.Rejected, "could not be learnt from")
	count("duplicates", r.Duplicates, "copies, neither scored nor learnt")
	count("left out", r.LeftOut, "of sources that the model is without")
	count("resumed", r.ResumedAt, "events learnt before this run, not measured here")
	for _, g := range r.Gates {
		state, where := "closed", "ahead"
		if g.Open {
			state = "open"
		}
		if g.Lead < 0 {
			where = "behind"
		}
		row("gate", state, fmt.Sprintf("%s: stack %s by %.2f nats, answered %.1f %%",
			g.Body, where, math.Abs(g.Lead), 100*float64(g.Served)/float64(g.Events)))
	}
	row("speed", fmt.Sprintf("%.0f /s", r.EventsPerSecond), "")
	if r.Reading != "" {
		row("alarms", r.Reading, "")
	}
	row("SHA-256", r.ModelSHA256, "")
	return rows
}

// addDoubts adds the doubtful labels, and the ten worst of their sources.
func (r *Result) addDoubts(row func(name, value, meaning string)) {
	row("doubtful", strconv.Itoa(r.Doubtful), "labels learnt although more likely false than true")
	const most, nameWidth = 10, 24
	named := 0
	for _, s := range r.Sources[:min(most, len(r.Sources))] {
		name := []rune(s.Source)
		if len(name) > nameWidth {
			name = append(name[:nameWidth-1], '…')
		}
		row("", strconv.Itoa(s.Doubtful),
			fmt.Sprintf("from %s: %.2f %% of its %d", string(name), 100*float64(s.Doubtful)/float64(s.Learnt), s.Learnt))
		named += s.Doubtful
	}
	if named < r.Doubtful {
		row("", strconv.Itoa(r.Doubtful-named), "from other sources")
	}
}

// ofTail says what a tail's slope is made of.
func ofTail(t eval.Tail) string {
	counts := fmt.Sprintf("%d events, %d spam", t.Events, t.Spam)
	if !t.Slope.Defined() {
		return counts
	}
	return fmt.Sprintf("± %.2f; %s", float64(t.Error), counts)
}

func measure(m eval.Measure, format string) string {
	if !m.Defined() {
		return "–"
	}
	return fmt.Sprintf(format, float64(m))
}
