package model

import (
	"slices"

	"hamlet/algos/drift"
	"hamlet/algos/internal/task"
	"hamlet/algos/stack"
)

// The values of Alert.Body, Alarm.Body and Rebuild.Body: the kinds of bodies.
const (
	BodyText   = "text"   // mail and text
	BodyVector = "vector" // vectors of named numbers
)

// An Alert is a transition of an incident, made by an event. It depends only on the log: a
// model restored from an earlier checkpoint reports the same Alert again.
type Alert struct {
	Kind       string // drift.KindLabelNoise and the others
	Body       string // BodyText, BodyVector
	State      drift.State
	Event      uint64          // the model's event count then
	Incident   uint64          // the model's event count when the incident was opened: it identifies the incident
	Transition int             // of the incident, from 1
	Source     string          // who is accused, if Kind is drift.KindSource
	Status     drift.Status    // see the alarms of package drift; Since counts events of this kind of body
	Report     *drift.Report   // statistics of the labels; nil unless Kind is label noise
	Diagnosis  drift.Diagnosis // what all alarms of this kind of body mean now
}

// An Incident is one that is open in a sub-model.
type Incident struct {
	Body string
	drift.OpenIncident
}

// Incidents returns the open incidents of all sub-models, text first.
func (m *Model) Incidents() (all []Incident) {
	for k, s := range m.submodels {
		if s == nil || s.monitor == nil {
			continue
		}
		for _, i := range s.monitor.Open() {
			all = append(all, Incident{bodies[k], i})
		}
	}
	return all
}

// A NoisePast is the recent past of a sub-model's label-noise alarm.
type NoisePast struct {
	Body   string
	Events uint64    // that the sub-model has learnt
	Levels []float64 // the oldest first, in nats
	Last   uint64    // the sub-model's event count at the last level; each other is Every before
	Every  uint64
}

// NoisePasts returns the past levels of the label-noise alarms, text first: see
// [drift.Monitor.NoisePast].
func (m *Model) NoisePasts() (all []NoisePast) {
	for k, s := range m.submodels {
		if s == nil || s.monitor == nil {
			continue
		}
		if levels, last := s.monitor.NoisePast(); len(levels) > 0 {
			all = append(all, NoisePast{bodies[k], s.events, slices.Clone(levels), last, drift.Rhythm})
		}
	}
	return all
}

// A Rebuild reports that one sub-model's ensemble was rebuilt or could not be. Its event
// counts are the sub-model's.
type Rebuild struct {
	Body string
	stack.Rebuild
}

// A Runner computes rebuilds and SNRs in the background. Without a Runner the model
// computes them itself when it needs the result.
type Runner = task.Runner
