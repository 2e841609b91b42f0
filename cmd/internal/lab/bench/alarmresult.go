package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/show/report"
)

// An alarmResult is the comparison of all detectors.
type alarmResult struct {
	plan
	command     string // the command line
	populations []string
	trials      []trial

	streams, clean, counted int // clean streams, their events, and the events on which false alarms count
	before                  int // events before faults on which false alarms also count
	target                  int // false suspicions and names of the model
	took                    time.Duration
	detectors               []detector
}

// A detector is one alarm and its figures.
type detector struct {
	name, on  string // on: the input that it watches
	parameter string // meaning of its threshold; "" without one
	threshold float64
	own       bool // it is one of the model's
	names     bool // it says what changed: findings say how often it was right

	falseAlarms int // on the clean streams
	beforehand  int // in the streams with faults, before the faults begin
	findings    []finding
	others      []detector // the same detector at other thresholds
}

// A finding is a detector's result in one trial.
type finding struct {
	delays []float64 // in events, by seed; +Inf: not raised
	raised int
	right  int      // streams in which the first name after the fault was right
	delay  estimate // the median; +Inf: beyond the horizon
}

// rate returns alarms per 100,000 events with the exact 95 % interval.
func rate(alarms, events int) estimate {
	lo, hi := poisson(alarms)
	per := 100_000 / float64(events)
	return estimate{float64(alarms) * per, lo * per, hi * per}
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
	if d.parameter == "" {
		return "–"
	}
	return fmt.Sprintf("%.3g", d.threshold)
}

// delayText writes a delay; +Inf is beyond the horizon.
func (p *plan) delayText(v float64) string {
	if math.IsInf(v, 1) {
		return fmt.Sprintf(">%d", p.horizon)
	}
	return fmt.Sprintf("%.0f", v)
}

// section shows the comparison: a column for each detector.
func (r *alarmResult) section() *experiment.Section {
	t := experiment.Table{Head: [][]string{{"", ""}, {"", ""}, {"", "watches"}}}
	for _, d := range r.detectors {
		first, second := d.header()
		for i, text := range []string{first, second, d.on} {
			t.Head[i] = append(t.Head[i], text)
		}
	}
	add := func(about, what string, text func(d *detector) string) {
		cells := []string{about, what}
		for i := range r.detectors {
			cells = append(cells, text(&r.detectors[i]))
		}
		t.Add(cells...)
	}
	add("threshold", "", func(d *detector) string { return d.thresholdText() })
	rates := func(about string, alarms func(d *detector) int, events int) {
		add(about, "per 100,000", func(d *detector) string { return rateText(rate(alarms(d), events).value) })
		add("", "95 %", func(d *detector) string {
			if d.on == "" {
				return "–" // the rate of a baseline is exact
			}
			return span(rate(alarms(d), events), rateText)
		})
	}
	rates("false alarms", func(d *detector) int { return d.falseAlarms }, r.counted)
	rates("before the faults", func(d *detector) int { return d.beforehand }, r.before)
	for k, trial := range r.trials {
		add(r.trialName(k), "raised", func(d *detector) string {
			return fmt.Sprintf("%d/%d", d.findings[k].raised, len(d.findings[k].delays))
		})
		if len(trial.fault.names) > 0 {
			add("", "right first", func(d *detector) string {
				if !d.names {
					return ""
				}
				return fmt.Sprintf("%d/%d", d.findings[k].right, len(d.findings[k].delays))
			})
		}
		add("", "delay", func(d *detector) string { return r.delayText(d.findings[k].delay.value) })
		add("", "95 %", func(d *detector) string { return span(d.findings[k].delay, r.delayText) })
	}
	return &experiment.Section{Lead: experiment.Plain(r.summary()), Table: t, Notes: experiment.Plain(r.notes()...)}
}

// trialName names a trial's fault, and its population if there are several.
func (r *alarmResult) trialName(k int) string {
	t := r.trials[k]
	if len(r.populations) > 1 {
		return t.population + ": " + t.fault.name
	}
	return t.fault.name
}

// span writes an interval. Ends with the same text are written once.
func span(e estimate, text func(float64) string) string {
	lo, hi := text(e.lo), text(e.hi)
	if lo == hi {
		return lo
	}
	return lo + "–" + hi
}

// header returns a detector's name in two lines.
func (d *detector) header() (first, second string) {
	if i := strings.IndexRune(d.name, '–'); i >= 0 {
		i += len("–")
		return d.name[:i], d.name[i:]
	}
	first, second, _ = strings.Cut(d.name, " ")
	return first, second
}

func (r *alarmResult) summary() string {
	return fmt.Sprintf("%d events with true labels in %d streams (%s), %d streams for each fault; in %v",
		r.clean, r.streams, strings.Join(r.populations, ", "), r.seeds, r.took.Round(time.Second))
}

// notes explain the figures.
func (r *alarmResult) notes() []string {
	own := rate(r.target, r.counted)
	tuned := fmt.Sprintf("Ours have the thresholds of the services. Each other threshold was lowered in steps of √2, "+
		"the last one halved to a thousandth, as long as it gave no more false alarms on the same %d events than "+
		"ours suspected: %d. Between two steps there may be more.",
		r.counted, r.target)
	for _, d := range r.detectors {
		if d.parameter != "" && d.falseAlarms > r.target {
			tuned += fmt.Sprintf(" %s on the %s has more at any.", d.name, d.on)
		}
	}
	return []string{
		tuned,
		fmt.Sprintf("The first %d events of a stream do not count; what is raised in %d events is one alarm. "+
			"Intervals of rates are exact Poisson, and too narrow for DDM, whose alarms come in runs.", r.learnt,
			together),
		fmt.Sprintf("Before the faults are %d events that nothing was tuned on.", r.before),
		fmt.Sprintf("Raised: streams with an alarm within %d events of the fault at event %d. Delay: the median over "+
			"all streams, with its 95 %% bootstrap interval.", r.horizon, r.faultAt+1),
		fmt.Sprintf("always: an alarm at every event, the shortest delay there is; it tells nothing. never: no false "+
			"alarm, and no other. An alarm at random, as often false as ours, is raised in %.1f %% of spans of %d "+
			"events (%.1f to %.1f %%).",
			100*chance(own.value/1e5, r.horizon), r.horizon, 100*chance(own.lo/1e5, r.horizon),
			100*chance(own.hi/1e5, r.horizon)),
		"Suspected: ours opened an incident, with or without a name. Named: it said what changed; label noise, " +
			"covariate and concept are the names, and an accused source counts as label noise. Right first: streams " +
			"in which the first name after the fault is the fault's.",
		"Thresholds: DDM standard deviations, ADWIN log₁₀ 1/δ, Page–Hinkley λ in errors or nats. The others say that " +
			"something changed; ours say what.",
		"Made by: " + r.command,
	}
}

// jsonAlarms is the output of --json. Rates are per 100,000 events. Delays are in
// events, and null beyond the horizon.
type jsonAlarms struct {
	Command     string         `json:"command"`
	Sets        []string       `json:"sets"`
	CleanEvents int            `json:"clean_events"`
	Counted     int            `json:"counted_events"`
	Before      int            `json:"events_before_faults"`
	Seeds       int            `json:"seeds"`
	Seed        uint64         `json:"seed"`
	FaultAt     int            `json:"fault_at"`
	Horizon     int            `json:"horizon"`
	Seconds     float64        `json:"seconds"`
	Detectors   []jsonDetector `json:"detectors"`
}

type jsonDetector struct {
	Name        string       `json:"name"`
	On          string       `json:"on,omitempty"`
	Parameter   string       `json:"parameter,omitempty"`
	Threshold   *float64     `json:"threshold,omitempty"`
	FalseAlarms int          `json:"false_alarms"`
	Rate        jsonEstimate `json:"per_100000"`
	Beforehand  int          `json:"before_faults"`
	BeforeRate  jsonEstimate `json:"before_faults_per_100000"`
	Faults      []jsonFault  `json:"faults"`
}

type jsonFault struct {
	Set    string       `json:"set"`
	Fault  string       `json:"fault"`
	Raised int          `json:"raised"`
	Right  *int         `json:"right_first,omitempty"` // of the detector that names, if the fault has a name
	Of     int          `json:"of"`
	Share  jsonEstimate `json:"share"`
	Delay  jsonEstimate `json:"delay"`
}

// MarshalJSON writes a jsonAlarms.
func (r *alarmResult) MarshalJSON() ([]byte, error) {
	out := jsonAlarms{
		Command: r.command, Sets: r.populations, CleanEvents: r.clean, Counted: r.counted, Before: r.before,
		Seeds: r.seeds,
		Seed:  r.seed, FaultAt: r.faultAt + 1, Horizon: r.horizon, Seconds: r.took.Seconds(),
	}
	for _, d := range r.detectors {
		j := jsonDetector{
			Name: d.name, On: d.on, Parameter: d.parameter, FalseAlarms: d.falseAlarms,
			Rate:       toJSON(rate(d.falseAlarms, r.counted)),
			Beforehand: d.beforehand, BeforeRate: toJSON(rate(d.beforehand, r.before)), Faults: []jsonFault{},
		}
		if d.parameter != "" {
			j.Threshold = &d.threshold
		}
		for k, f := range d.findings {
			fraction := estimate{value: float64(f.raised) / float64(len(f.delays))}
			fraction.lo, fraction.hi = report.Wilson(fraction.value, float64(len(f.delays)))
			fault := jsonFault{
				Set: r.trials[k].population, Fault: r.trials[k].fault.name, Raised: f.raised, Of: len(f.delays),
				Share: toJSON(fraction), Delay: toJSON(f.delay),
			}
			if d.names && len(r.trials[k].fault.names) > 0 {
				fault.Right = &f.right
			}
			j.Faults = append(j.Faults, fault)
		}
		out.Detectors = append(out.Detectors, j)
	}
	return json.Marshal(out)
}

// drawn calls f for each detector except the baselines, which lie far outside the plot.
func (r *alarmResult) drawn(f func(d *detector)) {
	for i := range r.detectors {
		if d := &r.detectors[i]; d.own || d.parameter != "" {
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
		"where most streams raised none within %d events.", r.horizon)})
	for k, t := range r.trials {
		c := r.delayChart(k)
		c.Title, c.Caption = r.trialName(k), t.fault.meaning
		s.Charts = append(s.Charts, c)
	}
	return s
}

// delayChart shows delay against false alarms for one trial.
func (r *alarmResult) delayChart(k int) chart.Chart {
	half := 0.5 * 1e5 / float64(r.counted)
	top := 1.25 * float64(r.horizon) // y of a detector without an alarm in time
	least, most := float64(r.horizon)/100, 100*half
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
		slices.SortFunc(all, func(a, b detector) int { return cmp.Compare(a.threshold, b.threshold) })
		var curve []point
		for _, o := range all {
			p := point{shownRate(rate(o.falseAlarms, r.counted).value), shownDelay(o.findings[k].delay.value)}
			curve = append(curve, p)
			least, most = min(least, p.y), max(most, p.x)
		}
		at, f := rate(d.falseAlarms, r.counted), d.findings[k].delay
		least, most = min(least, shownDelay(f.lo)), max(most, shownRate(at.hi))
		// The mark with intervals along both axes. A detector of ours has no line.
		x, y := shownRate(at.value), shownDelay(f.value)
		mark := chart.Series{Kind: chart.Points, X: []float64{x}, Y: []float64{y}, Lo: []float64{shownDelay(f.lo)},
			Hi: []float64{shownDelay(f.hi)}}
		name := d.name + ", " + d.on
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
	c.Y.Named = []chart.Tick{{At: top, Text: fmt.Sprintf(">%d", r.horizon)}}
	return c
}
