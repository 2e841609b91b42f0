package stream

import (
	"encoding/json"
	"fmt"
)

// ReceiptTopic holds a JSON object for each relearn, unlearn and correct that was applied. A
// learner that was killed may write one twice; the two are equal.
const ReceiptTopic = "hamlet.receipts"

// ReceiptTraces are the parts of a model that keep a trace of a withdrawn event.
var ReceiptTraces = []string{"AdaGrad experts", "running standardisation"}

// TraceCounts is the trace of an event whose text is not that of the body given.
const TraceCounts = "counts of the text"

// AllTraces are the parts that keep a label that is too old to be withdrawn.
var AllTraces = append([]string{"head", TraceCounts}, ReceiptTraces...)

// The outcomes of a receipt.
const (
	OutcomeWithdrawn  = "withdrawn"   // relearn and unlearn
	OutcomeReplaced   = "replaced"    // the message's events were withdrawn, and the label learnt in their place
	OutcomeOutweighed = "outweighed"  // the earlier label is too old to be withdrawn: the new one was learnt twice
	OutcomeUnchanged  = "unchanged"   // the message has this label
	OutcomeNotAllowed = "not-allowed" // the earlier label is another source's
)

// A Receipt says what a withdrawal took out of a model, and what a correction did. What
// describes the withdrawn event is that of the newest, if there are several.
type Receipt struct {
	ID        string `json:"id"` // of the event that asked for it
	Of        string `json:"of"` // the event that was withdrawn, or the message; "" if the correction's body names it
	Source    string `json:"source"`
	Tenant    string `json:"tenant"`
	Action    string `json:"action"`  // relearn, unlearn or correct
	Outcome   string `json:"outcome"` // withdrawn, replaced, outweighed, unchanged or not-allowed
	Events    int    `json:"events"`  // how many were withdrawn
	Model     string `json:"model"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"` // of the event that asked for it
	Event     uint64 `json:"event"`  // the model's event count after it

	Withdrawn string  `json:"withdrawn,omitempty"` // the label that was withdrawn
	Last      string  `json:"last,omitempty"`      // without a withdrawal: the last label of the message
	Learnt    string  `json:"learnt,omitempty"`    // the label that was learnt in its place
	Trust     float64 `json:"trust"`               // label trust of the withdrawn event when it was learnt
	Since     int     `json:"since"`               // events of its kind learnt after it

	Curvature float64  `json:"h"`               // the head's site: −h·xxᵀ was added to Λ
	Shift     float64  `json:"eta"`             // and −eta·x to η
	KL        float64  `json:"kl"`              // of the head's belief, before‖after, nats
	LogDetV   float64  `json:"delta_log_det_v"` // by how much ln|V| grew
	Counted   float64  `json:"naive_bayes"`     // weight taken out of naive Bayes' counts
	Traces    []string `json:"traces"`          // what keeps a trace of the event

	Before string `json:"before_sha256,omitempty"` // of the model; not of correct
	After  string `json:"after_sha256,omitempty"`
}

// AppendJSON appends r to dst on one line, without a newline.
func (r *Receipt) AppendJSON(dst []byte) ([]byte, error) {
	written := *r
	written.Traces = append([]string{}, r.Traces...) // [] rather than null
	b, err := json.Marshal(&written)
	if err != nil {
		return dst, fmt.Errorf("receipt of %s in JSON: %w", redact(r.ID), err)
	}
	return append(dst, b...), nil
}
