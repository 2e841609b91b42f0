package incidents

import (
	"fmt"
	"math"

	"hamlet/algos/model"
	"hamlet/cmd/internal/show/chart"
	"hamlet/stream"
)

// names of alarms, for people. An accused source is judged by its labels, and beside it
// stands the alarm for labels.
var names = map[string]string{
	stream.AlertUnknown: "signs of change", stream.AlertLabelNoise: "label noise", stream.AlertSource: "label noise",
	stream.AlertCovariate: "covariate", stream.AlertConcept: "concept",
}

// strength returns an alarm's level in units of what raises it: 1 raises it. It is NaN where
// the alarm cannot be raised yet: that for labels without a reference, which is then 0.
func strength(kind string, level, reference, threshold float64) float64 {
	if !(threshold > 0) {
		return math.NaN()
	}
	if kind == stream.AlertLabelNoise || kind == stream.AlertSource {
		if reference == 0 {
			return math.NaN()
		}
		level = reference - level // it is raised by a fall
	}
	return level / threshold
}

// evidence draws the level of the alarms at each step of an incident, and now if it is open.
func evidence(i *Incident, now *facts) *chart.Chart {
	c := &chart.Chart{
		Title: "Evidence at each step",
		X:     chart.Axis{Label: "event"}, Y: chart.Axis{Label: "level; 1 raises the alarm"},
		Caption: "The alerts hold the level of the alarm that each step is about, and nothing between the steps. " +
			"Levels are in units of their thresholds.",
	}
	series := map[string]*chart.Series{}
	var order []string
	add := func(kind string, event uint64, y float64) {
		if math.IsNaN(y) || math.IsInf(y, 0) || math.Abs(y) > mostStrength {
			return
		}
		name := names[kind]
		s := series[name]
		if s == nil {
			s = &chart.Series{Name: name, Kind: chart.Points}
			series[name] = s
			order = append(order, name)
		}
		s.X, s.Y = append(s.X, float64(event)), append(s.Y, y)
	}
	first, last := i.First().Event, i.Last().Event
	for k := range i.Alerts {
		a := &i.Alerts[k]
		add(a.Kind, a.Event, strength(a.Kind, a.Level, a.Reference, a.Threshold))
	}
	if i.Open() && now != nil && now.Events > last {
		last = now.Events
		for _, a := range now.Alarms {
			if a.Body == i.Last().Body && a.Status.Known && a.Kind != stream.AlertSource {
				add(a.Kind, now.Events, strength(a.Kind, a.Status.Level, a.Status.Reference, a.Status.Threshold))
			}
		}
		c.Caption += fmt.Sprintf(" The last points, at event %d, are of the saved model.", now.Events)
	}
	if len(order) == 0 {
		return nil
	}
	for _, name := range order {
		c.Series = append(c.Series, *series[name])
	}
	zero := 0.0
	c.Y.Min = &zero // below it nothing speaks for a change
	end := max(last, first+1)
	c.Series = append(c.Series, chart.Series{Name: "threshold", Kind: chart.Line, Faint: true,
		X: []float64{float64(first), float64(end)}, Y: []float64{1, 1}})
	return c
}

// mostStrength bounds what is drawn: a threshold near zero says nothing.
const mostStrength = 1e4

// noisePast draws the levels of the label-noise alarm that the saved model keeps for the
// incident's kind of body; nil if it keeps none, or none that the incident is near.
func noisePast(i *Incident, now *facts) *chart.Chart {
	if now == nil {
		return nil
	}
	body := i.Last().Body
	var past *model.NoisePast
	for k := range now.Pasts {
		if now.Pasts[k].Body == body {
			past = &now.Pasts[k]
		}
	}
	if past == nil {
		return nil
	}
	level := chart.Series{Name: "level", Kind: chart.Line}
	for k, s := range past.Levels {
		back := uint64(len(past.Levels)-1-k) * past.Every
		level.X, level.Y = append(level.X, float64(past.Last)-float64(back)), append(level.Y, s)
	}
	from := level.X[0]
	counts := past.Events == now.Events // of the sub-model and of the model
	if !i.Open() && (!counts || float64(i.Last().Event) < from) {
		return nil
	}
	c := &chart.Chart{
		Title: "The label-noise alarm, as the saved model keeps it",
		X:     chart.Axis{Label: "event of " + bodies[body]}, Y: chart.Axis{Label: "ln SNR − ln N, nats"},
		Caption: "Falling means that more labels contradict the mail. While the alarm is raised, " +
			"the model keeps no levels. Once it has cleared, those from before are not drawn.",
	}
	end := float64(past.Last)
	for _, a := range now.Alarms {
		if a.Kind != stream.AlertLabelNoise || a.Body != body || !a.Status.Known {
			continue
		}
		end = max(end, float64(past.Events))
		c.Series = append(c.Series,
			chart.Series{Name: "now", Kind: chart.Points, X: []float64{float64(past.Events)}, Y: []float64{a.Status.Level}},
			chart.Series{Name: "reference", Kind: chart.Line, Faint: true, X: []float64{from, end},
				Y: []float64{a.Status.Reference, a.Status.Reference}},
			chart.Series{Name: "raises it", Kind: chart.Line, Faint: true, X: []float64{from, end},
				Y: []float64{a.Status.Reference - a.Status.Threshold, a.Status.Reference - a.Status.Threshold}})
	}
	c.Series = append([]chart.Series{level}, c.Series...)
	steps := chart.Series{Name: "steps of the incident", Kind: chart.Points}
	for k := range i.Alerts {
		a := &i.Alerts[k]
		if at := float64(a.Event); counts && a.Kind == stream.AlertLabelNoise && at >= from &&
			math.Abs(a.Level) < mostStrength {
			steps.X, steps.Y = append(steps.X, at), append(steps.Y, a.Level)
		}
	}
	if len(steps.X) > 0 {
		c.Series = append(c.Series, steps)
	}
	return c
}

// bodies are the kinds of bodies, for people.
var bodies = map[string]string{stream.AlertText: "mail and text", stream.AlertVector: "vectors"}
