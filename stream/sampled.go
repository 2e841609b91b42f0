package stream

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Sampled says that somebody asked for an event's label, and how. What is zero was volunteered. A
// promise about lost ham rests on ham that was asked for: people volunteer what they see wrong.
//
// In JSON it is {"probability": 0.02, "least": 0.02, "why": "review"}. Without least that is probability.
type Sampled struct {
	Probability float64 // with which this label was asked for, above 0, at most 1
	// Least is the smallest probability with which the same policy asks about mail that lies above a
	// threshold. A ham weighs Least/Probability.
	Least float64
	Why   string // one of SampledWhys
}

// Words of Sampled.Why.
const (
	SampledAll    = "all"    // the source labels all mail, or a share of it by chance
	SampledReview = "review" // somebody was asked about a message that chance chose
	SampledKept   = "kept"   // somebody looked at the answer and left it as it was
)

// SampledWhys returns all words of Sampled.Why.
func SampledWhys() []string { return []string{SampledAll, SampledReview, SampledKept} }

// The least and the most that a ham may weigh. A model takes no others.
const (
	LeastSampleWeight = 1.0 / 1024
	MostSampleWeight  = 64
)

// SampledShare returns the Sampled of labels that are asked for with one probability.
func SampledShare(probability float64, why string) Sampled {
	return Sampled{probability, probability, why}
}

// Weight returns what a ham weighs, 0 if its label was volunteered.
func (s Sampled) Weight() float64 {
	if s == (Sampled{}) {
		return 0
	}
	return s.Least / s.Probability
}

// validate returns what is wrong with s.
func (s Sampled) validate() (errs []error) {
	if s == (Sampled{}) {
		return nil
	}
	for _, p := range []struct {
		name  string
		value float64
	}{{"probability", s.Probability}, {"least", s.Least}} {
		if !(p.value > 0 && p.value <= 1) {
			errs = append(errs, fmt.Errorf("sampled: %s is %v, and not above 0 and at most 1", p.name, p.value))
		}
	}
	if w := s.Weight(); len(errs) == 0 && !(w >= LeastSampleWeight && w <= MostSampleWeight) {
		errs = append(errs, fmt.Errorf("sampled: least/probability is %v, and not in %v to %v",
			w, LeastSampleWeight, MostSampleWeight))
	}
	if !slices.Contains(SampledWhys(), s.Why) {
		errs = append(errs, fmt.Errorf("sampled: why: %s is not one of %s", word(s.Why), strings.Join(SampledWhys(), ", ")))
	}
	return errs
}

// jsonSampled is a Sampled in JSON.
type jsonSampled struct {
	Probability float64  `json:"probability"`
	Least       *float64 `json:"least,omitempty"`
	Why         string   `json:"why"`
}

// newJSONSampled returns s in JSON, nil if it is zero.
func newJSONSampled(s Sampled) *jsonSampled {
	if s == (Sampled{}) {
		return nil
	}
	j := jsonSampled{Probability: s.Probability, Why: s.Why}
	if s.Least != s.Probability {
		j.Least = &s.Least
	}
	return &j
}

// sampled returns what j says. It is not zero, so that a mistake is not taken for a label that was volunteered.
func (j *jsonSampled) sampled() (Sampled, error) {
	if j == nil {
		return Sampled{}, nil
	}
	s := Sampled{j.Probability, j.Probability, j.Why}
	if j.Least != nil {
		s.Least = *j.Least
	}
	if s.Probability == 0 {
		return s, errors.New("sampled: probability: missing, or 0")
	}
	return s, nil
}

// UnmarshalJSON is strict about names.
func (j *jsonSampled) UnmarshalJSON(b []byte) error {
	if _, err := checkFields(b, "object", []string{"probability", "least", "why"}); err != nil {
		return &plainError{fmt.Errorf("sampled: %w", err)}
	}
	type plain jsonSampled
	if err := json.Unmarshal(b, (*plain)(j)); err != nil {
		return &plainError{fmt.Errorf("sampled: %w", plainJSONError(err))}
	}
	return nil
}

// protoSampled returns what a message says: least 0 is probability.
func protoSampled(probability, least float64, why string) (Sampled, error) {
	s := Sampled{probability, cmp.Or(least, probability), why}
	if s.Probability == 0 {
		return s, errors.New("sampled: probability: missing, or 0")
	}
	return s, nil
}
