package stream

import (
	"encoding/json"
	"fmt"
)

// ReceiptTopic holds a JSON object for each relearn and unlearn that was applied. A
// learner that was killed may write one twice; the two are equal.
const ReceiptTopic = "hamlet.receipts"

// ReceiptTraces are the parts of a model that keep a trace of a withdrawn event.
var ReceiptTraces = []string{"AdaGrad experts", "running standardisation"}

// A Receipt says what a withdrawal took out of a model.
type Receipt struct {
	ID        string `json:"id"` // of the event that asked for it
	Of        string `json:"of"` // of the event that was withdrawn
	Source    string `json:"source"`
	Tenant    string `json:"tenant"`
	Action    string `json:"action"` // relearn or unlearn
	Model     string `json:"model"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"` // of the event that asked for it
	Event     uint64 `json:"event"`  // the model's event count after it

	Withdrawn string  `json:"withdrawn"`        // the label that was withdrawn
	Learnt    string  `json:"learnt,omitempty"` // relearn: the label that was learnt in its place
	Trust     float64 `json:"trust"`            // label trust of the withdrawn event when it was learnt
	Since     int     `json:"since"`            // events of its kind learnt after it

	Curvature float64  `json:"h"`               // the head's site: −h·xxᵀ was added to Λ
	Shift     float64  `json:"eta"`             // and −eta·x to η
	KL        float64  `json:"kl"`              // of the head's belief, before‖after, nats
	LogDetV   float64  `json:"delta_log_det_v"` // by how much ln|V| grew
	Counted   float64  `json:"naive_bayes"`     // weight taken out of naive Bayes' counts
	Traces    []string `json:"traces"`          // what keeps a trace of the event

	Before string `json:"before_sha256"` // of the model
	After  string `json:"after_sha256"`
}

// AppendJSON appends r to dst on one line, without a newline.
func (r *Receipt) AppendJSON(dst []byte) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return dst, fmt.Errorf("receipt of %s in JSON: %w", clip(r.ID), err)
	}
	return append(dst, b...), nil
}
