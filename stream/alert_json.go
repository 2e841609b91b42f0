package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// jsonAlert has an alert's fields in wire order. Nil parts and empty words are left out.
type jsonAlert struct {
	Incident   string  `json:"incident,omitempty"`
	Transition int     `json:"transition,omitempty"`
	Kind       string  `json:"kind"`
	State      string  `json:"state"`
	Accused    string  `json:"accused,omitempty"`
	Event      uint64  `json:"event"`
	Level      float64 `json:"level"`
	Reference  float64 `json:"reference"`
	Threshold  float64 `json:"threshold"`
	*jsonLabels
	Body    string `json:"body"`
	Reading string `json:"reading"`
	*jsonPublication
}

type jsonLabels struct {
	Epsilon    float64        `json:"epsilon"`
	SNR        float64        `json:"snr"`
	NoiseGrade float64        `json:"noise_grade"`
	FlipRates  jsonRates      `json:"flip_rates"`
	Intervals  *jsonIntervals `json:"flip_rate_intervals,omitempty"`
	Suspects   []Suspect      `json:"suspects"`
	Sources    []SourceRate   `json:"sources"`
}

// jsonRates are the rates of both classes; nil is null: unknown.
type jsonRates struct {
	HamCalledSpam *float64 `json:"ham_called_spam"`
	SpamCalledHam *float64 `json:"spam_called_ham"`
}

type jsonIntervals struct {
	HamCalledSpam jsonInterval `json:"ham_called_spam"`
	SpamCalledHam jsonInterval `json:"spam_called_ham"`
}

// jsonInterval is an array of two numbers.
type jsonInterval [2]float64

type jsonPublication struct {
	Model     string    `json:"model"`
	Partition int       `json:"partition"`
	Time      time.Time `json:"time"`
}

var (
	incidentFields = []string{"incident", "transition"}
	changeFields   = []string{"kind", "state", "event", "level", "reference", "threshold", "body", "reading"}
	labelFields    = []string{"epsilon", "snr", "noise_grade", "flip_rates", "suspects", "sources"}
	publishFields  = []string{"model", "partition", "time"}
	alertFields    = slices.Concat(incidentFields, changeFields, labelFields, publishFields,
		[]string{"accused", "flip_rate_intervals"})

	flipRateFields = []string{"ham_called_spam", "spam_called_ham"}
	suspectFields  = []string{"id", "source", "phi"}
	sourceFields   = []string{"source", "events", "flip_rate", "lo", "hi"}
)

// UnmarshalJSON is strict, as [DecodeAlert] is. A rate may be null.
func (r *jsonRates) UnmarshalJSON(b []byte) error {
	type plain jsonRates
	return unmarshalObject(b, "flip_rates", flipRateFields, (*plain)(r), flipRateFields...)
}

// UnmarshalJSON is strict, as [DecodeAlert] is.
func (i *jsonIntervals) UnmarshalJSON(b []byte) error {
	type plain jsonIntervals
	return unmarshalObject(b, "flip_rate_intervals", flipRateFields, (*plain)(i))
}

// UnmarshalJSON is strict: encoding/json would take an array of any length.
func (i *jsonInterval) UnmarshalJSON(b []byte) error {
	var bounds []*float64
	if err := json.Unmarshal(b, &bounds); err != nil || len(bounds) != 2 || bounds[0] == nil || bounds[1] == nil {
		return &plainError{errors.New("an interval is two numbers")}
	}
	*i = jsonInterval{*bounds[0], *bounds[1]}
	return nil
}

// UnmarshalJSON is strict, as [DecodeAlert] is.
func (s *Suspect) UnmarshalJSON(b []byte) error {
	type plain Suspect
	return unmarshalObject(b, "suspects", suspectFields, (*plain)(s))
}

// UnmarshalJSON is strict, as [DecodeAlert] is.
func (s *SourceRate) UnmarshalJSON(b []byte) error {
	type plain SourceRate
	return unmarshalObject(b, "sources", sourceFields, (*plain)(s))
}

// unmarshalObject reads an object inside an alert. It must have each field exactly once.
// Only nullable fields may be null.
func unmarshalObject[T any](b []byte, what string, fields []string, v *T, nullable ...string) error {
	names, err := checkFields(b, "object", fields, nullable...)
	if err == nil {
		if lacks := missing(names, fields); len(lacks) > 0 {
			err = fmt.Errorf("missing: %s", strings.Join(lacks, ", "))
		} else if err = json.Unmarshal(b, v); err != nil {
			err = plainJSONError(err)
		}
	}
	if err != nil {
		return &plainError{fmt.Errorf("%s: %w", what, err)}
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
		return dst, fmt.Errorf("alert %s in JSON: %w", redact(a.MessageID()), err)
	}
	j := jsonAlert{
		Incident: a.IncidentID(), Transition: a.Transition, Kind: a.Kind, State: a.State, Accused: a.Accused, Event: a.Event,
		Level: a.Level, Reference: a.Reference, Threshold: a.Threshold, Body: a.Body, Reading: a.Reading,
	}
	if a.Labels != nil {
		j.jsonLabels = a.Labels.json()
	}
	if a.Model != "" {
		j.jsonPublication = &jsonPublication{a.Model, a.Partition, a.Time.UTC()}
	}
	b, err := json.Marshal(j)
	if err != nil {
		return dst, fmt.Errorf("alert %s in JSON: %w", redact(a.MessageID()), err)
	}
	return append(dst, b...), nil
}

func (l *LabelReport) json() *jsonLabels {
	rate := func(r *FlipRate) *float64 {
		if !r.Known {
			return nil
		}
		return &r.Rate
	}
	return &jsonLabels{
		Epsilon: l.Epsilon, SNR: l.SNR, NoiseGrade: l.NoiseGrade,
		FlipRates: jsonRates{rate(&l.HamCalledSpam), rate(&l.SpamCalledHam)},
		Intervals: &jsonIntervals{
			jsonInterval{l.HamCalledSpam.Low, l.HamCalledSpam.High}, jsonInterval{l.SpamCalledHam.Low, l.SpamCalledHam.High},
		},
		Suspects: append([]Suspect{}, l.Suspects...), // [] rather than null
		Sources:  append([]SourceRate{}, l.Sources...),
	}
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
	for _, group := range [][]string{incidentFields, labelFields, publishFields} { // all of them or none
		if l := missing(names, group); len(l) < len(group) {
			lacks = append(lacks, l...)
		}
	}
	if len(lacks) > 0 {
		return Alert{}, fmt.Errorf("missing: %s", strings.Join(lacks, ", "))
	}
	has := func(field string) bool { return slices.Contains(names, field) }
	if has("flip_rate_intervals") && !has(labelFields[0]) {
		return Alert{}, errors.New("flip_rate_intervals: given without flip_rates")
	}
	var j jsonAlert
	if has(labelFields[0]) {
		j.jsonLabels = &jsonLabels{}
	}
	if has(publishFields[0]) {
		j.jsonPublication = &jsonPublication{}
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return Alert{}, plainJSONError(err)
	}
	a := Alert{
		Transition: j.Transition, Kind: j.Kind, State: j.State, Accused: j.Accused, Event: j.Event,
		Level: j.Level, Reference: j.Reference, Threshold: j.Threshold, Body: j.Body, Reading: j.Reading,
	}
	if j.jsonLabels != nil {
		a.Labels = j.jsonLabels.report()
	}
	if p := j.jsonPublication; p != nil {
		if p.Model == "" {
			return Alert{}, errors.New("model: empty")
		}
		a.Model, a.Partition, a.Time = p.Model, p.Partition, p.Time.UTC()
	}
	if has("incident") {
		if err := a.setIncident(j.Incident); err != nil {
			return Alert{}, err
		}
	}
	return a, a.Validate()
}

// report returns what j says. Without intervals they are from 0 to 1.
func (j *jsonLabels) report() *LabelReport {
	if j.Intervals == nil {
		j.Intervals = &jsonIntervals{jsonInterval{0, 1}, jsonInterval{0, 1}}
	}
	rate := func(r *float64, interval jsonInterval) FlipRate {
		f := FlipRate{Known: r != nil, Low: interval[0], High: interval[1]}
		if f.Known {
			f.Rate = *r
		}
		return f
	}
	return &LabelReport{
		Epsilon: j.Epsilon, SNR: j.SNR, NoiseGrade: j.NoiseGrade,
		HamCalledSpam: rate(j.FlipRates.HamCalledSpam, j.Intervals.HamCalledSpam),
		SpamCalledHam: rate(j.FlipRates.SpamCalledHam, j.Intervals.SpamCalledHam),
		Suspects:      j.Suspects, Sources: j.Sources,
	}
}
