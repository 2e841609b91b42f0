package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// An AuditEntry is one line of the audit: what a user of the console did, or meant to do. An
// action has two lines of one id. The first says AuditIntended, and is written before the
// action; the second says what came of it. It names the user in full. It holds nothing of a
// message: where the target is one, it is an identity. Its JSON:
//
//	{"id": "K3…", "time": "2026-11-20T10:00:00.25Z", "model": "default", "user": "ann@example.org",
//	 "roles": "look,operate", "from": "192.0.2.1", "action": "withdraw", "target": "feed-7",
//	 "detail": {"since": "2026-11-18"}, "outcome": "done"}
type AuditEntry struct {
	ID      string            `json:"id"`   // of the action
	Time    time.Time         `json:"time"` // of the line, UTC
	Model   string            `json:"model"`
	User    string            `json:"user"`
	Roles   string            `json:"roles,omitempty"` // that the user had, with commas between
	From    string            `json:"from,omitempty"`  // address of the user's browser
	Action  string            `json:"action"`          // such as "pin"
	Target  string            `json:"target,omitempty"`
	Detail  map[string]string `json:"detail,omitempty"`
	Outcome string            `json:"outcome"` // AuditIntended, AuditDone, or AuditFailed and an error
}

// Outcomes of an [AuditEntry].
const (
	AuditIntended = "intended"
	AuditDone     = "done"
	AuditFailed   = "failed: "
)

// ActionAcknowledge is the action that says that somebody has seen an incident, the target.
const ActionAcknowledge = "acknowledge"

// Bounds of an audit's line: of the fields in bytes, and of the details.
const (
	maxAuditField   = 128
	maxAuditTarget  = 512
	maxAuditOutcome = 1024
	maxAuditDetails = 16
	// MaxAuditLine is longer than the JSON of every entry that is valid.
	MaxAuditLine = 96 << 10
)

// Shorten cuts what an entry may say at length to what a line takes: target, details and
// outcome. What is no text becomes text.
func (e *AuditEntry) Shorten() {
	e.Target = shorten(e.Target, maxAuditTarget)
	e.Outcome = shorten(e.Outcome, maxAuditOutcome)
	if len(e.Detail) == 0 {
		e.Detail = nil
		return
	}
	short := make(map[string]string, len(e.Detail))
	for key, value := range e.Detail {
		short[key] = shorten(value, maxAuditTarget)
	}
	e.Detail = short
}

// shorten returns s without control characters, and at most limit bytes of it.
func shorten(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	if len(s) > limit {
		return Clip(s, limit-len(ellipsis))
	}
	return s
}

// Validate returns all reasons why e is no line, joined.
func (e *AuditEntry) Validate() error {
	var errs []error
	field := func(name, value string, wanted bool, limit int) {
		if value == "" && wanted {
			errs = append(errs, fmt.Errorf("%s: missing", name))
		} else if err := checkName(value, limit); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	field("id", e.ID, true, maxAuditField)
	field("model", e.Model, true, maxAuditField)
	field("user", e.User, true, maxAuditField)
	field("roles", e.Roles, false, maxAuditField)
	field("from", e.From, false, maxAuditField)
	field("action", e.Action, true, maxAuditField)
	field("target", e.Target, false, maxAuditTarget)
	field("outcome", e.Outcome, true, maxAuditOutcome)
	if n := len(e.Detail); n > maxAuditDetails {
		errs = append(errs, fmt.Errorf("detail: %d, more than %d", n, maxAuditDetails))
	} else {
		for key, value := range e.Detail {
			field("a name of detail", key, true, maxAuditField)
			field("a value of detail", value, false, maxAuditTarget)
		}
	}
	if e.Time.IsZero() {
		errs = append(errs, errors.New("time: missing"))
	}
	if e.Outcome != AuditIntended && e.Outcome != AuditDone && !strings.HasPrefix(e.Outcome, AuditFailed) {
		errs = append(errs, fmt.Errorf("outcome: one is none of %s, %s and %s…", AuditIntended, AuditDone, AuditFailed))
	}
	return errors.Join(append(errs, checkTime(e.Time))...)
}

// AppendJSON appends e to dst on one line, without a newline.
func (e *AuditEntry) AppendJSON(dst []byte) ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return dst, fmt.Errorf("line of the audit in JSON: %w", err)
	}
	return append(dst, b...), nil
}

// DecodeAuditEntry reads and validates a line. Fields of later versions are passed over.
func DecodeAuditEntry(line []byte) (e AuditEntry, err error) {
	if len(line) > MaxAuditLine {
		return AuditEntry{}, fmt.Errorf("line of the audit in JSON: %d bytes, more than %d", len(line), MaxAuditLine)
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return AuditEntry{}, fmt.Errorf("line of the audit in JSON: %w", plainJSONError(err))
	}
	if err := e.Validate(); err != nil {
		return AuditEntry{}, fmt.Errorf("line of the audit in JSON: %w", err)
	}
	e.Time = e.Time.UTC()
	if len(e.Detail) == 0 {
		e.Detail = nil
	}
	return e, nil
}
