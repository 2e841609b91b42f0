package model

import (
	"hamlet/algos/drift"
	"hamlet/algos/internal/task"
	"hamlet/algos/stack"
)

// The values of Alert.Body, Alarm.Body and Rebuild.Body: the kinds of bodies.
const (
	BodyText   = "text"   // mail and text
	BodyVector = "vector" // vectors of named numbers
)

// An Alert is a change of state of one alarm: it was raised or cleared by an
// event. It is a function of the log, so that a model restored from an earlier
// checkpoint reports it again, equal in every field.
type Alert struct {
	Kind      string          // drift.KindLabelNoise, drift.KindCovariate, drift.KindConcept
	Body      string          // BodyText, BodyVector
	Raised    bool            // or cleared
	Event     uint64          // the model's event count when it happened
	Status    drift.Status    // each alarm of package drift says what its numbers are; Since counts events of this kind of body
	Report    *drift.Report   // label noise only: what is known about the labels; else nil
	Diagnosis drift.Diagnosis // what all alarms of this kind of body mean, after the change
}

// A Rebuild is an ensemble of one sub-model that was rebuilt, or could not be. Its event
// counts are that sub-model's.
type Rebuild struct {
	Body string
	stack.Rebuild
}

// A Runner computes what is slow, rebuilds and SNRs, in the background. A model without a
// Runner does the work where it would wait for it.
type Runner = task.Runner
