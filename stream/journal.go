package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A JournalEntry is one line of the journal of decisions: what a scorer answered about one
// message, and why. It holds nothing of the message's text and no address. Its JSON has the
// names of the header field X-Hamlet:
//
//	{"time": "2026-11-20T10:00:00.25Z", "id": "5f3c…", "message_id": "9ae1…",
//	 "verdict": "spam", "p": 0.9987, "lo": 0.9921, "hi": 0.9998, "reasons": ["text words", …],
//	 "model": "default/0123456789ab", "door": "spamd", "tenant": "example.org", "ms": 0.42,
//	 "request": "a1"}
//
// Or it is a label that a learner learnt for a message, unless its source is muted. Then it has these fields alone:
//
//	{"time": "2026-11-20T10:09:00Z", "id": "5f3c…", "label": "ham", "source": "users", "model": "default"}
//
// If the label is more likely false than true, it has some more. P is then what the model said before it
// learnt the label. The line takes some 230 bytes.
//
//	{"time": …, "id": …, "label": …, "source": …, "model": …,
//	 "tenant": "example.org", "p": 0.9871, "phi": 0.0312, "offset": 4711}
//
// The next label of that message has a line too, and so has the withdrawal of the label: that line has
// "withdrawn": true.
type JournalEntry struct {
	Time      time.Time `json:"time"`                 // of the answer, UTC
	ID        string    `json:"id,omitempty"`         // identity of a mail, by mail.Identity
	MessageID string    `json:"message_id,omitempty"` // MessageIDHash of a mail's Message-ID
	Verdict   Decision  `json:"verdict"`
	P         float64   `json:"p"`
	Low       float64   `json:"lo"` // of the 90 % interval
	High      float64   `json:"hi"`
	Reasons   []string  `json:"reasons,omitempty"` // names of the largest, at most JournalReasons
	Model     string    `json:"model"`             // its name and the first 12 digits of its SHA-256
	Door      string    `json:"door"`              // that the question came in by; "nats" if it named none
	Tenant    string    `json:"tenant"`            // as Unaddressed returns it
	MS        float64   `json:"ms"`                // milliseconds from the request's arrival to its verdict
	Request   string    `json:"request,omitempty"` // the id of the request where it had one, as Unaddressed returns it
	Rule      RuleName  `json:"rule,omitempty"`    // of the verdict; empty: the scorer's fixed thresholds

	Label     Label  `json:"-"` // not zero: the line is a label
	Source    string `json:"-"` // of the label, as Unaddressed returns it
	Doubt     *Doubt `json:"-"` // of a label that is more likely false than true; else nil
	Withdrawn bool   `json:"-"` // the label was withdrawn
}

// A Doubt says of a label why it is doubted, and where it is.
type Doubt struct {
	Phi    float64 // probability that the label is true, below ½
	Offset int64   // of the label's event in the model's log
}

// A journalLabel is a label's line.
type journalLabel struct {
	Time      time.Time `json:"time"`
	ID        string    `json:"id"`
	Label     string    `json:"label"`
	Source    string    `json:"source"`
	Model     string    `json:"model"`
	Withdrawn bool      `json:"withdrawn,omitempty"`
	*journalDoubt
}

// A journalDoubt is what the line of a doubtful label has besides.
type journalDoubt struct {
	Tenant string  `json:"tenant"`
	P      float64 `json:"p"`
	Phi    float64 `json:"phi"`
	Offset int64   `json:"offset"`
}

// JournalReasons is how many reasons an entry names.
const JournalReasons = 3

// AppendJSON appends e to dst as one line with its end.
func (e *JournalEntry) AppendJSON(dst []byte) ([]byte, error) {
	var line any = e
	if e.Label != 0 {
		label := journalLabel{Time: e.Time, ID: e.ID, Label: e.Label.String(), Source: e.Source, Model: e.Model,
			Withdrawn: e.Withdrawn}
		if e.Doubt != nil {
			label.journalDoubt = &journalDoubt{e.Tenant, e.P, e.Doubt.Phi, e.Doubt.Offset}
		}
		line = label
	}
	b, err := json.Marshal(line)
	if err != nil {
		return dst, fmt.Errorf("line of the journal in JSON: %w", err)
	}
	return append(append(dst, b...), '\n'), nil
}

// DecodeJournalEntry reads a line. Fields of later versions are passed over.
func DecodeJournalEntry(line []byte) (e JournalEntry, err error) {
	var read struct {
		JournalEntry
		Label     string   `json:"label"`
		Source    string   `json:"source"`
		Withdrawn bool     `json:"withdrawn"`
		Phi       *float64 `json:"phi"`
		Offset    int64    `json:"offset"`
	}
	if err = json.Unmarshal(line, &read); err != nil {
		return JournalEntry{}, fmt.Errorf("line of the journal in JSON: %w", plainJSONError(err))
	}
	e = read.JournalEntry
	switch {
	case e.Time.IsZero() || e.Verdict == "" && (read.Label == "" || e.ID == ""):
		return JournalEntry{}, errors.New("line of the journal in JSON: missing: time, verdict, or label and id")
	case e.Verdict != "":
		return e, nil
	}
	if e.Label, err = ParseLabel(read.Label); err != nil {
		return JournalEntry{}, fmt.Errorf("line of the journal in JSON: %w", err)
	}
	e.Source, e.Withdrawn = read.Source, read.Withdrawn
	if read.Phi != nil {
		e.Doubt = &Doubt{*read.Phi, read.Offset}
	}
	return e, nil
}

// Unaddressed returns the name of a tenant or a request as the journal shows it. A name
// with an @ may be an address: it becomes # and the first 16 digits of its SHA-256.
func Unaddressed(name string) string {
	if !strings.Contains(name, "@") {
		return name
	}
	return "#" + shortHash(name)
}

// MessageIDHash returns what the journal says of a Message-ID: the first 16 digits of its
// SHA-256, without blanks and angle brackets at its ends; empty for an empty one.
//
// The hash has no key. Who reads the journal and has a Message-ID can tell that this
// message was scored; the identity says as much to those who have the message.
func MessageIDHash(id string) string {
	id = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(id), "<"), ">")
	if id == "" {
		return ""
	}
	return shortHash(id)
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
