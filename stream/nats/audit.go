package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
func amendAudit(a *amendment) {
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
}

// MaxAuditRead is how many lines Read returns at most.
const MaxAuditRead = 10_000

// Read returns the newest lines of the audit, at most n, that were written since a time (zero:
// all), the newest first. It reads the stream back from its end. bad is how many messages on
// the way are no lines. Without a stream there are none.
func (a *Audit) Read(ctx context.Context, n int, since time.Time) (lines []stream.AuditEntry, bad int, err error) {
	n = min(n, MaxAuditRead)
	if !a.conn.IsConnected() {
		return nil, 0, fmt.Errorf("read the audit: %w", ErrNoServer)
	}
	state, err := streamState(ctx, a.js, AuditStream, "the audit")
	if err != nil {
		return nil, 0, fmt.Errorf("read the audit: %w", err)
	}
	if state.Msgs == 0 || n <= 0 {
		return nil, 0, nil
	}
	end := state.LastSeq + 1 // messages from there on have been read
	for step := uint64(n); end > state.FirstSeq && len(lines) < n; step *= 2 {
		begin := state.FirstSeq
		if end-begin > step {
			begin = end - step
		}
		var found []stream.AuditEntry
		older := false // a message is older than since
		err := a.each(ctx, begin, end-1, func(e stream.AuditEntry, at *jetstream.MsgMetadata, err error) {
			switch {
			case at.Timestamp.Before(since):
				older = true
			case err != nil:
				bad++
			default:
				found = append(found, e)
			}
		})
		if err != nil {
			return nil, 0, fmt.Errorf("read the audit: %w", err)
		}
		for i := len(found) - 1; i >= 0 && len(lines) < n; i-- {
			lines = append(lines, found[i])
		}
		if older {
			break
		}
		end = begin
	}
	return lines, bad, nil
}

// each calls take for the lines of this model from one message to another.
func (a *Audit) each(ctx context.Context, first, last uint64,
	take func(e stream.AuditEntry, at *jetstream.MsgMetadata, err error)) error {
	messages := stored{
		stream: AuditStream, subjects: []string{AuditSubject(a.model)}, first: first, last: last, what: "the audit",
	}
	return messages.each(ctx, a.conn, func(m jetstream.Msg, _ uint64) bool {
		at, err := m.Metadata()
		if err != nil {
			return true // it came from no stream
		}
		e, err := stream.DecodeAuditEntry(m.Data())
		if err == nil && e.Model != a.model {
			err = errors.New("a line of another model than its subject")
		}
		take(e, at, err)
		return true
	})
}

// acknowledged are the incidents that somebody has acknowledged, up to a message of the stream.
type acknowledged struct {
	mu   sync.Mutex // held while the stream is read
	seen uint64     // the sequence of the last message that was read; guarded by mu
	all  map[string]stream.AuditEntry
}

// maxAcknowledged bounds what is known of incidents: the oldest are lost.
const maxAcknowledged = 10_000

// Acknowledged returns who acknowledged which incident, by the target of the action; of several
// the last. It reads what was written since the last call.
func (a *Audit) Acknowledged(ctx context.Context) (map[string]stream.AuditEntry, error) {
	k := &a.acked
	k.mu.Lock()
	defer k.mu.Unlock()
	if !a.conn.IsConnected() {
		return nil, fmt.Errorf("read the audit: %w", ErrNoServer)
	}
	state, err := streamState(ctx, a.js, AuditStream, "the audit")
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	if k.all == nil || state.LastSeq < k.seen { // another stream of this name
		k.seen, k.all = 0, map[string]stream.AuditEntry{}
	}
	if state.Msgs > 0 && state.LastSeq > k.seen {
		take := func(e stream.AuditEntry, at *jetstream.MsgMetadata, err error) {
			k.seen = at.Sequence.Stream // what was read is not read again, even after an error
			if err == nil && e.Action == stream.ActionAcknowledge && e.Outcome == stream.AuditDone && e.Target != "" {
				k.all[e.Target] = e
			}
		}
		err := a.each(ctx, max(k.seen+1, state.FirstSeq), state.LastSeq, take)
		if err != nil {
			return nil, fmt.Errorf("read the audit: %w", err)
		}
		k.seen = state.LastSeq
	}
	for len(k.all) > maxAcknowledged {
		oldest := ""
		for target, e := range k.all {
			if oldest == "" || e.Time.Before(k.all[oldest].Time) {
				oldest = target
			}
		}
		delete(k.all, oldest)
	}
	return maps.Clone(k.all), nil
}
