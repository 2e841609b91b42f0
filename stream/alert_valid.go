package stream

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Validate returns all reasons why a cannot be published, joined: an unknown word, a
// transition that does not fit, a number that is not finite or not from 0 to 1, a label
// report that is missing or out of place.
func (a *Alert) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	oneOf := func(field, value string, of []string) {
		if !slices.Contains(of, value) {
			refuse("%s: %s is not one of %s", field, word(value), strings.Join(of, ", "))
		}
	}
	oneOf("kind", a.Kind, AlertKinds)
	oneOf("state", a.State, AlertStates)
	oneOf("body", a.Body, alertBodies)
	if slices.Contains(AlertStates, a.State) && NamesKind(a.State) == (a.Kind == AlertUnknown) {
		refuse("state: %s of kind %s; %s and %s are of kind %s, and no other", word(a.State), word(a.Kind),
			AlertSuspected, AlertWithdrawn, AlertUnknown)
	}
	if a.Accused == "" && a.Kind == AlertSource || a.Accused != "" && a.Kind != AlertSource && a.Kind != AlertLabelNoise {
		refuse("accused: an alert of kind %s names a source, one of kind %s may, and no other", AlertSource, AlertLabelNoise)
	}
	if a.Event == 0 {
		refuse("event: 0; events are counted from 1")
	}
	errs = append(errs, a.validateIncident())
	finite := func(field string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			refuse("%s: %v, not a finite number", field, v)
		}
	}
	finite("level", a.Level)
	finite("reference", a.Reference)
	finite("threshold", a.Threshold)
	if a.Labels == nil && a.Kind == AlertLabelNoise ||
		a.Labels != nil && a.Kind != AlertLabelNoise && a.Kind != AlertSource {
		refuse("%s: an alert of kind %s has them, one of kind %s may, and no other", strings.Join(labelFields, ", "),
			AlertLabelNoise, AlertSource)
	}
	if l := a.Labels; l != nil {
		finite("snr", l.SNR)
		finite("noise_grade", l.NoiseGrade)
		errs = append(errs, l.validate()...)
	}
	if a.Partition < 0 || a.Partition > 0 && a.Model == "" {
		refuse("partition: %d of model %s", a.Partition, word(a.Model))
	}
	return errors.Join(append(errs, checkTime(a.Time))...)
}

// validateIncident refuses a transition that no incident makes. Programs without incidents
// named three kinds and suspected nothing.
func (a *Alert) validateIncident() error {
	switch {
	case a.Incident == 0 && a.Transition == 0 && a.Kind != AlertSource && a.Kind != AlertUnknown:
		return nil
	case a.Incident == 0 || a.Incident > a.Event:
		return fmt.Errorf("incident: opened at event %d, changed at event %d", a.Incident, a.Event)
	case a.Transition < 1:
		return fmt.Errorf("transition: %d; they are counted from 1", a.Transition)
	case a.State == AlertSuspected && a.Transition > 1:
		return fmt.Errorf("transition: %d is %s; only the first can be", a.Transition, AlertSuspected)
	case (a.State == AlertCleared || a.State == AlertWithdrawn) && a.Transition == 1:
		return fmt.Errorf("transition: 1 is %s; only a later one can be", a.State)
	}
	return nil
}

func (l *LabelReport) validate() (errs []error) {
	probability := func(field string, v float64) {
		if !(v >= 0 && v <= 1) {
			errs = append(errs, fmt.Errorf("%s: %v is not from 0 to 1", field, v))
		}
	}
	probability("epsilon", l.Epsilon)
	for _, c := range []struct {
		field string
		rate  FlipRate
	}{{flipRateFields[0], l.HamCalledSpam}, {flipRateFields[1], l.SpamCalledHam}} {
		probability(c.field, c.rate.Rate)
		probability(c.field+"[0]", c.rate.Low)
		probability(c.field+"[1]", c.rate.High)
		if c.rate.Low > c.rate.High || !c.rate.Known && c.rate.Rate != 0 {
			errs = append(errs, fmt.Errorf("%s: %v from %v to %v, known: %v",
				c.field, c.rate.Rate, c.rate.Low, c.rate.High, c.rate.Known))
		}
	}
	if len(l.Suspects) > MostSuspects {
		errs = append(errs, fmt.Errorf("suspects: %d, more than %d", len(l.Suspects), MostSuspects))
	}
	for i := range l.Suspects {
		probability(fmt.Sprintf("suspects[%d].phi", i), l.Suspects[i].Phi)
	}
	for i := range l.Sources {
		s, field := &l.Sources[i], fmt.Sprintf("sources[%d]", i)
		probability(field+".flip_rate", s.FlipRate)
		probability(field+".lo", s.Low)
		probability(field+".hi", s.High)
		if s.Events < 0 || s.Low > s.High {
			errs = append(errs, fmt.Errorf("%s: %d events, from %v to %v", field, s.Events, s.Low, s.High))
		}
	}
	return errs
}
