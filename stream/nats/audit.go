package nats

import (
	"context"
	"errors"
	"fmt"
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

// An Audit writes and reads the lines of one model, each a stream.AuditEntry in JSON. An action
// has a line before it and one with its outcome. The stream keeps 400 days or 1 GiB, and
// its oldest lines go first; it refuses to delete others. It refuses messages larger than
// [stream.MaxAuditLine]. Whoever may write lines can still write so many that the old ones go.
// An Audit may be used concurrently.
type Audit struct {
	*store
	model string
	acked acknowledged
}

// NewAudit returns the audit of a model on conn, which the caller closes. It asks the server for
// nothing: the first line makes the stream.
func NewAudit(conn *natsgo.Conn, model string) (*Audit, error) {
	if err := stream.CheckModelName(model); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	s := &store{
		what: "audit", prefix: auditPrefix, none: errors.New("no audit"),
		want: jetstream.StreamConfig{
			Name: AuditStream, Description: "what users of hamlet's console did",
			Subjects: []string{auditSubjects}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: auditAge, MaxBytes: auditBytes, Duplicates: auditDuplicates,
			MaxMsgSize: stream.MaxAuditLine, DenyDelete: true, DenyPurge: true,
		},
		amend:  amendAudit,
		limits: "raise the server's limit, for the audit keeps 1 GiB",
		rights: "the user console of deploy/nats/hamlet.conf has them",
	}
	s.special = func(_, refusal error) error {
		if _, subject := violation(refusal); subject != "$JS.API.STREAM.UPDATE."+AuditStream {
			return nil
		}
		return s.refused(SettingUser, fmt.Errorf("the stream %s keeps less than the audit has to, and the user may not "+
			"change it: %w; let an administrator give it an age of 400 days, 1 GiB, messages of 96 KiB, the subjects %s, "+
			"and refuse to delete messages", AuditStream, refusal, auditSubjects))
	}
	if err := s.open(conn); err != nil {
		return nil, err
	}
	return &Audit{store: s, model: model}, nil
}

// Prepare makes the stream, or gives an existing one the audit's bounds. Append does so too. An
// error that wraps [ErrRefused] says what to change; others end by themselves.
func (a *Audit) Prepare(ctx context.Context) error {
	return a.attempt(ctx, func(context.Context) error { return nil })
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
		return fmt.Errorf("line of the audit: it is of model %s, and this audit of %s", stream.Clip(e.Model, 64), a.model)
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
		return a.publish(ctx, m, jetstream.WithMsgID(e.ID+"/"+step))
	})
}

// amendAudit changes what the audit promises otherwise. It lowers no bound. A stream without
// a bound of its messages gets one with other changes only, because the console may change none.
func amendAudit(a *amendment) error {
	a.takes(auditSubjects, auditSubjects)
	if a.MaxAge != 0 {
		amend(a, &a.MaxAge, max(a.MaxAge, auditAge), "age")
	}
	if a.MaxBytes > 0 {
		amend(a, &a.MaxBytes, max(a.MaxBytes, auditBytes), "bytes")
	}
	a.discards(jetstream.DiscardOld)
	amend(a, &a.DenyDelete, true, "deletion")
	amend(a, &a.DenyPurge, true, "purge")
	a.acknowledges()
	if a.MaxMsgSize > 0 || len(a.changes) > 0 {
		amend(a, &a.MaxMsgSize, max(a.MaxMsgSize, stream.MaxAuditLine), "largest message")
	}
	return nil
}
