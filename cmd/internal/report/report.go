// Package report holds what eval and up print at the end, and the progress that
// they show until then.
package report

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"hamlet/algos/eval"
)

// A Result is what a replayed stream amounts to. Its JSON is one object.
type Result struct {
	eval.Summary
	Rejected        int     `json:"rejected"`             // items that could not be learnt from
	Duplicates      int     `json:"duplicates,omitempty"` // copies of events, neither scored nor learnt
	ResumedAt       int     `json:"resumed_at,omitempty"` // events learnt before this run: the metrics leave them out
	ModelSHA256     string  `json:"model_sha256"`
	EventsPerSecond float64 `json:"events_per_second"`

	// Reading is what the alarms say at the end, in words; empty where there are none.
	Reading string `json:"reading,omitempty"`

	// NoChangeError is the error of guessing each label to be the one before.
	NoChangeError float64 `json:"no_change_error"`

	// Doubtful counts the labels of this run that were learnt although they were
	// more likely false than true (label trust below one half), before From as
	// well. Sources have those that gave such labels, worst first, at most 20.
	Doubtful int                `json:"doubtful"`
	Sources  []eval.SourceDoubt `json:"doubtful_sources"`

	Learned int `json:"-"` // events learnt or scored, before From as well
}

// ErrNothing says that a source was there and nothing of it could be learnt from.
var ErrNothing = errors.New("nothing to learn from: every item was rejected, or there was none")

// Err returns ErrNothing if the whole source came to nothing.
func (r *Result) Err() error {
	if r.Learned == 0 && r.Duplicates == 0 && r.ResumedAt == 0 {
		return ErrNothing
	}
	return nil
}

// SetModel notes the SHA-256 of a model's bytes.
func (r *Result) SetModel(sum [32]byte) { r.ModelSHA256 = hex.EncodeToString(sum[:]) }

// SetDoubts notes the labels that were held to be false.
func (r *Result) SetDoubts(d *eval.Doubts) {
	const most = 20
	r.Doubtful, r.Sources = d.Doubtful(), d.Worst(most)
}

// WriteJSON prints r as one line of JSON.
func (r *Result) WriteJSON(w io.Writer) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("result in JSON: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}

// WriteTable prints r for people.
func (r *Result) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value, meaning string) { fmt.Fprintf(t, "%s\t%s\t%s\n", name, value, meaning) }
	row("events", fmt.Sprintf("%d", r.Events), fmt.Sprintf("%d spam, %d ham", r.Spam, r.Ham))
	row("1-ROCA%", measure(r.ROCA, "%.4f"), "pairs of ham and spam in the wrong order, %")
	row("log loss", measure(r.LogLoss, "%.5f"), "nats an event")
	row("error", measure(100*r.Error, "%.3f %%"), "on the wrong side of ½")
	if n := float64(r.Events); n > 0 && r.NoChangeError < 0.9*float64(min(r.Spam, r.Ham))/n {
		row("no change", fmt.Sprintf("%.3f %%", 100*r.NoChangeError), "error of guessing each label to be the one before: labels come in runs")
	}
	row("lam%", measure(r.LAM, "%.3f"), "logistic average misclassification")
	row("spam missed", measure(r.SMAtHM, "%.2f %%"), "where 0.1 % of ham is lost")
	row("Brier", measure(r.Brier, "%.5f"), "mean squared error of p")
	row("calibration", measure(100*r.ECE, "%.3f %%"), "expected calibration error, 15 bins")
	row("  slope", measure(r.CalibrationSlope, "%.3f"), "of the labels' logit on the log-odds: below 1 too sure, above 1 not sure enough")
	row("  intercept", measure(r.CalibrationIntercept, "%+.3f"), "the same line's, nats: above 0 there is more spam than was said")
	if r.Approximate {
		row("", "", "ranking and calibration come from a histogram: the stream is long")
	}
	r.writeDoubts(row)
	if r.Rejected > 0 {
		row("rejected", fmt.Sprintf("%d", r.Rejected), "could not be learnt from")
	}
	if r.Duplicates > 0 {
		row("duplicates", fmt.Sprintf("%d", r.Duplicates), "copies, neither scored nor learnt")
	}
	if r.ResumedAt > 0 {
		row("resumed", fmt.Sprintf("%d", r.ResumedAt), "events learnt before this run, not in the figures above")
	}
	if r.Reading != "" {
		row("alarms", r.Reading, "what they say together, at the end")
	}
	row("model", r.ModelSHA256, "SHA-256")
	row("speed", fmt.Sprintf("%.0f /s", r.EventsPerSecond), "")
	return t.Flush()
}

// writeDoubts prints the doubtful labels, and the ten worst of their sources.
func (r *Result) writeDoubts(row func(name, value, meaning string)) {
	row("doubtful", fmt.Sprintf("%d", r.Doubtful), "labels held to be false rather than true when they were learnt")
	const most = 10
	named := 0
	for _, s := range r.Sources[:min(most, len(r.Sources))] {
		row("  "+s.Source, fmt.Sprintf("%d", s.Doubtful), fmt.Sprintf("%.2f %% of the source's %d labels", 100*float64(s.Doubtful)/float64(s.Learnt), s.Learnt))
		named += s.Doubtful
	}
	if named < r.Doubtful {
		row("  other sources", fmt.Sprintf("%d", r.Doubtful-named), "")
	}
}

func measure(m eval.Measure, format string) string {
	if !m.Defined() {
		return "–"
	}
	return fmt.Sprintf(format, float64(m))
}
