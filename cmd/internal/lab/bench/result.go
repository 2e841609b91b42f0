package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"hamlet/algos/eval"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// A result is the measurement of all filters. Fractions are in [0, 1]; figures with % in their
// name are in [0, 100].
type result struct {
	Command   string       `json:"command"`
	Mode      string       `json:"mode"`
	Events    int          `json:"events"` // measured
	Spam      int          `json:"spam"`
	Ham       int          `json:"ham"`
	Taught    int          `json:"taught"`
	Rejected  int          `json:"rejected"`
	Resamples int          `json:"resamples"`
	Seed      uint64       `json:"bootstrap_seed"`
	Idle      float64      `json:"jig_cpu_seconds,omitempty"` // of an adapter that does nothing, a message
	Inside    eval.Measure `json:"inside_interval"`           // share of hamlet's answers with p inside its 90 % interval
	Central   eval.Measure `json:"inside_central_interval"`   // before intervals are widened to contain p
	Filters   []measured   `json:"filters"`
	Ratios    []comparison `json:"ratios"`

	parsing   time.Duration // hamlet's wall time per message, like modelling
	modelling time.Duration
	from      int
	truth     []bool
	outcomes  []*outcome
}

// A measured is a filter and its figures.
type measured struct {
	name    string
	figures [figures]interval
	speed   float64 // messages a second by the clock
	memory  int64   // bytes; 0: unknown
}

// MarshalJSON writes the figures by the keys of rows.
func (m *measured) MarshalJSON() ([]byte, error) {
	all := map[string]any{"name": m.name, "messages_per_second": m.speed}
	for _, r := range rows {
		all[r.key] = m.figures[r.figure]
	}
	if m.memory != 0 {
		all["memory_bytes"] = m.memory
	}
	return json.Marshal(all)
}

// measure computes the figures of a replay.
func measure(ctx context.Context, r *mailReplay, c *Mail) (*result, error) {
	rankings := make([]*ranking, len(r.outcomes))
	for i, o := range r.outcomes {
		rankings[i] = newRanking(r.truth, o, c.From)
	}
	all, ratios, err := bootstrap(ctx, rankings, c.Resamples, c.BootstrapSeed)
	if err != nil {
		return nil, err
	}
	n := time.Duration(len(r.truth))
	out := &result{
		Command: commandLine(), Mode: c.mode(), Events: len(r.truth) - c.From, Taught: r.taught, Rejected: r.rejects,
		Resamples: c.Resamples, Seed: c.BootstrapSeed, Ratios: ratios, Idle: r.idle.Seconds(),
		from: c.From, parsing: r.own.parsing / n, modelling: r.own.modelling / n, truth: r.truth, outcomes: r.outcomes,
	}
	out.Inside, out.Central = r.own.intervals.Shares()
	for _, spam := range r.truth[c.From:] {
		if spam {
			out.Spam++
		} else {
			out.Ham++
		}
	}
	for i, o := range r.outcomes {
		out.Filters = append(out.Filters, measured{o.name, all[i], float64(len(r.truth)) / o.wall.Seconds(), o.memory})
	}
	for i := range ratios {
		ratios[i].Other = r.outcomes[i+1].name
	}
	return out, nil
}

// mode says which messages were taught, and when.
func (c *Mail) mode() string {
	var parts []string
	add := func(format string, v ...any) { parts = append(parts, fmt.Sprintf(format, v...)) }
	if c.Delay > 0 {
		add("taught after %d further messages", c.Delay)
	} else {
		add("taught at once")
	}
	if c.TeachFirst > 0 {
		add("only the first %d are taught", c.TeachFirst)
	}
	if c.Recipient != "" {
		add("only mail to %q is taught", c.Recipient)
	}
	if c.Flip != nil && *c.Flip > 0 {
		kind := map[string]string{"spam": " of spam", "ham": " of ham"}[c.FlipKind]
		add("%.4g %% of the labels%s taught wrong", 100**c.Flip, kind)
		if c.FlipSource != "" {
			add("those of source %q alone", c.FlipSource)
		}
	}
	return strings.Join(parts, ", ")
}

// A row describes how a figure is shown.
type row struct {
	figure  figure
	key     string // in JSON
	name    string
	unit    string
	scale   float64
	digits  int
	meaning string
}

var rows = []row{
	{roca, "roca", "1-ROCA%", "", 1, 3, "pairs of ham and spam in the wrong order, %"},
	{lamPercent, "lam", "lam%", "", 1, 2, "logistic average misclassification, own class"},
	{missed, "sm_at_hm", "spam missed", " %", 1, 2, "where .1 % of ham is lost"},
	{wrongClass, "error", "error", " %", 100, 2, "wrong by the filter's own class"},
	{wrongAtHalf, "error_at_half", "error at ½", " %", 100, 2, "on the wrong side of p = ½"},
	{logLoss, "log_loss", "log loss", "", 1, 4, "nats a message"},
	{calibration, "ece", "ECE", " %", 100, 2, "expected calibration error, 15 bins"},
	{slope, "calibration_slope", "calibration slope", "", 1, 2,
		"of the labels' logit on the log-odds; –: certain of what was not so, or no fit"},
	{slopeBelow, "slope_below_05", "  where p < .05", "", 1, 2,
		"fitted to those messages alone; –: under 5 of a class, or no fit"},
	{slopeAbove, "slope_above_95", "  where p > .95", "", 1, 2, "the same"},
	{firstLoss, "first_400_log_loss", "first 400: log loss", "", 1, 4, "nats a message, cold start"},
	{firstROCA, "first_400_roca", "first 400: 1-ROCA%", "", 1, 3, "the same messages"},
	{cpuTime, "cpu_seconds", "CPU time", " ms", 1e3, 3, "a message, classified and learnt"},
}

// text writes an estimate with its interval.
func (r *row) text(e interval) string {
	if math.IsNaN(e.value) {
		return "–"
	}
	f := func(v float64) string { return fmt.Sprintf("%.*f", r.digits, r.scale*v) }
	return fmt.Sprintf("%s%s (%s to %s)", f(e.value), r.unit, f(e.lo), f(e.hi))
}

// ratioText writes a ratio; below 0.1 as 1/n.
func ratioText(e interval) string {
	if math.IsNaN(e.value) {
		return "–"
	}
	if e.hi < 0.1 && e.lo > 0 {
		return fmt.Sprintf("1/%.1f (1/%.1f to 1/%.1f)", 1/e.value, 1/e.lo, 1/e.hi)
	}
	return fmt.Sprintf("%.3f (%.3f to %.3f)", e.value, e.lo, e.hi)
}

// section shows the result.
func (r *result) section() *experiment.Section {
	var t experiment.Table
	add := func(name string, text func(*measured) string, meaning string) {
		cells := []string{name}
		for i := range r.Filters {
			cells = append(cells, text(&r.Filters[i]))
		}
		t.Add(append(cells, meaning)...)
	}
	add("", func(m *measured) string { return m.name }, "")
	t.Head, t.Rows = [][]string{t.Rows[0].Cells}, nil
	for i := range rows {
		add(rows[i].name, func(m *measured) string { return rows[i].text(m.figures[rows[i].figure]) }, rows[i].meaning)
	}
	add("speed", func(m *measured) string { return fmt.Sprintf("%.0f /s", m.speed) },
		"messages a second by the clock; others run beside each other")
	add("memory", func(m *measured) string {
		if m.memory == 0 {
			return "–"
		}
		return fmt.Sprintf("%.0f MiB", float64(m.memory)/(1<<20))
	}, "at the end, if it stays alive; hamlet's is the most of all of bench")
	for _, p := range r.Ratios {
		t.Add(hamlet+" / "+p.Other, "1-ROCA%  "+ratioText(p.ROCA), "CPU time  "+ratioText(p.CPU), "ratios, paired")
	}
	return &experiment.Section{Lead: experiment.Plain(r.summary()), Table: t, Notes: experiment.Plain(r.notes()...)}
}

// page is the section with its curves.
func (r *result) page() *experiment.Section {
	s := r.section()
	area, wrong := r.learningCharts()
	s.Charts = append([]chart.Chart{r.rocChart(), area, wrong}, r.reliabilityCharts()...)
	return s
}

func percent(share eval.Measure) string {
	if !share.Defined() {
		return "–"
	}
	return fmt.Sprintf("%.2f", 100*float64(share))
}

func (r *result) summary() string {
	s := fmt.Sprintf("%d messages, %d spam, %d ham; each classified before it was taught, %s: %d taught", r.Events,
		r.Spam, r.Ham, r.Mode, r.Taught)
	if r.from > 0 {
		s += fmt.Sprintf("; the first %d are not in the figures", r.from)
	}
	if r.Rejected > 0 {
		s += fmt.Sprintf("; %d rejected", r.Rejected)
	}
	return s
}

func (r *result) notes() []string {
	lines := []string{
		fmt.Sprintf("In brackets 95 %% bootstrap intervals, %d resamples of the messages, seed %d.", r.Resamples,
			r.Seed),
		fmt.Sprintf("hamlet by the clock: %v to parse a message, %v to classify and learn it.",
			r.parsing.Round(time.Microsecond/10), r.modelling.Round(time.Microsecond/10)),
		fmt.Sprintf("hamlet's p is inside its own 90 %% interval in %s %% of all messages, in %s %% before intervals "+
			"are widened to contain it.",
			percent(r.Inside), percent(r.Central)),
	}
	if r.Idle > 0 {
		lines = append(lines, fmt.Sprintf("An adapter that only starts its processes takes %.3f ms of CPU time per "+
			"message here.",
			1e3*r.Idle))
		for i, p := range r.Ratios {
			if r.outcomes[i+1].serves {
				continue // it starts no process for a message
			}
			if rest := r.Filters[i+1].figures[cpuTime].value - r.Idle; rest > 0 {
				lines = append(lines, fmt.Sprintf("Without that, CPU time of hamlet / %s is %.3f (1/%.1f).",
					p.Other, r.Filters[0].figures[cpuTime].value/rest, rest/r.Filters[0].figures[cpuTime].value))
			}
		}
	}
	return append(lines, "Made by: "+r.Command)
}
