package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"hamlet/cmd/internal/report"
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

// A line is a row of the table, with a cell for each detector.
type line struct {
	about, what string
	cells       []string
}

// lines are the rows of the table.
func (r *alarmResult) lines() (lines []line) {
	add := func(about, what string, text func(d *detector) string) {
		l := line{about: about, what: what}
		for i := range r.detectors {
			l.cells = append(l.cells, text(&r.detectors[i]))
		}
		lines = append(lines, l)
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
	for k, t := range r.trials {
		about := t.fault.name
		if len(r.populations) > 1 {
			about = t.population + ": " + about
		}
		add(about, "raised", func(d *detector) string {
			return fmt.Sprintf("%d/%d", d.findings[k].raised, len(d.findings[k].delays))
		})
		if len(t.fault.names) > 0 {
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
	return lines
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

// writeTable prints the result for people.
func (r *alarmResult) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n", r.summary())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var names [3]string
	for _, d := range r.detectors {
		first, second := d.header()
		for i, text := range []string{first, second, d.on} {
			names[i] += "\t" + text
		}
	}
	fmt.Fprintf(t, "\t%s\n\t%s\n\twatches%s\n", names[0], names[1], names[2])
	for _, l := range r.lines() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", l.about, l.what, strings.Join(l.cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(r.notes(), "\n"))
	return err
}

func (r *alarmResult) summary() string {
	return fmt.Sprintf("%d events with true labels in %d streams (%s), %d streams for each fault; in %v",
		r.clean, r.streams, strings.Join(r.populations, ", "), r.seeds, r.took.Round(time.Second))
}

// notes explain the figures.
func (r *alarmResult) notes() []string {
	own := rate(r.target, r.counted)
	tuned := fmt.Sprintf("Ours have the thresholds of the services. Each other threshold was lowered in steps of √2, the last one halved to a thousandth, as long as it gave no more false alarms on the same %d events than ours suspected: %d. Between two steps there may be more.",
		r.counted, r.target)
	for _, d := range r.detectors {
		if d.parameter != "" && d.falseAlarms > r.target {
			tuned += fmt.Sprintf(" %s on the %s has more at any.", d.name, d.on)
		}
	}
	return []string{
		tuned,
		fmt.Sprintf("The first %d events of a stream do not count; what is raised in %d events is one alarm. Intervals of rates are exact Poisson, and too narrow for DDM, whose alarms come in runs.", r.learnt, together),
		fmt.Sprintf("Before the faults are %d events that nothing was tuned on.", r.before),
		fmt.Sprintf("Raised: streams with an alarm within %d events of the fault at event %d. Delay: the median over all streams, with its 95 %% bootstrap interval.", r.horizon, r.faultAt+1),
		fmt.Sprintf("always: an alarm at every event, the shortest delay there is; it tells nothing. never: no false alarm, and no other. An alarm at random, as often false as ours, is raised in %.1f %% of spans of %d events (%.1f to %.1f %%).",
			100*chance(own.value/1e5, r.horizon), r.horizon, 100*chance(own.lo/1e5, r.horizon), 100*chance(own.hi/1e5, r.horizon)),
		"Suspected: ours opened an incident, with or without a name. Named: it said what changed; label noise, covariate and concept are the names, and an accused source counts as label noise. Right first: streams in which the first name after the fault is the fault's.",
		"Thresholds: DDM standard deviations, ADWIN log₁₀ 1/δ, Page–Hinkley λ in errors or nats. The others say that something changed; ours say what.",
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

func (r *alarmResult) writeJSON(w io.Writer) error {
	out := jsonAlarms{
		Command: r.command, Sets: r.populations, CleanEvents: r.clean, Counted: r.counted, Before: r.before, Seeds: r.seeds,
		Seed: r.seed, FaultAt: r.faultAt + 1, Horizon: r.horizon, Seconds: r.took.Seconds(),
	}
	for _, d := range r.detectors {
		j := jsonDetector{
			Name: d.name, On: d.on, Parameter: d.parameter, FalseAlarms: d.falseAlarms, Rate: toJSON(rate(d.falseAlarms, r.counted)),
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
	return writeJSON(w, out)
}
