package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// A Verdict answers one score request. Its JSON is the reply of the scoring
// service.
type Verdict struct {
	ID      string  `json:"id,omitempty"` // the request's, where it had one
	P       float64 `json:"p"`            // probability of spam
	LogOdds float64 `json:"log_odds"`     // logit of P, nats
	// central 90 % interval of the probability, widened to contain P where it does not
	Interval [2]float64 `json:"interval"`
	Decision Decision   `json:"verdict"`
	Margin   float64    `json:"margin"` // how far the mail is beyond the border of spam, nats; see Margin
	// by which the probability became the decision; nil: by the scorer's own thresholds, see Decide. Nobody changes it
	Rule *Rule `json:"rule,omitempty"`
	// of a mail, by mail.Identity: names the message in headers and corrections
	Identity string   `json:"identity,omitempty"`
	Reasons  []Reason `json:"reasons,omitempty"` // explain only, largest first
	// explain only, largest first; at most MaxWords unless more were asked for
	Words []Word   `json:"words,omitempty"`
	Model ModelRef `json:"model"`
}

// AppendJSON appends the JSON of v to dst: the bytes that json.Marshal makes, without its reflection. It is an
// error if a number is not finite.
func (v *Verdict) AppendJSON(dst []byte) ([]byte, error) {
	for _, f := range [...]float64{v.P, v.LogOdds, v.Interval[0], v.Interval[1], v.Margin} {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return dst, fmt.Errorf("verdict in JSON: %v is not a finite number", f)
		}
	}
	dst = append(dst, '{')
	if v.ID != "" {
		dst = append(appendJSONString(append(dst, `"id":`...), v.ID), ',')
	}
	dst = appendJSONFloat(append(dst, `"p":`...), v.P)
	dst = appendJSONFloat(append(dst, `,"log_odds":`...), v.LogOdds)
	dst = appendJSONFloat(append(dst, `,"interval":[`...), v.Interval[0])
	dst = appendJSONFloat(append(dst, ','), v.Interval[1])
	dst = appendJSONString(append(dst, `],"verdict":`...), string(v.Decision))
	dst = appendJSONFloat(append(dst, `,"margin":`...), v.Margin)
	if v.Rule != nil {
		var err error
		if dst, err = v.Rule.appendJSON(append(dst, `,"rule":`...)); err != nil {
			return dst, err
		}
	}
	if v.Identity != "" {
		dst = appendJSONString(append(dst, `,"identity":`...), v.Identity)
	}
	for _, list := range [...]struct {
		name string
		any
		n int
	}{{"reasons", v.Reasons, len(v.Reasons)}, {"words", v.Words, len(v.Words)}} {
		if list.n == 0 {
			continue
		}
		b, err := json.Marshal(list.any)
		if err != nil {
			return dst, fmt.Errorf("verdict in JSON: %s: %w", list.name, err)
		}
		dst = append(append(append(append(dst, `,"`...), list.name...), `":`...), b...)
	}
	dst = appendJSONString(append(dst, `,"model":{"name":`...), v.Model.Name)
	dst = appendJSONString(append(dst, `,"sha256":`...), v.Model.SHA256)
	dst = append(dst, `,"positions":`...)
	if v.Model.Positions == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, '[')
		for i, position := range v.Model.Positions {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, position, 10)
		}
		dst = append(dst, ']')
	}
	dst = strconv.AppendInt(append(dst, `,"age_ms":`...), v.Model.AgeMS, 10)
	return append(dst, "}}"...), nil
}

// DecodeVerdicts reads a verdict, or an array of verdicts, in JSON. It ignores unknown fields: a newer
// service may know more.
func DecodeVerdicts(b []byte) ([]Verdict, error) {
	s, batch := jsonScanner{b}, bytes.HasPrefix(b, []byte{'['})
	verdicts, ok := make([]Verdict, 0, 1), false
	one := func() bool {
		verdicts = append(verdicts, Verdict{})
		return s.verdict(&verdicts[len(verdicts)-1])
	}
	if batch {
		ok = s.array(one)
	} else {
		ok = one()
	}
	if ok && s.ends() {
		return verdicts, nil
	}
	verdicts = make([]Verdict, 1)
	if batch {
		err := json.Unmarshal(b, &verdicts)
		return verdicts, err
	}
	return verdicts, json.Unmarshal(b, &verdicts[0])
}

// A Decision is a verdict in a word.
type Decision string

const (
	DecideSpam   Decision = "spam"
	DecideHam    Decision = "ham"
	DecideUnsure Decision = "unsure"
)

// A Reason is one input's contribution to the mean of the log-odds, in nats, with its
// standard deviation. P is the mean, and Interval the interval, of that same belief.
type Reason struct {
	Name         string  `json:"name"`
	Contribution float64 `json:"contribution"`
	SD           float64 `json:"sd"`
}

// Limits of the words of an explanation.
const (
	MaxWords      = 20
	MaxWordLength = 64 // bytes of Text, and of Where
)

// A Word is a piece of the message and what it adds to the mean of the log-odds, in nats. A
// Verdict has the largest only, so they do not sum to it. They are another view of what Reasons
// say of the experts: do not add the two.
type Word struct {
	// Text is a word in lower case, a run of marks such as "!!!", or of a link the host. It
	// is valid UTF-8 without control characters; what is longer than the limit ends in "…".
	Text string `json:"text"`

	// Where is "text", "subject", "link", the name of a header field in lower case, "header"
	// for such a name itself, or "name" for a name in a vector.
	Where string `json:"where"`

	Contribution float64 `json:"contribution"`

	// Shared: in a hash table, something else in the message has a slot of the word, so
	// what the slot says may belong to that.
	Shared bool `json:"shared,omitempty"`
}

// A ModelRef names the model that gave an answer.
type ModelRef struct {
	Name      string  `json:"name"`
	SHA256    string  `json:"sha256"`    // of the model's bytes
	Positions []int64 `json:"positions"` // one: the next offset of the log
	AgeMS     int64   `json:"age_ms"`    // since the newest of its checkpoints was saved
}

// Info describes the model that a scorer serves.
type Info struct {
	Model    ModelRef  `json:"model"`
	Events   uint64    `json:"events"` // learnt
	Saved    time.Time `json:"saved"`
	Numerics string    `json:"numerics"`
	Stale    bool      `json:"stale"`  // the state cannot be reached: this is the last good model
	Pinned   bool      `json:"pinned"` // an operator pinned a version, and it is served
	// the state has lost the pinned version: the newest is served in its place
	PinLost bool    `json:"pin_lost,omitempty"`
	Sources Sources `json:"sources"`

	// Promoted says that Model answers in the place of the model that was asked; nil: it is that one.
	Promoted *Promoted `json:"promoted,omitempty"`

	// The probabilities from which, and up to which, this scorer answers spam and ham; see Decide.
	// Both are 0 where a scorer of an earlier version answers.
	SpamAt float64 `json:"spam_at,omitempty"`
	HamAt  float64 `json:"ham_at,omitempty"`

	// Rule is what decides for tenants without a rule of their own; nil: the two thresholds.
	Rule *Rule `json:"rule,omitempty"`

	// that are open in the served model; without a suspicion or alarm none
	Incidents []OpenIncident `json:"incidents,omitempty"`
}

// Promoted says in the place of which model another one answers, because an operator promoted it.
type Promoted struct {
	For   string    `json:"for"`
	Since time.Time `json:"since"`
	By    string    `json:"by,omitempty"`
}

// Sources counts the sources of labels that the model knows, by their standing.
type Sources struct {
	Known   int `json:"known"`
	Anchors int `json:"anchors"`
	Muted   int `json:"muted"`
	Doubted int `json:"doubted"` // ordinary ones whose labels count less than half

	// LeftOut counts those that the model was made to leave out. It knows none of them.
	LeftOut int `json:"left_out,omitempty"`
}

// An OpenIncident is one that is suspected or raised in a model: see [Alert].
type OpenIncident struct {
	Incident   string `json:"incident"`   // Alert.IncidentID
	Transition int    `json:"transition"` // the last
	Kind       string `json:"kind"`
	State      string `json:"state"` // AlertSuspected, AlertRaised
	Accused    string `json:"accused,omitempty"`
	Body       string `json:"body"`
}

// Decide turns a probability and the lower end of its interval into a verdict:
// spam if p ≥ spamAt and lo > ½, ham if p ≤ hamAt, else unsure.
func Decide(p, lo, spamAt, hamAt float64) Decision {
	switch {
	case p >= spamAt && lo > 0.5:
		return DecideSpam
	case p <= hamAt:
		return DecideHam
	}
	return DecideUnsure
}

// Bounds of a margin, in nats.
const (
	maxMargin = 100

	// marginStep is the least distance to the border of what is not spam. It survives the
	// addition of a threshold of some thousands, whose last bit is a tenth as large.
	marginStep = 1e-11
)

// Margin returns how far an answer lies beyond the border of spam, in nats:
//
//	min(logit p − logit spamAt, logit lo)
//
// for logOdds = logit p and the decision d of [Decide]. It is at least 0 if d is spam, and
// below 0 if not, also where rounding would say otherwise. So a filter whose scale has a
// threshold t may show t + margin. It is finite for all arguments, from −100 to 100.
func Margin(logOdds, lo, spamAt float64, d Decision) float64 {
	return onItsSide(min(finiteDifference(logOdds, logit(spamAt)), finiteDifference(logit(lo), 0)), d)
}

// MarginTo is [Margin] where the log-odds alone decide: logOdds − threshold.
func MarginTo(logOdds, threshold float64, d Decision) float64 {
	return onItsSide(finiteDifference(logOdds, threshold), d)
}

// onItsSide returns a margin that says the same as d.
func onItsSide(margin float64, d Decision) float64 {
	if d == DecideSpam {
		return max(margin, 0)
	}
	return min(margin, -marginStep)
}

// finiteDifference returns a − b between −maxMargin and maxMargin, and 0 if a and b are
// the same infinity or one of them is no number.
func finiteDifference(a, b float64) float64 {
	d := a - b
	if math.IsNaN(d) {
		return 0
	}
	return min(max(d, -maxMargin), maxMargin)
}

// logit returns ln p/(1−p), from −Inf at 0 to +Inf at 1.
func logit(p float64) float64 { return math.Log(p) - math.Log1p(-p) }
