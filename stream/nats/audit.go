package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// The stream of the audit: what users of the console did.
const (
	AuditStream   = "HAMLET_AUDIT"
	auditPrefix   = "hamlet.audit."
	auditSubjects = auditPrefix + "*"
)

// How long and how much the audit keeps. A line has some 300 bytes.
const (
	auditAge   = 400 * 24 * time.Hour
	auditBytes = 1 << 30
	// auditDuplicates is how long the server knows a line that is written twice.
	auditDuplicates = 2 * time.Minute
)

// AuditSubject returns where a model's audit is published: "hamlet.audit.default".
func AuditSubject(model string) string { return auditPrefix + model }

// ErrNoAudit says that the server does not keep the audit, and will not until somebody changes
// it. The text says what to change.
var ErrNoAudit = errors.New("no audit")

// An Audit writes and reads the lines of one model, each a stream.AuditEntry in JSON. An action
// has a line before it and one with its outcome. The stream keeps 400 days or 1 GiB, and
// its oldest lines go first; it refuses to delete others. It refuses messages larger than
// [stream.MaxAuditLine]. Whoever may write lines can still write so many that the old ones go.
// An Audit may be used concurrently.
type Audit struct {
	conn  *natsgo.Conn
	js    jetstream.JetStream
	model string

	mu    sync.Mutex // held while the stream is looked at
	known bool       // the stream was right, and no line has failed since; guarded by mu
	acked acknowledged
}

// NewAudit returns the audit of a model on conn, which the caller closes. It asks the server for
// nothing: the first line makes the stream.
func NewAudit(conn *natsgo.Conn, model string) (*Audit, error) {
	if !modelName.MatchString(model) {
		return nil, fmt.Errorf("audit: model name %q: only a-z, 0-9 and - are allowed", clip(model))
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return &Audit{conn: conn, js: js, model: model}, nil
}

// Prepare makes the stream, or gives an existing one the audit's bounds. Append does so too. An
// error that wraps [ErrNoAudit] says what to change; others end by themselves.
func (a *Audit) Prepare(ctx context.Context) error {
	return a.attempt(ctx, func(context.Context) error { return nil })
}

// OpenAudit is NewAudit and Prepare. A server that is away is no error: Append tries again.
func OpenAudit(ctx context.Context, conn *natsgo.Conn, model string) (*Audit, error) {
	a, err := NewAudit(conn, model)
	if err != nil {
		return nil, err
	}
	if err := a.Prepare(ctx); errors.Is(err, ErrNoAudit) {
		return nil, err
	}
	return a, nil
}

// Append writes a line, and returns when the server has acknowledged it. It tries once, for at
// most two seconds. It shortens what is too long, and refuses what is no line, or of another
// model. A line of the same action and outcome is written once.
func (a *Audit) Append(ctx context.Context, e stream.AuditEntry) error {
	e.Shorten()
	e.Time = e.Time.UTC()
	if err := e.Validate(); err != nil {
		return fmt.Errorf("line of the audit: %w", err)
	}
	if e.Model != a.model {
		return fmt.Errorf("line of the audit: it is of model %s, and this audit of %s", clip(e.Model), a.model)
	}
	m := natsgo.NewMsg(AuditSubject(a.model))
	var err error
	if m.Data, err = e.AppendJSON(nil); err != nil {
		return err
	}
	step := "outcome"
	if e.Outcome == stream.AuditIntended {
		step = stream.AuditIntended
	}
	return a.attempt(ctx, func(ctx context.Context) error {
		_, err := a.js.PublishMsg(ctx, m, jetstream.WithMsgID(e.ID+"/"+step), jetstream.WithExpectStream(AuditStream), jetstream.WithRetryAttempts(0))
		return err
	})
}

// attempt makes the stream right and then does what is wanted, once.
func (a *Audit) attempt(ctx context.Context, do func(context.Context) error) error {
	if !a.conn.IsConnected() {
		return fmt.Errorf("audit: %w", ErrNoServer)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	before := a.conn.LastError()
	err := a.ensure(ctx)
	if err == nil {
		err = do(ctx)
	}
	if err == nil {
		return nil
	}
	a.mu.Lock()
	a.known = false // the stream may have been deleted
	a.mu.Unlock()
	return a.explain(err, before)
}

// ensure makes the stream, or gives an existing one the audit's bounds, unless known.
func (a *Audit) ensure(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known {
		return nil
	}
	s, err := a.js.Stream(ctx, AuditStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		_, err = a.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: AuditStream, Description: "what users of hamlet's console did",
			Subjects: []string{auditSubjects}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: auditAge, MaxBytes: auditBytes, Duplicates: auditDuplicates,
			MaxMsgSize: stream.MaxAuditLine, DenyDelete: true, DenyPurge: true,
		})
	case err == nil:
		cfg := s.CachedInfo().Config
		if amendAudit(&cfg) {
			_, err = a.js.UpdateStream(ctx, cfg)
		}
	}
	a.known = err == nil
	return err
}

// amendAudit changes in cfg what the audit promises otherwise. It lowers no bound. A stream without
// a bound of its messages gets one with other changes only, because the console may change none.
func amendAudit(cfg *jetstream.StreamConfig) (changed bool) {
	if !slices.ContainsFunc(cfg.Subjects, func(s string) bool { return covers(s, auditSubjects) }) {
		cfg.Subjects = append(slices.DeleteFunc(cfg.Subjects, func(s string) bool { return covers(auditSubjects, s) }), auditSubjects)
		changed = true
	}
	if cfg.MaxAge != 0 && cfg.MaxAge < auditAge {
		cfg.MaxAge, changed = auditAge, true
	}
	if cfg.MaxBytes > 0 && cfg.MaxBytes < auditBytes {
		cfg.MaxBytes, changed = auditBytes, true
	}
	if cfg.Discard != jetstream.DiscardOld {
		cfg.Discard, cfg.DiscardNewPerSubject, changed = jetstream.DiscardOld, false, true
	}
	if !cfg.DenyDelete || !cfg.DenyPurge {
		cfg.DenyDelete, cfg.DenyPurge, changed = true, true, true
	}
	if cfg.NoAck {
		cfg.NoAck, changed = false, true
	}
	if cfg.MaxMsgSize > 0 && cfg.MaxMsgSize < stream.MaxAuditLine {
		cfg.MaxMsgSize, changed = stream.MaxAuditLine, true
	}
	if changed && cfg.MaxMsgSize <= 0 {
		cfg.MaxMsgSize = stream.MaxAuditLine
	}
	return changed
}

// explain says what to do about err. before is the connection's last error before the attempt.
func (a *Audit) explain(err, before error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, natsgo.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the server has no JetStream for this account: %w; switch it on (nats-server -js)", ErrNoAudit, err)
	case errors.As(err, &api) && slices.Contains([]jetstream.ErrorCode{jsSubjectsOverlap, jsNotThatStream}, api.ErrorCode):
		return fmt.Errorf("%w: another stream than %s takes %s: %w; take the subjects from it (nats stream ls --subjects)", ErrNoAudit, AuditStream, auditSubjects, err)
	case errors.As(err, &api) && slices.Contains([]jetstream.ErrorCode{jsInvalidConfig, jsMaxBytesRequired, jsTooManyStreams, jsBytesOverLimit, jsUpdateFailed}, api.ErrorCode):
		return fmt.Errorf("%w: the server refuses the stream %s of 1 GiB: %w; raise the server's limit", ErrNoAudit, AuditStream, err)
	}
	// A request without the right to it gets no answer. The server reports it as the
	// connection's last error.
	last := a.conn.LastError()
	_, subject := violation(last)
	denied := last != before && strings.HasPrefix(subject, auditPrefix) || readingDenied(AuditStream, last, before)
	if errors.Is(err, context.DeadlineExceeded) && denied {
		if subject == "$JS.API.STREAM.UPDATE."+AuditStream {
			return fmt.Errorf("%w: the stream %s keeps less than the audit has to, and the user may not change it: %w; let an administrator give it an age of 400 days, 1 GiB, messages of 96 KiB, the subjects %s, and refuse to delete messages",
				ErrNoAudit, AuditStream, last, auditSubjects)
		}
		return fmt.Errorf("%w: the user has not the rights: %w; the user console of deploy/nats/hamlet.conf has them", ErrNoAudit, last)
	}
	return fmt.Errorf("audit: %w", err)
}
