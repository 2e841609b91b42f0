// Package drift holds the three alarms that say what is wrong with a stream of
// labelled events: LabelNoise, Covariate and PageHinkley. They are pure state
// machines: their clock is the event count, and after the same events they hold
// the same bytes.
package drift
