// Package alert brings alerts to people: as a line in a log ([Log]) and as a sentence
// ([Sentence]). Learner, up and eval all use it, so that an alert reads the same everywhere.
package alert

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"hamlet/stream"
)

// messages are a log line's words for each state.
var messages = map[string]string{
	stream.AlertSuspected: "change suspected",
	stream.AlertRaised:    "alarm raised",
	stream.AlertCleared:   "alarm cleared",
	stream.AlertWithdrawn: "suspicion withdrawn",
}

// Log writes a as one line, at level Warn if something is suspected or raised, and Info if
// it is over. It names up to three suspects by their ids and up to three sources, both of
// which are opaque. The alarm's level is alarm_level, because in JSON the line's own level
// has the key level.
func Log(log *slog.Logger, a *stream.Alert) {
	attributes := []any{
		"kind", a.Kind, "body", a.Body, "event", a.Event, "incident", a.IncidentID(), "transition", a.Transition,
		"alarm_level", a.Level, "reference", a.Reference, "threshold", a.Threshold, "reading", a.Reading,
	}
	if a.Accused != "" {
		attributes = append(attributes, "accused", a.Accused)
	}
	if l := a.Labels; l != nil {
		attributes = append(attributes, "flip_rate", l.Epsilon)
		for _, class := range []struct {
			name string
			rate stream.FlipRate
		}{{"ham_called_spam", l.HamCalledSpam}, {"spam_called_ham", l.SpamCalledHam}} {
			if class.rate.Known {
				attributes = append(attributes, class.name, class.rate.Rate)
			}
		}
		attributes = append(attributes, "sources", strings.Join(sources(l), ","), "suspects", strings.Join(suspects(l), ","))
	}
	level := slog.LevelInfo
	if a.State == stream.AlertSuspected || a.State == stream.AlertRaised {
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, messages[a.State], attributes...)
}

// most is how many suspects and how many sources a line names.
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

// Sentence returns a in words, without a line end.
func Sentence(a *stream.Alert) string {
	what := a.Kind + " " + a.State
	switch a.State {
	case stream.AlertSuspected:
		what = "a suspicion"
	case stream.AlertWithdrawn:
		what = "the suspicion is withdrawn"
	}
	if a.Accused != "" {
		what += " against " + a.Accused
	}
	s := fmt.Sprintf("event %d: %s (%s", a.Event, what, a.Body)
	if stream.NamesKind(a.State) {
		s += numbers(a)
	}
	if a.Transition > 1 {
		s += fmt.Sprintf("; open since event %d", a.Incident)
	}
	s += "): " + a.Reading
	l := a.Labels
	if l == nil || a.State != stream.AlertRaised {
		return s
	}
	if r := l.HamCalledSpam; r.Known {
		s += fmt.Sprintf("; of ham %s is called spam", percent(r.Rate, r.Low, r.High))
	}
	if r := l.SpamCalledHam; r.Known {
		s += fmt.Sprintf("; of spam %s is called ham", percent(r.Rate, r.Low, r.High))
	}
	if len(l.Sources) > 0 {
		worst := l.Sources[0]
		s += fmt.Sprintf("; worst source %s: of %d labels %s is wrong",
			worst.Source, worst.Events, percent(worst.FlipRate, worst.Low, worst.High))
	}
	return s
}

// numbers says how far an alarm is up. The alarm for labels can be named before it has a
// reference. Its reference is then 0, which is no level to compare with.
func numbers(a *stream.Alert) string {
	ofLabels := a.Kind == stream.AlertLabelNoise || a.Kind == stream.AlertSource
	if ofLabels && a.Reference == 0 {
		return ": no reference yet"
	}
	return fmt.Sprintf(": level %.3g, reference %.3g, threshold %.3g", a.Level, a.Reference, a.Threshold)
}

func percent(rate, low, high float64) string {
	if low <= 0 && high >= 1 { // the interval says nothing
		return fmt.Sprintf("%.1f %%", 100*rate)
	}
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*rate, 100*low, 100*high)
}
