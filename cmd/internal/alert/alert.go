// Package alert brings alerts to people: as a line in a log ([Log]), as a sentence
// ([Sentence]), and over every configured channel ([Channels]). Learner, up and
// eval all use it, so that an alert reads the same everywhere.
package alert

import (
	"fmt"
	"log/slog"
	"strings"

	"hamlet/stream"
)

// Log writes a as one line, at level Warn if the alarm was raised and Info if it
// was cleared. It names up to three suspects by their ids and up to three sources,
// both of which are opaque. The alarm's level is alarm_level, because in JSON the
// line's own level has the key level.
func Log(log *slog.Logger, a *stream.Alert) {
	attributes := []any{
		"kind", a.Kind, "body", a.Body, "event", a.Event, "alarm_level", a.Level, "reference", a.Reference,
		"threshold", a.Threshold, "reading", a.Reading,
	}
	if l := a.Labels; l != nil {
		attributes = append(attributes, "flip_rate", l.Epsilon, "ham_called_spam", l.FlipRates.HamCalledSpam,
			"spam_called_ham", l.FlipRates.SpamCalledHam, "sources", strings.Join(sources(l), ","), "suspects", strings.Join(suspects(l), ","))
	}
	if a.State == stream.AlertRaised {
		log.Warn("alarm raised", attributes...)
	} else {
		log.Info("alarm cleared", attributes...)
	}
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
	s := fmt.Sprintf("event %d: %s %s (%s: level %.3g, reference %.3g, threshold %.3g): %s",
		a.Event, a.Kind, a.State, a.Body, a.Level, a.Reference, a.Threshold, a.Reading)
	l := a.Labels
	if l == nil || a.State != stream.AlertRaised {
		return s
	}
	s += fmt.Sprintf("; of ham %.1f %% is called spam, of spam %.1f %% ham", 100*l.FlipRates.HamCalledSpam, 100*l.FlipRates.SpamCalledHam)
	if len(l.Sources) > 0 {
		worst := l.Sources[0]
		s += fmt.Sprintf("; worst source %s: %.1f %% of %d (%.1f to %.1f)",
			worst.Source, 100*worst.FlipRate, worst.Events, 100*worst.Low, 100*worst.High)
	}
	return s
}
