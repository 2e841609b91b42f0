package stream

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of an event and of its fields, in bytes. Kafka, NATS and the embedded
// brokers carry MaxEventSize by default.
const (
	MaxEventSize   = 960 << 10
	MaxIDLength    = 512
	MaxNameLength  = 256
	MaxVectorNames = 1 << 16
)

// DefaultName is the source and the tenant of an event that names none.
const DefaultName = "default"

// An Action says what an event asks of the model.
type Action uint8

const (
	Learn   Action = iota // learn the labelled body
	Relearn               // withdraw the event Of and learn this body instead
	Unlearn               // withdraw the event Of, or all that was learnt of the message Of
	Correct               // the label of the message Of is now this one
	Assume                // the message Of was answered with this label, and nobody has contradicted
)

var actionNames = [...]string{Learn: "learn", Relearn: "relearn", Unlearn: "unlearn", Correct: "correct",
	Assume: "assume"}

// String returns the action's name on the wire.
func (a Action) String() string {
	if a > Assume {
		return fmt.Sprintf("Action(%d)", uint8(a))
	}
	return actionNames[a]
}

// Actions returns the names of all actions.
func Actions() []string { return slices.Clone(actionNames[:]) }

// ParseAction reads an action's name; the empty name is Learn.
func ParseAction(s string) (Action, error) {
	i := slices.Index(actionNames[:], cmp.Or(s, actionNames[Learn]))
	if i < 0 {
		return 0, fmt.Errorf("action: %s is not one of %s", word(s), strings.Join(actionNames[:], ", "))
	}
	return Action(i), nil
}

// A Label says what a message is.
type Label uint8

const (
	Unlabelled Label = iota // a score request
	Ham
	Spam
)

var labelNames = [...]string{Unlabelled: "", Ham: "ham", Spam: "spam"}

// String returns the label's name on the wire; it is empty for Unlabelled.
func (l Label) String() string {
	if l > Spam {
		return fmt.Sprintf("Label(%d)", uint8(l))
	}
	return labelNames[l]
}

// ParseLabel reads "spam", "ham" or, for a score request, "".
func ParseLabel(s string) (Label, error) {
	i := slices.Index(labelNames[:], s)
	if i < 0 {
		return 0, fmt.Errorf("label: %s is neither spam nor ham", word(s))
	}
	return Label(i), nil
}

// A Kind says which body an event has.
type Kind uint8

const (
	NoBody Kind = iota
	Mail        // a message, RFC 5322, reduced by mail.Reduce
	Text        // plain text, UTF-8
	Vector      // named numbers
)

// A Number is one coordinate of a vector.
type Number struct {
	Name  string
	Value float64
}

// A Body is what is learnt or scored: exactly one of a mail, a text or a vector.
type Body struct {
	Kind   Kind
	Mail   []byte
	Text   string
	Vector []Number // strictly ascending by name
}

// An Event is one labelled item, or, without a label, one score request.
type Event struct {
	ID     string    // names the event within its tenant and source
	Time   time.Time // when it happened, UTC; zero if unknown; no model depends on it
	Source string    // who gave the label: an opaque name, never an address
	Tenant string    // whose mail it is
	Action Action

	// Of is the id of the event that Relearn and Unlearn are about. Unlearn also takes the
	// identity of a message, and forgets all that was learnt of it. Correct and Assume take an
	// identity alone. Without Of all three are about the message that is their Body.
	Of string

	// OwnOnly says that Of must be an event of Source. Without it Of may be of another
	// source of the tenant, if Source has none of that name. Whoever takes events from
	// others sets it; records of before, and files, do not have it.
	OwnOnly bool

	Label   Label
	Sampled Sampled // how the label was asked for; zero: it was volunteered
	Body    Body
}

// SortVector sorts numbers as [Body] wants them. A name given twice is an error.
func SortVector(v []Number) error {
	slices.SortStableFunc(v, func(a, b Number) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(v); i++ {
		if v[i].Name == v[i-1].Name {
			return fmt.Errorf("vector: name %q is given twice", redact(v[i].Name))
		}
	}
	return nil
}

// Validate returns all reasons why a model cannot learn e, joined: a missing id or
// label, a field that is too long or has control characters, a source that looks like
// an address, a time that the wire cannot hold, a body that is missing or empty, a
// number that is not finite, a sampled that no policy can have.
func (e *Event) Validate() error {
	errs := e.validateCommon()
	if e.ID == "" {
		errs = append(errs, errors.New("id: missing"))
	}
	if e.Label == Unlabelled && e.Action != Unlearn {
		errs = append(errs, errors.New("label: missing"))
	}
	errs = append(errs, e.Sampled.validate()...)
	if e.Action == Unlearn && e.Sampled != (Sampled{}) {
		errs = append(errs, errors.New("sampled: unlearn has none"))
	}
	switch e.Action {
	case Learn:
		if e.Of != "" {
			errs = append(errs, errors.New("of: learn has none"))
		}
		if e.OwnOnly {
			errs = append(errs, errors.New("own_only: learn has none"))
		}
	case Relearn:
		if e.Of == "" {
			errs = append(errs, fmt.Errorf("of: missing; %v names the event that it is about", e.Action))
		}
	}
	return errors.Join(errs...)
}

// ValidateRequest returns all reasons why e cannot be scored, joined. A request has a
// body, and neither label nor action.
func (e *Event) ValidateRequest() error {
	errs := e.validateCommon()
	if e.Label != Unlabelled {
		errs = append(errs, errors.New("label: a score request has none"))
	}
	if e.Sampled != (Sampled{}) {
		errs = append(errs, errors.New("sampled: a score request has none"))
	}
	if e.Action != Learn || e.Of != "" || e.OwnOnly {
		errs = append(errs, errors.New("action: a score request has none"))
	}
	return errors.Join(errs...)
}

// ValidateTenant returns an error if no event may have the tenant. An empty one is the
// default's.
func ValidateTenant(tenant string) error {
	if err := checkName(tenant, MaxNameLength); err != nil {
		return fmt.Errorf("tenant: %w", err)
	}
	return nil
}

func (e *Event) validateCommon() (errs []error) {
	for _, f := range []struct {
		name, value string
		limit       int
	}{
		{"id", e.ID, MaxIDLength}, {"of", e.Of, MaxIDLength},
		{"source", e.Source, MaxNameLength}, {"tenant", e.Tenant, MaxNameLength},
	} {
		if err := checkName(f.value, f.limit); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.name, err))
		}
	}
	if strings.Contains(e.Source, "@") {
		errs = append(errs, errors.New("source: an opaque name is wanted, not an address"))
	}
	if err := checkTime(e.Time); err != nil {
		errs = append(errs, err)
	}
	if e.Action > Assume {
		errs = append(errs, fmt.Errorf("action: unknown value %d", e.Action))
	}
	if e.Label > Spam {
		errs = append(errs, fmt.Errorf("label: unknown value %d", e.Label))
	}
	return append(errs, e.Body.validate()...)
}

func (b *Body) validate() (errs []error) {
	switch b.Kind {
	case Mail:
		if len(b.Mail) == 0 {
			errs = append(errs, errors.New("mail: empty"))
		}
	case Text:
		if b.Text == "" {
			errs = append(errs, errors.New("text: empty"))
		}
		if !utf8.ValidString(b.Text) {
			errs = append(errs, errors.New("text: not UTF-8"))
		}
	case Vector:
		// An empty vector is a message without a known word; it can be learnt from.
		if len(b.Vector) > MaxVectorNames {
			errs = append(errs, fmt.Errorf("vector: %d names, more than %d", len(b.Vector), MaxVectorNames))
		}
		for i, n := range b.Vector {
			if math.IsNaN(n.Value) || math.IsInf(n.Value, 0) {
				errs = append(errs, fmt.Errorf("vector: %q is %v, not a finite number", redact(n.Name), n.Value))
			}
			if n.Name == "" {
				errs = append(errs, errors.New("vector: a name is empty"))
			} else if err := checkName(n.Name, MaxNameLength); err != nil {
				errs = append(errs, fmt.Errorf("vector: name %q: %w", redact(n.Name), err))
			}
			if i > 0 && n.Name <= b.Vector[i-1].Name {
				errs = append(errs, fmt.Errorf("vector: name %q is given twice or out of order", redact(n.Name)))
			}
			if len(errs) > 3 { // the reason must fit in a header
				return errs
			}
		}
	default:
		errs = append(errs, errors.New("body: exactly one of mail, text and vector is wanted"))
	}
	return errs
}

// checkTime accepts the years of RFC 3339 and protobuf.
func checkTime(t time.Time) error {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return errors.New("time: outside years 1 to 9999")
	}
	return nil
}

func checkName(s string, limit int) error {
	switch {
	case len(s) > limit:
		return fmt.Errorf("%d bytes, more than %d", len(s), limit)
	case !utf8.ValidString(s):
		return errors.New("not UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("holds a control character")
	}
	return nil
}

// redact shortens a name for an error. Errors go into logs and dead letters, so it hides a name
// that may be an address. Errors quote names and our own keywords, never a text.
func redact(s string) string {
	if strings.Contains(s, "@") {
		return "(not shown)"
	}
	return Clip(s, 64)
}

// Clip returns s, or its first most bytes and an ellipsis. A character is not cut.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + ellipsis
}

const ellipsis = "…"

// word quotes s if it may be a misspelt word. Otherwise it only counts its bytes.
func word(s string) string {
	const most = 16
	odd := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' }
	if len(s) > most || strings.ContainsFunc(s, odd) {
		return fmt.Sprintf("a value of %d bytes", len(s))
	}
	return strconv.Quote(s)
}
