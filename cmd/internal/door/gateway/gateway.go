// Package gateway stands between mail servers and the scoring service. Its doors, in the
// packages beside it, speak the protocols that mail servers already speak; each asks the
// scoring service through one [Gateway] and shows the same fields.
//
//	g, err := gateway.New(gateway.Config{Asker: client, Deadline: 2 * time.Second, Memory: 256 << 20})
//	door := g.Door("spamd")
//	l, err := gateway.Listen("unix:/run/hamlet/spamd.sock", 0o660)
//	err = door.Serve(ctx, l, handle)     // handle is called for each connection
//
//	body := door.NewBody()               // in handle: the message, within the budget
//	defer body.Release()
//	_, err = body.ReadFrom(conn)
//	verdicts, err := door.Score(ctx, tenants, body.Bytes(), false)
//
// # Rules
//
//   - A mail server is never stopped. A message without an answer in time, without memory
//     or beyond the limit passes unmarked. It is counted, and the log says so once a minute.
//   - The bytes of all messages share one budget (see [Body]).
//   - A door listens on this machine, unless it is told otherwise.
//   - Clients choose neither their tenant's name nor the source of a label: the operator's
//     file maps what they say to tenants, and the door's name is the source.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"hamlet/cmd/internal/process/tokens"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/openfiles"
	"hamlet/stream/questions"
)

// Errors of [Door.Score] and of a [Body]. Each means that the message passes unmarked.
// The gateway has counted it.
var (
	// ErrNoAnswer: the scoring service did not answer in time, or not with a verdict.
	ErrNoAnswer = errors.New("no answer from the scoring service")

	// ErrTooLarge: the message has more than mail.MaxSize bytes.
	ErrTooLarge = mail.ErrTooLarge

	// ErrMemory: the messages under way take all the memory that they may.
	ErrMemory = errors.New("the messages under way take all the memory that they may")
)

// A Config describes a gateway.
type Config struct {
	Asker    questions.Asker // of the scoring service
	Teacher  Teacher         // takes labels; nil: doors do not teach
	Asked    ingest.Asking   // which labels were asked for
	Tenants  *Tenants        // nil: all mail is of the tenant "default"
	Tokens   *tokens.File    // bearer tokens of the HTTP door, with their rights; nil: none
	Marks    Marks           // what doors add to a message
	Deadline time.Duration   // from a message's last byte to its verdict
	Memory   int64           // bytes of the messages under way beyond FreeBytes each
	Hints    Hints           // for clients that are refused
	MaxConns int             // connections of one address; more wait. 0: maxConns, or a share of the limit of open files

	// Answered is told each verdict about a message of a mail server, before the server is.
	// It does not wait, and keeps neither message, which is reduced, nor verdict. nil: nobody is told.
	Answered func(tenant string, message []byte, verdict *stream.Verdict)

	Registerer prometheus.Registerer // nil: no metrics are shown
	Log        *slog.Logger          // nil: silent
}

// Hints name settings of the operator.
type Hints struct {
	Learn string // lets clients teach
	Token string // gives programs a token
}

// A Gateway asks the scoring service on behalf of its doors. It may be used concurrently.
type Gateway struct {
	Config // nobody changes it

	room    *semaphore.Weighted // Config.Memory
	large   *semaphore.Weighted // admits maxReducing messages beyond largeMessage to mail.Reduce
	outage  outage
	metrics *metrics

	mu   sync.Mutex
	told map[string]*warning // by door and kind of trouble; mu guards it
}

// New returns a gateway. The error reports everything that is wrong with cfg.
func New(cfg Config) (*Gateway, error) {
	cfg.MaxConns = cmp.Or(cfg.MaxConns, openfiles.Connections(maxConns))
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	var errs []error
	if cfg.Asker == nil {
		errs = append(errs, errors.New("nobody to ask for scores"))
	}
	if cfg.Deadline <= 0 || cfg.Memory <= 0 {
		errs = append(errs, fmt.Errorf("a bound is not above zero: deadline %v, memory %d", cfg.Deadline, cfg.Memory))
	}
	errs = append(errs, cfg.Marks.Check())
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{
		Config: cfg, metrics: newMetrics(), told: map[string]*warning{},
		room: semaphore.NewWeighted(cfg.Memory), large: semaphore.NewWeighted(maxReducing),
	}
	if cfg.Registerer != nil {
		g.metrics.register(cfg.Registerer, g)
	}
	return g, nil
}

const maxConns = 4096

// A Door is one protocol's way into the gateway.
type Door struct {
	*Gateway
	name string
}

// Door returns the door of that name, which the scoring service and the metrics see. It is one
// that questions.IsDoor takes.
func (g *Gateway) Door(name string) *Door {
	g.metrics.open(name)
	return &Door{Gateway: g, name: name}
}

// Name returns the door's name.
func (d *Door) Name() string { return d.name }

// HasTokens reports whether programs may need a token at the HTTP door, beside the
// operator's.
func (g *Gateway) HasTokens() bool { return g.Tokens != nil || g.Tenants.HasTokens() }

// To reduce a message takes up to five times its size for half a second. So large ones
// wait for each other, within the deadline: beside the budget they take at most
// maxReducing times 125 MiB.
const (
	largeMessage = 1 << 20
	maxReducing  = 2
)

// Score asks for the verdicts of a whole message, which it reduces first, for several tenants,
// all by one deadline, and returns them in order. Without one of the answers it returns none.
// With explain, or where the marks show words, verdicts have reasons and words. Fields that could
// be taken for ours are no part of the message: a sender wrote them. The message begins a trace,
// unless ctx carries one. Errors are [ErrNoAnswer], [ErrTooLarge], [ErrMemory] and
// mail.ErrEmpty, wrapped, and that of a caller's ctx, which nothing counts.
func (d *Door) Score(ctx context.Context, tenants []string, message []byte, explain bool) ([]stream.Verdict, error) {
	start := time.Now()
	ctx, trace := traced(ctx)
	verdicts, err := d.score(ctx, start, tenants, message, explain)
	outcome := "answered"
	if err != nil {
		outcome = err.Error()
	}
	d.Log.Debug("gateway: message", "trace", trace.ID(), "door", d.name, "outcome", outcome, "took", time.Since(start))
	return verdicts, err
}

func (d *Door) score(ctx context.Context, start time.Time, tenants []string, message []byte,
	explain bool,
) ([]stream.Verdict, error) {
	trace := stream.ContextTrace(ctx)
	if len(message) > mail.MaxSize {
		return nil, d.passed(trace, passedTooLarge, ErrTooLarge)
	}
	deadline, cancel := context.WithDeadline(ctx, start.Add(d.Deadline))
	defer cancel()
	reduced, err := d.reduceForeign(deadline, message)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, ErrMemory):
		return nil, d.passed(trace, passedMemory, err)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, d.passed(trace, passedMemory, fmt.Errorf("%w: other large messages come first", ErrMemory))
	default:
		return nil, d.passed(trace, passedRefused, err)
	}
	verdicts, err := d.Ask(ctx, start, tenants, reduced, questions.Mail, explain || d.Marks.Words > 0)
	if d.Answered != nil {
		for i := range verdicts {
			d.Answered(cmp.Or(tenants[i], stream.DefaultName), reduced, &verdicts[i])
		}
	}
	return verdicts, err
}

// traced returns a context that carries a trace, a new one unless ctx has one.
func traced(ctx context.Context) (context.Context, stream.Trace) {
	if trace := stream.ContextTrace(ctx); trace != "" {
		return ctx, trace
	}
	trace := stream.NewTrace()
	return stream.WithTrace(ctx, trace), trace
}

// reduceForeign reduces a message from outside: fields that look like ours were written by
// the sender, and are left out.
func (d *Door) reduceForeign(ctx context.Context, message []byte) ([]byte, error) {
	if !d.Marks.forged(message) {
		return d.Reduce(ctx, message)
	}
	room := max(0, int64(len(message))-FreeBytes)
	if !d.Acquire(room) {
		return nil, ErrMemory
	}
	defer d.Return(room)
	clean := d.Marks.Rewrite(message, nil)
	return d.Reduce(ctx, append(clean.Header, clean.Body...))
}

// Reduce is mail.Reduce, for maxReducing large messages at a time.
func (d *Door) Reduce(ctx context.Context, message []byte) ([]byte, error) {
	if len(message) > largeMessage {
		if err := d.large.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer d.large.Release(1)
	}
	return mail.Reduce(message)
}

// Ask asks for the verdicts of one body, a mail that is reduced, a text or an event, for
// each tenant. Its last byte came at start. It counts the message.
func (d *Door) Ask(ctx context.Context, start time.Time, tenants []string, body []byte, contentType string,
	explain bool,
) ([]stream.Verdict, error) {
	var all []stream.Verdict
	left := max(d.Deadline-time.Since(start), d.Deadline/impatience)
	err := d.outage.try(ctx, left, func(ctx context.Context) error {
		all = make([]stream.Verdict, 0, len(tenants))
		for _, tenant := range tenants {
			verdicts, err := d.Asker.Ask(ctx, questions.Question{
				Body: body, ContentType: contentType, Explain: explain, Tenant: cmp.Or(tenant, stream.DefaultName), Door: d.name,
			})
			if err == nil {
				err = checkAnswer(verdicts, contentType)
			}
			if err != nil {
				return err
			}
			all = append(all, verdicts...)
		}
		return nil
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err() // the client went away: nobody is owed an answer
	case refused(err):
		return nil, d.passed(stream.ContextTrace(ctx), passedRefused, fmt.Errorf("%w: %w", ErrNoAnswer, err))
	default:
		return nil, d.passed(stream.ContextTrace(ctx), passedNoAnswer, fmt.Errorf("%w: %w", ErrNoAnswer, err))
	}
	d.metrics.took.WithLabelValues(d.name).Observe(time.Since(start).Seconds())
	for i := range all {
		d.metrics.answered(d.name, all[i].Decision)
	}
	return all, nil
}

// Info asks which model is served.
func (g *Gateway) Info(ctx context.Context) (info stream.Info, err error) {
	err = g.outage.try(ctx, g.Deadline, func(ctx context.Context) (err error) {
		info, err = g.Asker.Info(ctx)
		return err
	})
	return info, err
}

// refused reports whether the service answered that this one message is wrong.
func refused(err error) bool {
	var e *questions.Refusal
	return errors.As(err, &e) && (e.Code == questions.BadRequest || e.Code == questions.TooLarge)
}

// Why a message passed unmarked, as the metrics show it.
const (
	passedNoAnswer = "no-answer"
	passedRefused  = "refused" // by the service, or by mail.Reduce: it is empty
	passedTooLarge = "too-large"
	passedMemory   = "memory"
	passedBroken   = "broken" // the door could not do what it must
)

// passed counts a message that passes unmarked and returns err. The log says so once a
// minute for each reason. The trace is empty for a message about which nobody asks.
func (d *Door) passed(trace stream.Trace, reason string, err error) error {
	d.metrics.passed.WithLabelValues(d.name, reason).Inc()
	d.warn("messages pass unmarked", reason, append(trace.LogAttrs(), "reason", reason, "door", d.name, "error", err)...)
	return err
}

// PassedBroken counts a message that passes unmarked because of err, which is the door's:
// [ErrMemory] where the door itself found no room for it, or another.
func (d *Door) PassedBroken(err error) {
	if errors.Is(err, ErrMemory) {
		_ = d.passed("", passedMemory, err)
		return
	}
	_ = d.passed("", passedBroken, err)
}

// Garbage counts a request that the door's protocol does not have.
func (d *Door) Garbage(err error) {
	d.metrics.garbage.WithLabelValues(d.name).Inc()
	d.Log.Debug("not the protocol of this door", "door", d.name, "error", err)
}

// A warning is a line of the log that repeats at most once a minute.
type warning struct {
	last time.Time
	more int // since last
}

func (d *Door) warn(text, reason string, attrs ...any) {
	const every = time.Minute
	g, kind := d.Gateway, d.name+" "+reason
	g.mu.Lock()
	n := g.told[kind]
	if n == nil {
		n = &warning{}
		g.told[kind] = n
	}
	n.more++
	count, now := n.more, time.Now()
	silent := now.Sub(n.last) < every
	if !silent {
		n.last, n.more = now, 0
	}
	g.mu.Unlock()
	if !silent {
		g.Log.Warn(text, append([]any{"count", count}, attrs...)...)
	}
}

// checkAnswer returns an error for what is no answer about a body of that type. Whoever
// may join the scorers' queue group can answer, and what is answered goes into header
// fields. A scorer of before margins were told has none, which reads as spam.
func checkAnswer(verdicts []stream.Verdict, contentType string) error {
	if contentType != questions.JSON && len(verdicts) != 1 {
		return fmt.Errorf("%d verdicts for one message", len(verdicts))
	}
	for i := range verdicts {
		if err := checkVerdict(&verdicts[i]); err != nil {
			return fmt.Errorf("the answer is no verdict: %w", err)
		}
	}
	return nil
}

func checkVerdict(v *stream.Verdict) error {
	lo, hi := v.Interval[0], v.Interval[1]
	switch {
	case v.Decision != stream.DecideSpam && v.Decision != stream.DecideHam && v.Decision != stream.DecideUnsure:
		return errors.New("its verdict is neither spam, nor ham, nor unsure")
	case !(lo >= 0 && lo <= v.P && v.P <= hi && hi <= 1):
		return fmt.Errorf("p is %v in %v", v.P, v.Interval)
	case math.IsNaN(v.Margin) || (v.Margin >= 0) != (v.Decision == stream.DecideSpam):
		return fmt.Errorf("it is %s with a margin of %v: is the scorer older than the gateway?", v.Decision, v.Margin)
	}
	unfit := func(r rune) bool { return r <= ' ' || r > '~' || r == ';' }
	for _, text := range []string{v.Model.Name, v.Model.SHA256, v.Identity} {
		if len(text) > maxAnswered || strings.ContainsFunc(text, unfit) {
			return errors.New("a name in it does not fit into a header field")
		}
	}
	return nil
}

// maxAnswered bounds a name in an answer, in bytes: a SHA-256 in hex has 64.
const maxAnswered = 64
