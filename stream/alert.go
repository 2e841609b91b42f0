package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
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
	AlertStates = []string{AlertSuspected, AlertRaised, AlertCleared, AlertWithdrawn}
	alertBodies = []string{AlertText, AlertVector}
)

// NamesKind reports whether an alert in a state says what happened. If it does not, the
// alert's kind is AlertUnknown.
func NamesKind(state string) bool { return state == AlertRaised || state == AlertCleared }

// ErrAlerts says that a publisher would fail again. The error's text says why and what
// to do, and a learner ends with it. After any other error, publish again.
var ErrAlerts = errors.New("no alert can be published")

// An Alert is a transition of an incident: a model suspects that something
// changed, names it, finds that it is over, or withdraws the suspicion.
//
//	suspected ──> raised ──> cleared
//	    └───────> withdrawn
//
// An incident may begin with raised. In JSON an alert is
//
//	{"incident": "default.0.6102", "transition": 2,
//	 "kind": "label-noise", "state": "raised", "event": 6250,
//	 "level": -4.1, "reference": -3.8, "threshold": 0.2,
//	 "epsilon": 0.03, "snr": 8.3, "noise_grade": 0.4,
//	 "flip_rates": {"ham_called_spam": 0.19, "spam_called_ham": null},
//	 "flip_rate_intervals": {"ham_called_spam": [0.15, 0.24], "spam_called_ham": [0, 1]},
//	 "suspects": [{"id": "a1", "source": "abuse-desk", "phi": 0.02}],
//	 "sources": [{"source": "abuse-desk", "events": 130, "flip_rate": 0.2, "lo": 0.15, "hi": 0.26}],
//	 "body": "text", "reading": "labels went bad; too little recent spam to say how much of it is called ham",
//	 "model": "default", "partition": 0, "time": "2026-11-20T10:00:00Z"}
//
// The fields from epsilon to sources stand where the kind is label-noise, and may where it
// is source. "accused", the name of a source, stands where the kind is source, and where a
// source was accused after label noise was named. Only an alert that was
// published has model, partition and time. An alert of a program without incidents lacks
// incident, transition and flip_rate_intervals; [DecodeAlert] reads it too.
type Alert struct {
	Incident   uint64  // the model's event count when the incident was opened; 0: the alert has no incident
	Transition int     // of the incident, from 1
	Kind       string  // AlertLabelNoise and the others
	State      string  // AlertSuspected, AlertRaised, AlertCleared, AlertWithdrawn
	Accused    string  // the source whose labels are wrong; "" if none is known
	Event      uint64  // the model's event count when it happened, from 1
	Level      float64 // label noise: ln SNR − ln N
	Reference  float64 // label noise: the running median of Level; 0 while there is none
	Threshold  float64 // label noise: the drop below Reference that applied
	Labels     *LabelReport
	Body       string // AlertText, AlertVector
	Reading    string // what the alarms of this body mean together, in words

	Model     string // empty: it was not published
	Partition int
	Time      time.Time // of its publication; a copy after a restart has a later one
}

// A LabelReport is what is known about the labels when an incident is named or ends.
type LabelReport struct {
	Epsilon       float64      // the flip rate of the labels, 0 to 1
	SNR           float64      // η₁/η₂
	NoiseGrade    float64      // ln ω₂/ω₁
	HamCalledSpam FlipRate     // of true ham
	SpamCalledHam FlipRate     // of true spam
	Suspects      []Suspect    // the events whose labels are trusted least, at most MostSuspects
	Sources       []SourceRate // the worst first
}

// A FlipRate is the rate of false labels in one class, with its 90 % interval. All are
// from 0 to 1. An alert of a program without intervals has the interval from 0 to 1.
type FlipRate struct {
	Known     bool    // false: too few recent labels say anything
	Rate      float64 // 0 unless Known
	Low, High float64
}

// A Suspect is an event whose label is probably false.
type Suspect struct {
	ID     string  `json:"id"`
	Source string  `json:"source"`
	Phi    float64 `json:"phi"` // the probability that the label is true
}

// A SourceRate is the flip rate of one source's labels, with its 90 % interval.
type SourceRate struct {
	Source   string  `json:"source"`
	Events   int     `json:"events"`
	FlipRate float64 `json:"flip_rate"`
	Low      float64 `json:"lo"`
	High     float64 `json:"hi"`
}

// evalModel stands in the ids of incidents that eval reports. It has one model, as a
// learner has by default.
const evalModel = "default"

// IncidentID identifies the incident that a belongs to: model, partition and event count,
// such as "default.0.6102". It is "" if a has no incident.
func (a *Alert) IncidentID() string {
	if a.Incident == 0 {
		return ""
	}
	return fmt.Sprintf("%s.%d.%d", cmp.Or(a.Model, evalModel), a.Partition, a.Incident)
}

// setIncident takes the event count from the id of an incident, which must be one of a's
// model and partition.
func (a *Alert) setIncident(id string) error {
	prefix := fmt.Sprintf("%s.%d.", cmp.Or(a.Model, evalModel), a.Partition)
	count, ok := strings.CutPrefix(id, prefix)
	n, err := strconv.ParseUint(count, 10, 64)
	if !ok || err != nil || n == 0 || strconv.FormatUint(n, 10) != count {
		return fmt.Errorf("incident: %s is not %sEVENT", word(id), prefix)
	}
	a.Incident = n
	return nil
}

// An AlertPublisher sends alerts out. Package alerttest has its laws.
type AlertPublisher interface {
	// Publish publishes alerts in order and returns when all are acknowledged. While that fails
	// it tries again until ctx ends. An alert may be given again: it drops copies, told by
	// [Alert.MessageID], as far back as it can know them. An error that wraps [ErrAlerts] is
	// final.
	Publish(ctx context.Context, alerts ...Alert) error
}

// MessageID identifies the alert: its incident and transition. Copies that a restarted
// learner publishes have the same ID.
func (a *Alert) MessageID() string { return fmt.Sprintf("%s/%d", a.IncidentID(), a.Transition) }
