package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
)

// An alarmResult is the comparison of all detectors. Rates are per 100,000 events. Delays are in
// events, and beyond the horizon null in JSON.
type alarmResult struct {
	plan
	Command     string     `json:"command"`
	Sets        []string   `json:"sets"`                 // the populations
	CleanEvents int        `json:"clean_events"`         // of clean streams
	Counted     int        `json:"counted_events"`       // those on which false alarms count
	Before      int        `json:"events_before_faults"` // on which false alarms also count
	FaultAt     int        `json:"fault_at"`
	Seconds     float64    `json:"seconds"`
	Detectors   []detector `json:"detectors"`

	trials  []trial
	streams int // clean ones
	target  int // false suspicions and names of the model
}

// A detector is one alarm and its figures.
type detector struct {
	Name        string    `json:"name"`
	On          string    `json:"on,omitempty"`        // the input that it watches
	Parameter   string    `json:"parameter,omitempty"` // meaning of its threshold; "" without one
	Threshold   float64   `json:"threshold,omitempty"`
	FalseAlarms int       `json:"false_alarms"` // on the clean streams
	Rate        interval  `json:"per_100000"`
	Beforehand  int       `json:"before_faults"` // in the streams with faults, before the faults begin
	BeforeRate  interval  `json:"before_faults_per_100000"`
	Faults      []finding `json:"faults"`

	own    bool       // it is one of the model's
	names  bool       // it says what changed: findings say how often it was right
	others []detector // the same detector at other thresholds
}

// A finding is a detector's result in one trial.
type finding struct {
	Set    string   `json:"set"`
	Fault  string   `json:"fault"`
	Raised int      `json:"raised"`
	Right  *int     `json:"right_first,omitempty"` // streams in which its first name was right; nil: it does not name
	Of     int      `json:"of"`                    // streams
	Share  interval `json:"share"`                 // raised
	Delay  interval `json:"delay"`                 // the median; +Inf: beyond the horizon
}

// rate returns alarms per 100,000 events with the exact 95 % interval.
func rate(alarms, events int) interval {
	lo, hi := poisson(alarms)
	per := 100_000 / float64(events)
	return interval{float64(alarms) * per, lo * per, hi * per}
}

func rateText(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v == 0:
		return "0"
	}
	return fmt.Sprintf("%.2g", v)
}

func (d *detector) thresholdText() string {
	if d.Parameter == "" {
		return "–"
	}
	return fmt.Sprintf("%.3g", d.Threshold)
}

// delayText writes a delay; +Inf is beyond the horizon.
func (p *plan) delayText(v float64) string {
	if math.IsInf(v, 1) {
		return fmt.Sprintf(">%d", p.Horizon)
	}
	return fmt.Sprintf("%.0f", v)
}

// section shows the comparison: a column for each detector.
func (r *alarmResult) section() *experiment.Section {
	t := experiment.Table{Head: [][]string{{"", ""}, {"", ""}, {"", "watches"}}}
	for _, d := range r.Detectors {
		first, second := d.header()
		for i, text := range []string{first, second, d.On} {
			t.Head[i] = append(t.Head[i], text)
		}
	}
	add := func(about, what string, text func(d *detector) string) {
		cells := []string{about, what}
		for i := range r.Detectors {
			cells = append(cells, text(&r.Detectors[i]))
		}
		t.Add(cells...)
	}
	add("threshold", "", func(d *detector) string { return d.thresholdText() })
	rates := func(about string, of func(d *detector) interval) {
		add(about, "per 100,000", func(d *detector) string { return rateText(of(d).value) })
		add("", "95 %", func(d *detector) string {
			if d.On == "" {
				return "–" // the rate of a baseline is exact
			}
			return span(of(d), rateText)
		})
	}
	rates("false alarms", func(d *detector) interval { return d.Rate })
	rates("before the faults", func(d *detector) interval { return d.BeforeRate })
	for k, trial := range r.trials {
		add(r.trialName(k), "raised", func(d *detector) string {
			return fmt.Sprintf("%d/%d", d.Faults[k].Raised, d.Faults[k].Of)
		})
		if len(trial.fault.names) > 0 {
			add("", "right first", func(d *detector) string {
				if !d.names {
					return ""
				}
				return fmt.Sprintf("%d/%d", *d.Faults[k].Right, d.Faults[k].Of)
			})
		}
		add("", "delay", func(d *detector) string { return r.delayText(d.Faults[k].Delay.value) })
		add("", "95 %", func(d *detector) string { return span(d.Faults[k].Delay, r.delayText) })
	}
	return &experiment.Section{Lead: experiment.Plain(r.summary()), Table: t, Notes: experiment.Plain(r.notes()...)}
}

// trialName names a trial's fault, and its population if there are several.
func (r *alarmResult) trialName(k int) string {
	t := r.trials[k]
	if len(r.Sets) > 1 {
		return t.population + ": " + t.fault.name
	}
	return t.fault.name
}

// span writes an interval. Ends with the same text are written once.
func span(e interval, text func(float64) string) string {
	lo, hi := text(e.lo), text(e.hi)
	if lo == hi {
		return lo
	}
	return lo + "–" + hi
}

// header returns a detector's name in two lines.
func (d *detector) header() (first, second string) {
	if i := strings.IndexRune(d.Name, '–'); i >= 0 {
		i += len("–")
		return d.Name[:i], d.Name[i:]
	}
	first, second, _ = strings.Cut(d.Name, " ")
	return first, second
}

func (r *alarmResult) summary() string {
	return fmt.Sprintf("%d events with true labels in %d streams (%s), %d streams for each fault; in %v",
		r.CleanEvents, r.streams, strings.Join(r.Sets, ", "), r.Seeds,
		time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
}

// notes explain the figures.
func (r *alarmResult) notes() []string {
	own := rate(r.target, r.Counted)
	tuned := fmt.Sprintf("Ours have the thresholds of the services. Each other threshold was lowered in steps of √2, "+
		"the last one halved to a thousandth, as long as it gave no more false alarms on the same %d events than "+
		"ours suspected: %d. Between two steps there may be more.",
		r.Counted, r.target)
	for _, d := range r.Detectors {
		if d.Parameter != "" && d.FalseAlarms > r.target {
			tuned += fmt.Sprintf(" %s on the %s has more at any.", d.Name, d.On)
		}
	}
	return []string{
		tuned,
		fmt.Sprintf("The first %d events of a stream do not count; what is raised in %d events is one alarm. "+
			"Intervals of rates are exact Poisson, and too narrow for DDM, whose alarms come in runs.", r.learnt,
			together),
		fmt.Sprintf("Before the faults are %d events that nothing was tuned on.", r.Before),
		fmt.Sprintf("Raised: streams with an alarm within %d events of the fault at event %d. Delay: the median over "+
			"all streams, with its 95 %% bootstrap interval.", r.Horizon, r.faultAt+1),
		fmt.Sprintf("always: an alarm at every event, the shortest delay there is; it tells nothing. never: no false "+
			"alarm, and no other. An alarm at random, as often false as ours, is raised in %.1f %% of spans of %d "+
			"events (%.1f to %.1f %%).",
			100*chance(own.value/1e5, r.Horizon), r.Horizon, 100*chance(own.lo/1e5, r.Horizon),
			100*chance(own.hi/1e5, r.Horizon)),
		"Suspected: ours opened an incident, with or without a name. Named: it said what changed; label noise, " +
			"covariate and concept are the names, and an accused source counts as label noise. Right first: streams " +
			"in which the first name after the fault is the fault's.",
		"Thresholds: DDM standard deviations, ADWIN log₁₀ 1/δ, Page–Hinkley λ in errors or nats. The others say that " +
			"something changed; ours say what.",
		"Made by: " + r.Command,
	}
}

// drawn calls f for each detector except the baselines, which lie far outside the plot.
func (r *alarmResult) drawn(f func(d *detector)) {
	for i := range r.Detectors {
		if d := &r.Detectors[i]; d.own || d.Parameter != "" {
			f(d)
		}
	}
}

// page is the section with a chart of each trial.
func (r *alarmResult) page() *experiment.Section {
	s := r.section()
	s.Notes = append(s.Notes, experiment.Text{Text: fmt.Sprintf("Lower is sooner, further left is quieter. A "+
		"line is a detector at many thresholds, its mark the one tuned to our false alarms; ours are marks alone. "+
		"Bars are 95 %% intervals. Rates are drawn at half an alarm where there was none, delays at the upper edge "+
		"where most streams raised none within %d events.", r.Horizon)})
	for k, t := range r.trials {
		c := r.delayChart(k)
		c.Title, c.Caption = r.trialName(k), t.fault.meaning
		s.Charts = append(s.Charts, c)
	}
	return s
}

// delayChart shows delay against false alarms for one trial.
func (r *alarmResult) delayChart(k int) chart.Chart {
	half := 0.5 * 1e5 / float64(r.Counted)
	top := 1.25 * float64(r.Horizon) // y of a detector without an alarm in time
	least, most := float64(r.Horizon)/100, 100*half
	shownRate := func(v float64) float64 { return max(v, half) }
	shownDelay := func(v float64) float64 {
		if math.IsInf(v, 1) {
			return top
		}
		return max(v, 1)
	}
	var c chart.Chart
	r.drawn(func(d *detector) {
		all := append(slices.Clone(d.others), *d)
		slices.SortFunc(all, func(a, b detector) int { return cmp.Compare(a.Threshold, b.Threshold) })
		var curve []point
		for _, o := range all {
			p := point{shownRate(o.Rate.value), shownDelay(o.Faults[k].Delay.value)}
			curve = append(curve, p)
			least, most = min(least, p.y), max(most, p.x)
		}
		at, f := d.Rate, d.Faults[k].Delay
		least, most = min(least, shownDelay(f.lo)), max(most, shownRate(at.hi))
		// The mark with intervals along both axes. A detector of ours has no line.
		x, y := shownRate(at.value), shownDelay(f.value)
		mark := chart.Series{Kind: chart.Points, X: []float64{x}, Y: []float64{y}, Lo: []float64{shownDelay(f.lo)},
			Hi: []float64{shownDelay(f.hi)}}
		name := d.Name + ", " + d.On
		if d.own {
			mark.Name = name
		} else {
			c.Series = append(c.Series, curveSeries(name, curve))
		}
		across := curveSeries("", []point{{shownRate(at.lo), y}, {shownRate(at.hi), y}})
		across.Faint = true
		c.Series = append(c.Series, mark, across)
	})
	c.X = logAxis("false alarms per 100,000 events", half/1.3, most*1.3) // room for marks at the edges
	c.X.Named = []chart.Tick{{At: half, Text: "0"}}
	c.Y = logAxis("median delay, events", max(least/1.3, 0.8), top*1.2)
	c.Y.Named = []chart.Tick{{At: top, Text: fmt.Sprintf(">%d", r.Horizon)}}
	return c
}
