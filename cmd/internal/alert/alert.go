// Package alert turns a change of a model's alarms into what goes on the wire
// and before people: learner, up and eval all go through it, so that an alert
// reads the same wherever it shows.
package alert

import (
	"fmt"
	"log/slog"
	"math"
	"strings"

	"hamlet/algos/model"
	"hamlet/stream"
)

// Of returns the alert that a says, unpublished: without model, partition and
// time. An alert must go out, so a number that JSON cannot hold becomes the
// nearest that it can, and what is no number 0; no alarm of package drift makes
// such.
func Of(a *model.Alert) stream.Alert {
	out := stream.Alert{
		Kind: a.Kind, State: State(a), Event: a.Event,
		Level: finite(a.Status.Level), Reference: finite(a.Status.Reference), Threshold: finite(a.Status.Threshold),
		Body: a.Body, Reading: a.Diagnosis.String(),
	}
	r := a.Report
	if r == nil {
		return out
	}
	labels := &stream.LabelReport{
		Epsilon: share(r.FlipRate), SNR: finite(r.SNR), NoiseGrade: finite(r.Grade),
		HamCalledSpam: share(r.HamCalledSpam), SpamCalledHam: share(r.SpamCalledHam),
	}
	for _, s := range r.Suspects {
		labels.Suspects = append(labels.Suspects, stream.Suspect{ID: s.ID, Source: s.Source, Phi: share(s.Phi)})
	}
	for _, s := range r.Sources {
		low := share(s.Low)
		labels.Sources = append(labels.Sources, stream.SourceRate{
			Source: s.Source, Events: s.Events, FlipRate: share(s.Rate), Low: low, High: max(low, share(s.High)),
		})
	}
	out.Labels = labels
	return out
}

// State returns the word for a's change.
func State(a *model.Alert) string {
	if a.Raised {
		return stream.AlertRaised
	}
	return stream.AlertCleared
}

func finite(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, v))
}

func share(v float64) float64 { return max(0, min(1, finite(v))) }

// Log writes a as one line: a warning when it was raised, for information when
// it was cleared. It names events by their ids and sources by their names, which
// are opaque, and up to three of each. The alarm's level is alarm_level: level is
// the line's own, and what reads JSON takes one of two.
func Log(log *slog.Logger, a *stream.Alert) {
	attributes := []any{
		"kind", a.Kind, "body", a.Body, "event", a.Event, "alarm_level", a.Level, "reference", a.Reference,
		"threshold", a.Threshold, "reading", a.Reading,
	}
	if l := a.Labels; l != nil {
		attributes = append(attributes, "flip_rate", l.Epsilon, "ham_called_spam", l.HamCalledSpam,
			"spam_called_ham", l.SpamCalledHam, "sources", strings.Join(sources(l), ","), "suspects", strings.Join(suspects(l), ","))
	}
	if a.State == stream.AlertRaised {
		log.Warn("alarm raised", attributes...)
	} else {
		log.Info("alarm cleared", attributes...)
	}
}

// most is how many suspects and sources a line names.
const most = 3

func sources(l *stream.LabelReport) (names []string) {
	for _, s := range l.Sources[:min(most, len(l.Sources))] {
		names = append(names, fmt.Sprintf("%s:%.3f", s.Source, s.FlipRate))
	}
	return names
}

func suspects(l *stream.LabelReport) (ids []string) {
	for _, s := range l.Suspects[:min(most, len(l.Suspects))] {
		ids = append(ids, s.ID)
	}
	return ids
}

// Sentence says a to people, on one line without its end.
func Sentence(a *stream.Alert) string {
	s := fmt.Sprintf("event %d: %s %s (%s: level %.3g, reference %.3g, threshold %.3g): %s",
		a.Event, a.Kind, a.State, a.Body, a.Level, a.Reference, a.Threshold, a.Reading)
	l := a.Labels
	if l == nil || a.State != stream.AlertRaised {
		return s
	}
	s += fmt.Sprintf("; of ham %.1f %% is called spam, of spam %.1f %% ham", 100*l.HamCalledSpam, 100*l.SpamCalledHam)
	if len(l.Sources) > 0 {
		worst := l.Sources[0]
		s += fmt.Sprintf("; worst source %s: %.1f %% of %d (%.1f to %.1f)",
			worst.Source, 100*worst.FlipRate, worst.Events, 100*worst.Low, 100*worst.High)
	}
	return s
}
