// Package wire translates between the words of the wire (package stream) and
// those of a model (package model). The two do not import each other, so each has
// its own constants; here alone they are matched. A constant of either side that
// has no partner fails this package's test.
package wire

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/algos/trust"
	"hamlet/stream"
)

// Action returns what the model is asked to do. It panics for a value that no
// decoder returns.
func Action(a stream.Action) model.Action {
	switch a {
	case stream.Learn:
		return model.Learn
	case stream.Relearn:
		return model.Relearn
	case stream.Unlearn:
		return model.Unlearn
	case stream.Correct:
		return model.Correct
	case stream.Assume:
		return model.Assume
	}
	panic(fmt.Sprintf("convert: unknown action %v", a))
}

// Outcome returns the wire's word for what a withdrawal or a correction did.
func Outcome(o model.Outcome) string {
	switch o {
	case model.Withdrawn:
		return stream.OutcomeWithdrawn
	case model.Replaced:
		return stream.OutcomeReplaced
	case model.Outweighed:
		return stream.OutcomeOutweighed
	case model.Unchanged:
		return stream.OutcomeUnchanged
	case model.NotAllowed:
		return stream.OutcomeNotAllowed
	}
	panic(fmt.Sprintf("convert: unknown outcome %d", o))
}

// Role returns how a model shall count the labels of a source. It panics for a value that no
// decoder returns.
func Role(r stream.Role) trust.Role {
	switch r {
	case stream.Ordinary:
		return trust.Ordinary
	case stream.Anchor:
		return trust.Anchor
	case stream.Muted:
		return trust.Muted
	}
	panic(fmt.Sprintf("convert: unknown role %v", r))
}

// Label returns the label of a message that is spam or is not.
func Label(spam bool) stream.Label {
	if spam {
		return stream.Spam
	}
	return stream.Ham
}

// Kind returns the wire's word for the kind of an alarm.
func Kind(kind string) string {
	switch kind {
	case drift.KindLabelNoise:
		return stream.AlertLabelNoise
	case drift.KindCovariate:
		return stream.AlertCovariate
	case drift.KindConcept:
		return stream.AlertConcept
	case drift.KindSource:
		return stream.AlertSource
	case drift.KindUnknown:
		return stream.AlertUnknown
	}
	panic(fmt.Sprintf("convert: unknown kind of alarm %q", kind))
}

// Body returns the wire's word for the sub-model that an alarm watches.
func Body(body string) string {
	switch body {
	case model.BodyText:
		return stream.AlertText
	case model.BodyVector:
		return stream.AlertVector
	}
	panic(fmt.Sprintf("convert: unknown body %q", body))
}

// State returns the wire's word for what an incident became.
func State(s drift.State) string {
	switch s {
	case drift.Suspected:
		return stream.AlertSuspected
	case drift.Raised:
		return stream.AlertRaised
	case drift.Cleared:
		return stream.AlertCleared
	case drift.Withdrawn:
		return stream.AlertWithdrawn
	}
	panic(fmt.Sprintf("convert: unknown state %d of an incident", s))
}

// Alert returns a as it goes on the wire, but without model, partition and time.
// The result is always valid: a number that JSON cannot hold becomes the nearest
// one that it can, and NaN becomes 0. No alarm of package drift returns either.
func Alert(a *model.Alert) stream.Alert {
	out := stream.Alert{
		Incident: a.Incident, Transition: a.Transition, Kind: Kind(a.Kind), State: State(a.State),
		Accused: accused(a.Kind, a.Source), Event: a.Event,
		Level: finite(a.Status.Level), Reference: finite(a.Status.Reference), Threshold: finite(a.Status.Threshold),
		Body: Body(a.Body), Reading: a.Diagnosis.String(),
	}
	if a.Report == nil {
		return out
	}
	r := a.Report
	out.Labels = &stream.LabelReport{
		Epsilon: probability(r.FlipRate), SNR: finite(r.SNR), NoiseGrade: finite(r.Grade),
		HamCalledSpam: flipRate(r.HamCalledSpam), SpamCalledHam: flipRate(r.SpamCalledHam),
	}
	if !r.HamCalledSpam.Known {
		out.Reading += "; too little recent ham to say how much of it is called spam"
	}
	if !r.SpamCalledHam.Known {
		out.Reading += "; too little recent spam to say how much of it is called ham"
	}
	for _, s := range r.Suspects {
		out.Labels.Suspects = append(out.Labels.Suspects, stream.Suspect{ID: s.ID, Source: s.Source, Phi: probability(s.Phi)})
	}
	for _, s := range r.Sources {
		low := probability(s.Low)
		out.Labels.Sources = append(out.Labels.Sources, stream.SourceRate{
			Source: s.Source, Events: s.Events, FlipRate: probability(s.Rate), Low: low, High: max(low, probability(s.High)),
		})
	}
	return out
}

// Incident returns an open incident of a model as it goes on the wire.
func Incident(name string, i *model.Incident) stream.OpenIncident {
	a := stream.Alert{Model: name, Incident: i.Incident}
	state := drift.Raised
	if i.Kind == drift.KindUnknown {
		state = drift.Suspected
	}
	return stream.OpenIncident{
		Incident: a.IncidentID(), Transition: i.Transition, Kind: Kind(i.Kind), State: State(state),
		Accused: accused(i.Kind, i.Source), Body: Body(i.Body),
	}
}

// accused returns the name on the wire of a source that an incident of a kind accuses.
func accused(kind, source string) string {
	source = strings.ToValidUTF8(source, "?") // a long name was cut
	if kind == drift.KindSource {
		return cmp.Or(source, stream.DefaultName)
	}
	return source
}

// flipRate returns the rate and its interval, in order; what is unknown has no rate.
func flipRate(f drift.FlipRate) stream.FlipRate {
	low := probability(f.Low)
	out := stream.FlipRate{Known: f.Known, Low: low, High: max(low, probability(f.High))}
	if f.Known {
		out.Rate = probability(f.Rate)
	}
	return out
}

func finite(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, v))
}

func probability(v float64) float64 { return max(0, min(1, finite(v))) }

// Reasons returns the contributions of inputs as the wire carries them.
func Reasons(all []model.Contribution) (reasons []stream.Reason) {
	for _, c := range all {
		reasons = append(reasons, stream.Reason(c))
	}
	return reasons
}

// Words returns the first words, at most so many, as the wire carries them.
func Words(all []model.Word, most int) (words []stream.Word) {
	for _, w := range all[:min(len(all), most)] {
		words = append(words, stream.Word{Text: ShownWord(w.Text), Where: ShownWord(w.Where), Contribution: w.Contribution,
			Shared: w.Shared})
	}
	return words
}

// ShownWord returns s as valid UTF-8 that a terminal may print, within stream.MaxWordLength
// bytes. A mail's bytes that are not UTF-8, and characters that control a terminal or the
// direction of writing, become U+FFFD.
func ShownWord(s string) string {
	const ellipsis = "…"
	s = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, s)
	if len(s) <= stream.MaxWordLength {
		return s
	}
	end := stream.MaxWordLength - len(ellipsis)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
