// Package questions is what is asked about mail, and the port by which questions come to those
// who answer them. NATS is such a port (package nats); package questionstest has one in memory,
// and the laws that each keeps.
//
//	serving side:  questions.Serve(ctx, scorer)     scorer is an [Answerer]
//	asking side:   verdicts, err := asker.Ask(ctx, questions.Question{Body: mail, ContentType: questions.Mail})
package questions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hamlet/stream"
)

// The content types of a question.
const (
	Mail = "message/rfc822"       // a mail
	Text = "text/plain"           // a text in UTF-8
	JSON = stream.ContentTypeJSON // an event without label and action, or an array of such events
	all  = Mail + ", " + Text + " and " + JSON
)

// A Question asks about one message, or about the events of a batch.
type Question struct {
	Body        []byte
	ContentType string // Mail, Text or JSON
	Explain     bool   // the verdicts have reasons and words

	// Tenant is whose mail it is, for events that do not say so. Empty: stream.DefaultName.
	Tenant string
	// Door is the protocol by which the question came in: 1 to 16 of a-z, 0-9 and -, or empty.
	Door string
	// Words is how many words the explanation of one message may have, at most MostWords.
	// 0, and any number in a batch: stream.MaxWords.
	Words int
}

// MostWords is how many words the explanation of one message may have, if its question asks for
// more than stream.MaxWords: some 60 KB. In a batch each has stream.MaxWords at most.
const MostWords = 400

// ErrNoAnswerer says that nobody answers questions about the model: start a scorer, or name a
// model that is served.
var ErrNoAnswerer = errors.New("no scorer answers")

// An Asker asks those who answer for one model. It may be used concurrently.
type Asker interface {
	// Ask returns the verdicts of q, in the order of its events. The error is a [*Refusal] if
	// the question was refused, wraps [ErrNoAnswerer] if nobody answers, or is that of ctx or
	// of the way there.
	Ask(ctx context.Context, q Question) ([]stream.Verdict, error)
	// Info asks which model is served. Of several answerers one answers.
	Info(ctx context.Context) (stream.Info, error)
}

// An Answerer answers questions. Its methods are safe for concurrent use and end when ctx does.
// They return a [*Refusal] to say why there is no answer: BadRequest for a body that the model
// refuses, Unavailable while there is no model.
type Answerer interface {
	// Score returns a verdict for each event, in order. [Door], [Arrived] and [Words] read how
	// the question came in from ctx.
	Score(ctx context.Context, events []*stream.Event, explain bool) ([]stream.Verdict, error)
	// Info describes the model that is served.
	Info(ctx context.Context) (stream.Info, error)
}

// A Questions is the way by which questions about one model come to an answerer. Ways of one
// model, in any number of processes, share its questions.
type Questions interface {
	// Serve brings questions to a until ctx ends. Then it takes no more, answers what it has
	// taken, and returns nil once the answers are on their way. It runs once. A panic of a is
	// an [Internal] refusal of one question.
	// Each answer is observed, refusals too; observe runs concurrently and may be nil.
	Serve(ctx context.Context, a Answerer, observe func(Observation)) error
	// Ready is closed once questions come.
	Ready() <-chan struct{}
	// Connected says whether questions come at present. The way comes back by itself.
	Connected() bool
	// InFlight is how many questions have been taken and not yet answered.
	InFlight() int
}

// The kinds of question.
const (
	Score   = "score"
	Explain = "explain"
	Info    = "info"
)

// OK is the code of a verdict in an [Observation]. It is not on the wire.
const OK = 200

// An Observation is one answered question, for metrics.
type Observation struct {
	Endpoint string        // Score, Explain or Info
	Door     string        // that the question came in by; empty if it named none
	Code     int           // OK, or the code of the refusal
	Messages int           // in the question; 0 if it could not be read
	Waited   time.Duration // from its arrival to the start of the work
	Took     time.Duration // from its arrival to its answer
}

// Why there is no answer, as on the wire: the codes are those of HTTP.
const (
	BadRequest  = 400 // the question is wrong: repeating it won't help
	TooLarge    = 413 // the question, or its answer, is too large for the wire
	Internal    = 500 // an internal error of the answerer
	Unavailable = 503 // no model yet, or overloaded: ask again later
)

// A Refusal is what an asker gets in the place of verdicts. An [Answerer] returns one to choose
// the code; any other error becomes Internal.
type Refusal struct {
	Code int
	Text string // lower case, says what is wrong and what to do
}

// Error returns the text and the code.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Text, r.Code) }

// overloaded begins the text of each refusal that says that there is too much to do.
const overloaded = "overloaded: "

// Overload refuses because there is too much to do; why says what, and what helps.
func Overload(format string, why ...any) *Refusal {
	return &Refusal{Code: Unavailable, Text: overloaded + fmt.Sprintf(format, why...)}
}

// Overloaded reports whether the answerer lives, but has too much to do.
func (r *Refusal) Overloaded() bool {
	return r.Code == Unavailable && strings.HasPrefix(r.Text, overloaded)
}

// Wrong refuses a question that is wrong.
func Wrong(format string, why ...any) *Refusal {
	return &Refusal{Code: BadRequest, Text: fmt.Sprintf(format, why...)}
}

// IsDoor reports whether a door may have this name: 1 to 16 of a-z, 0-9 and -.
func IsDoor(name string) bool {
	return 1 <= len(name) && len(name) <= 16 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// An Arrival is how a question came in.
type Arrival struct {
	Door  string    // empty if it named none
	At    time.Time // when its last byte came
	Words int       // that an explanation may have; 0: stream.MaxWords
}

type arrivalKey struct{}

// WithArrival returns ctx for the methods of an [Answerer].
func WithArrival(ctx context.Context, a Arrival) context.Context {
	return context.WithValue(ctx, arrivalKey{}, a)
}

func arrival(ctx context.Context) Arrival {
	a, _ := ctx.Value(arrivalKey{}).(Arrival)
	return a
}

// Door returns the door that a question came in by, from the context of an [Answerer]'s
// methods. It is empty if the question named none.
func Door(ctx context.Context) string { return arrival(ctx).Door }

// Arrived returns when a question arrived, from the context of an [Answerer]'s methods. It is
// zero in any other context.
func Arrived(ctx context.Context) time.Time { return arrival(ctx).At }

// Words returns how many words an explanation may have, from the context of an [Answerer]'s
// methods.
func Words(ctx context.Context) int { return cmp.Or(arrival(ctx).Words, stream.MaxWords) }
