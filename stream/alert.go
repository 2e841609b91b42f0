package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The kinds of an alert.
const (
	AlertLabelNoise = "label-noise" // labels went bad
	AlertCovariate  = "covariate"   // mail unlike anything learnt
	AlertConcept    = "concept"     // the same mail means something else now
	AlertSource     = "source"      // the labels of one source, or of new names that take turns, are wrong
	AlertUnknown    = "unknown"     // something changed, and it is not known yet what
)

// The states of an alert.
const (
	AlertSuspected = "suspected" // its kind is AlertUnknown
	AlertRaised    = "raised"    // it has a name: its kind is any other
	AlertCleared   = "cleared"   // what was raised is over
	AlertWithdrawn = "withdrawn" // what was suspected came to nothing; its kind is AlertUnknown
)

// The bodies of an alert: which sub-model it is about.
const (
	AlertText   = "text"   // mail and text
	AlertVector = "vector" // vectors of named numbers
)

// MostSuspects is how many events an alert names.
const MostSuspects = 20

// The words of an alert, in the order of their constants.
var (
	AlertKinds  = []string{AlertLabelNoise, AlertCovariate, AlertConcept, AlertSource, AlertUnknown}
	alertStates = []string{AlertSuspected, AlertRaised, AlertCleared, AlertWithdrawn}
	alertBodies = []string{AlertText, AlertVector}
)

// ErrAlerts says that a publisher would fail again. The error's text says why and what
// to do, and a learner ends with it. After any other error, publish again.
var ErrAlerts = errors.New("no alert can be published")

// An Alert says that an alarm of a partition's model was raised or cleared:
//
//	{"kind": "label-noise", "state": "raised", "event": 6250,
//	 "level": -4.1, "reference": -3.8, "threshold": 0.2,
//	 "epsilon": 0.03, "snr": 8.3, "noise_grade": 0.4,
//	 "flip_rates": {"ham_called_spam": 0.19, "spam_called_ham": 0.01},
//	 "suspects": [{"id": "a1", "source": "abuse-desk", "phi": 0.02}],
//	 "sources": [{"source": "abuse-desk", "events": 130, "flip_rate": 0.2, "lo": 0.15, "hi": 0.26}],
//	 "body": "text", "reading": "labels went bad",
//	 "model": "default", "partition": 0, "time": "2026-11-20T10:00:00Z"}
//
// Only label noise has the fields from epsilon to sources, and only an alert that was
// published has model, partition and time.
type Alert struct {
	Kind      string  // AlertLabelNoise, AlertCovariate, AlertConcept
	State     string  // AlertRaised, AlertCleared
	Event     uint64  // the model's event count when it happened, from 1
	Level     float64 // label noise: ln SNR − ln N
	Reference float64 // label noise: the running median of Level
	Threshold float64 // label noise: the drop below Reference that applied
	Labels    *LabelReport
	Body      string // AlertText, AlertVector
	Reading   string // what the alarms of this body mean together, in words

	Model     string // empty: it was not published
	Partition int
	Time      time.Time // of its publication; a copy after a restart has a later one
}

// A LabelReport is what is known about the labels when the alarm for label noise
// changes.
type LabelReport struct {
	Epsilon    float64      `json:"epsilon"`     // the flip rate of the labels, 0 to 1
	SNR        float64      `json:"snr"`         // η₁/η₂
	NoiseGrade float64      `json:"noise_grade"` // ln ω₂/ω₁
	FlipRates  FlipRates    `json:"flip_rates"`
	Suspects   []Suspect    `json:"suspects"` // the events whose labels are trusted least, at most MostSuspects
	Sources    []SourceRate `json:"sources"`  // the worst first
}

// FlipRates are the rates of false labels by the true label, 0 to 1.
type FlipRates struct {
	HamCalledSpam float64 `json:"ham_called_spam"`
	SpamCalledHam float64 `json:"spam_called_ham"`
}

// A Suspect is an event whose label is probably false.
type Suspect struct {
	ID     string  `json:"id"`
	Source string  `json:"source"`
	Phi    float64 `json:"phi"` // the probability that the label is true
}

// A SourceRate is the flip rate of one source's labels, with its interval.
type SourceRate struct {
	Source   string  `json:"source"`
	Events   int     `json:"events"`
	FlipRate float64 `json:"flip_rate"`
	Low      float64 `json:"lo"`
	High     float64 `json:"hi"`
}

// MessageID identifies the alert. Copies that a restarted learner publishes have the
// same ID. It lacks the body, because one event changes the alarms of one body only.
func (a *Alert) MessageID() string {
	return fmt.Sprintf("%s.%d.%s.%d", a.Model, a.Partition, a.Kind, a.Event)
}

// jsonAlert has an alert's fields in wire order. Nil parts are left out.
type jsonAlert struct {
	Kind      string  `json:"kind"`
	State     string  `json:"state"`
	Event     uint64  `json:"event"`
	Level     float64 `json:"level"`
	Reference float64 `json:"reference"`
	Threshold float64 `json:"threshold"`
	*LabelReport
	Body    string `json:"body"`
	Reading string `json:"reading"`
	*jsonPublication
}

type jsonPublication struct {
	Model     string    `json:"model"`
	Partition int       `json:"partition"`
	Time      time.Time `json:"time"`
}

var (
	changeFields  = []string{"kind", "state", "event", "level", "reference", "threshold", "body", "reading"}
	labelFields   = []string{"epsilon", "snr", "noise_grade", "flip_rates", "suspects", "sources"}
	publishFields = []string{"model", "partition", "time"}
	alertFields   = slices.Concat(changeFields, labelFields, publishFields)

	flipRateFields = []string{"ham_called_spam", "spam_called_ham"}
	suspectFields  = []string{"id", "source", "phi"}
	sourceFields   = []string{"source", "events", "flip_rate", "lo", "hi"}
)

// UnmarshalJSON is strict, as [DecodeAlert] is.
func (r *FlipRates) UnmarshalJSON(b []byte) error {
	type plain FlipRates
	return unmarshalPart(b, "flip_rates", flipRateFields, (*plain)(r))
}

// UnmarshalJSON is strict, as [DecodeAlert] is.
func (s *Suspect) UnmarshalJSON(b []byte) error {
	type plain Suspect
	return unmarshalPart(b, "suspects", suspectFields, (*plain)(s))
}

// UnmarshalJSON is strict, as [DecodeAlert] is.
func (s *SourceRate) UnmarshalJSON(b []byte) error {
	type plain SourceRate
	return unmarshalPart(b, "sources", sourceFields, (*plain)(s))
}

// unmarshalPart reads an object inside an alert. It must have each field exactly once.
func unmarshalPart[T any](b []byte, what string, fields []string, v *T) error {
	names, err := checkFields(b, "object", fields)
	if err == nil {
		if lacks := missing(names, fields); len(lacks) > 0 {
			err = fmt.Errorf("missing: %s", strings.Join(lacks, ", "))
		} else if err = json.Unmarshal(b, v); err != nil {
			err = plainJSONError(err)
		}
	}
	if err != nil {
		return &partError{fmt.Errorf("%s: %w", what, err)}
	}
	return nil
}

// missing returns the fields that are not in names.
func missing(names, fields []string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return slices.Contains(names, f) })
}

// AppendJSON appends a to dst on one line, without a newline. It is an error if
// [Alert.Validate] refuses a.
func (a *Alert) AppendJSON(dst []byte) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return dst, fmt.Errorf("alert %s in JSON: %w", clip(a.MessageID()), err)
	}
	j := jsonAlert{
		Kind: a.Kind, State: a.State, Event: a.Event, Level: a.Level, Reference: a.Reference, Threshold: a.Threshold,
		Body: a.Body, Reading: a.Reading,
	}
	if a.Labels != nil {
		l := *a.Labels
		l.Suspects = append([]Suspect{}, l.Suspects...) // [] rather than null
		l.Sources = append([]SourceRate{}, l.Sources...)
		j.LabelReport = &l
	}
	if a.Model != "" {
		j.jsonPublication = &jsonPublication{a.Model, a.Partition, a.Time.UTC()}
	}
	b, err := json.Marshal(j)
	if err != nil {
		return dst, fmt.Errorf("alert %s in JSON: %w", clip(a.MessageID()), err)
	}
	return append(dst, b...), nil
}

// DecodeAlert reads one alert. It is as strict as [DecodeJSON], and a field that
// is missing or makes no sense is an error that names it.
func DecodeAlert(b []byte) (Alert, error) {
	a, err := decodeAlert(b)
	if err != nil {
		return Alert{}, fmt.Errorf("alert in JSON: %w", err)
	}
	return a, nil
}

func decodeAlert(b []byte) (Alert, error) {
	names, err := checkFields(b, "alert", alertFields)
	if err != nil {
		return Alert{}, err
	}
	lacks := missing(names, changeFields)
	for _, group := range [][]string{labelFields, publishFields} { // all of them or none
		if l := missing(names, group); len(l) < len(group) {
			lacks = append(lacks, l...)
		}
	}
	if len(lacks) > 0 {
		return Alert{}, fmt.Errorf("missing: %s", strings.Join(lacks, ", "))
	}
	var j jsonAlert
	if slices.Contains(names, labelFields[0]) {
		j.LabelReport = &LabelReport{}
	}
	if slices.Contains(names, publishFields[0]) {
		j.jsonPublication = &jsonPublication{}
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return Alert{}, plainJSONError(err)
	}
	a := Alert{
		Kind: j.Kind, State: j.State, Event: j.Event, Level: j.Level, Reference: j.Reference, Threshold: j.Threshold,
		Labels: j.LabelReport, Body: j.Body, Reading: j.Reading,
	}
	if p := j.jsonPublication; p != nil {
		if p.Model == "" {
			return Alert{}, errors.New("model: empty")
		}
		a.Model, a.Partition, a.Time = p.Model, p.Partition, p.Time.UTC()
	}
	return a, a.Validate()
}

// Validate returns all reasons why a cannot be published, joined: an unknown word, a
// number that is not finite or not from 0 to 1, a label report that is missing or out
// of place.
func (a *Alert) Validate() error {
	var errs []error
	oneOf := func(field, value string, of []string) {
		if !slices.Contains(of, value) {
			errs = append(errs, fmt.Errorf("%s: %s is not one of %s", field, word(value), strings.Join(of, ", ")))
		}
	}
	oneOf("kind", a.Kind, AlertKinds)
	oneOf("state", a.State, alertStates)
	oneOf("body", a.Body, alertBodies)
	if unnamed := a.State == AlertSuspected || a.State == AlertWithdrawn; unnamed != (a.Kind == AlertUnknown) {
		errs = append(errs, fmt.Errorf("state: %s of kind %s; suspected and withdrawn are of kind %s, and no other", word(a.State), word(a.Kind), AlertUnknown))
	}
	if a.Event == 0 {
		errs = append(errs, errors.New("event: 0; events are counted from 1"))
	}
	finite := func(field string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			errs = append(errs, fmt.Errorf("%s: %v, not a finite number", field, v))
		}
	}
	finite("level", a.Level)
	finite("reference", a.Reference)
	finite("threshold", a.Threshold)
	if (a.Labels != nil) != (a.Kind == AlertLabelNoise) {
		errs = append(errs, fmt.Errorf("%s: an alert of kind %s has them, and no other", strings.Join(labelFields, ", "), AlertLabelNoise))
	}
	if l := a.Labels; l != nil {
		finite("snr", l.SNR)
		finite("noise_grade", l.NoiseGrade)
		errs = append(errs, l.validate()...)
	}
	if a.Partition < 0 {
		errs = append(errs, fmt.Errorf("partition: %d is below 0", a.Partition))
	}
	return errors.Join(append(errs, checkTime(a.Time))...)
}

func (l *LabelReport) validate() (errs []error) {
	probability := func(field string, v float64) {
		if !(v >= 0 && v <= 1) {
			errs = append(errs, fmt.Errorf("%s: %v is not from 0 to 1", field, v))
		}
	}
	probability("epsilon", l.Epsilon)
	probability("ham_called_spam", l.FlipRates.HamCalledSpam)
	probability("spam_called_ham", l.FlipRates.SpamCalledHam)
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
