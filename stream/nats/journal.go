package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// The stream of the journal of decisions.
const (
	JournalStream   = "HAMLET_DECISIONS"
	journalPrefix   = "hamlet.decisions."
	journalSubjects = journalPrefix + ">"
)

// How long and how much the journal keeps by default.
const (
	JournalAge   = 14 * 24 * time.Hour
	JournalBytes = 128 << 20 // some 300,000 decisions
)

// JournalSubject returns where a model's decisions are published: "hamlet.decisions.default".
func JournalSubject(model string) string { return journalPrefix + model }

// JournalLabelSubject returns where the labels of decided messages are published, so that the
// right to it is none to JournalSubject: "hamlet.decisions.default.labels".
func JournalLabelSubject(model string) string { return JournalSubject(model) + ".labels" }

// Errors of a [Journal].
var (
	// ErrNoJournal: the server does not take lines, and will not until somebody changes
	// it. The text says what to change. Try again after minutes.
	ErrNoJournal = errors.New("no journal of decisions")

	// ErrJournalTooLarge: the server carries no message of this size. The same lines will
	// be refused again.
	ErrJournalTooLarge = errors.New("the lines of the journal are too large for the server")
)

// A JournalConfig says how much a journal keeps. Zero fields mean the defaults.
type JournalConfig struct {
	Model string        // default DefaultModel
	Age   time.Duration // default JournalAge
	Bytes int64         // of the stream; default JournalBytes
	Log   *slog.Logger  // nil: silent

	Replicas int // of the stream, if it is to be created; default 1

	// Labels writes labels, not decisions. It leaves the stream as it is, for that is the
	// scorers'. Where there is none, Append fails.
	Labels bool
}

// A Journal writes decisions to JetStream, or with Labels the labels of these messages. A
// message has one or more lines, each a stream.JournalEntry in JSON. A scorer makes the stream.
// It keeps Age and Bytes at most, and its oldest lines go first. [ReadJournal] reads both kinds
// of lines, [FollowJournal] as they come. A Journal is for one goroutine.
type Journal struct {
	conn  *natsgo.Conn
	js    jetstream.JetStream
	cfg   JournalConfig
	known bool // the stream was right, and no publication has failed since

	refused error // the connection's last error, when it was why an attempt failed
}

// NewJournal returns a journal on conn, which the caller closes. It asks the server for
// nothing: the first Append makes the stream.
func NewJournal(conn *natsgo.Conn, cfg JournalConfig) (*Journal, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.Age, cfg.Bytes = cmp.Or(cfg.Age, JournalAge), cmp.Or(cfg.Bytes, JournalBytes)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Replicas = cmp.Or(cfg.Replicas, 1)
	switch {
	case cfg.Replicas < 0 || cfg.Replicas > 5:
		return nil, fmt.Errorf("journal: %d replicas: JetStream keeps 1 to 5", cfg.Replicas)
	case !modelName.MatchString(cfg.Model):
		return nil, fmt.Errorf("journal: model name %q: only a-z, 0-9 and - are allowed", clip(cfg.Model))
	case cfg.Age < time.Second || cfg.Bytes < 1<<20:
		return nil, fmt.Errorf("journal: an age of %v and %d bytes; at least a second and 1 MiB are wanted", cfg.Age, cfg.Bytes)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &Journal{conn: conn, js: js, cfg: cfg}, nil
}

// Append writes entries as one message, a line each, and returns when the server has
// acknowledged it. It tries once, for at most two seconds. id names the message: for two
// minutes the server drops a second one of that id. Trying again later than that after an
// error may write the entries twice, if the server had stored them and could not say so.
// Errors that trying again will not cure wrap [ErrNoJournal] or [ErrJournalTooLarge].
func (j *Journal) Append(ctx context.Context, id string, entries []stream.JournalEntry) error {
	m := natsgo.NewMsg(JournalSubject(j.cfg.Model))
	if j.cfg.Labels {
		m.Subject = JournalLabelSubject(j.cfg.Model)
	}
	for i := range entries {
		var err error
		if m.Data, err = entries[i].AppendJSON(m.Data); err != nil {
			return fmt.Errorf("%w: %w", ErrJournalTooLarge, err)
		}
	}
	if !j.conn.IsConnected() {
		j.known = false
		return fmt.Errorf("journal: %w", ErrNoServer)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	before := j.conn.LastError()
	err := j.ensure(ctx)
	if err == nil {
		_, err = j.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(JournalStream), jetstream.WithRetryAttempts(0))
	}
	if err == nil {
		return nil
	}
	j.known = false // the stream may have been deleted
	return j.explain(err, before)
}

// explain says what to do about err. before is the connection's last error before the attempt.
func (j *Journal) explain(err, before error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, natsgo.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Errorf("%w: %w", ErrJournalTooLarge, err)
	case errors.Is(err, natsgo.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the server has no JetStream for this account: %w; switch it on (nats-server -js), or go without (--no-journal)", ErrNoJournal, err)
	case errors.As(err, &api) && slices.Contains([]jetstream.ErrorCode{jsSubjectsOverlap, jsNotThatStream}, api.ErrorCode):
		return fmt.Errorf("%w: another stream than %s takes %s: %w; take the subjects from it (nats stream ls --subjects)", ErrNoJournal, JournalStream, journalSubjects, err)
	case errors.As(err, &api) && api.ErrorCode == jsNoReplicasHere:
		return fmt.Errorf("%w: a server that is alone cannot keep %d replicas of the stream %s: %w; ask for one (--journal-replicas 1), or name a cluster",
			ErrNoJournal, j.cfg.Replicas, JournalStream, err)
	case errors.As(err, &api) && slices.Contains([]jetstream.ErrorCode{jsInvalidConfig, jsMaxBytesRequired, jsTooManyStreams, jsBytesOverLimit, jsUpdateFailed}, api.ErrorCode):
		return fmt.Errorf("%w: the server refuses the stream %s: %w; lower --journal-size, or raise the server's limit", ErrNoJournal, JournalStream, err)
	}
	// A request without the right to it gets no answer. The server reports it as the
	// connection's last error.
	// It reports a refused subscription for answers once, and later attempts fail by it too.
	last := j.conn.LastError()
	if errors.Is(err, context.DeadlineExceeded) && (writingDenied(last, before) || last != nil && last == j.refused) {
		j.refused = last
		return fmt.Errorf("%w: the user has not the rights: %w; let it publish to $JS.API.STREAM.*.%s and %s, and subscribe to its own inbox (deploy/nats/hamlet.conf)",
			ErrNoJournal, last, JournalStream, journalSubjects)
	}
	return fmt.Errorf("journal: %w", err)
}

// writingDenied reports whether last, a connection's last error, is a refusal to write the
// journal that is newer than before. A connection keeps its last error until it reconnects.
func writingDenied(last, before error) bool {
	_, subject := violation(last)
	return last != before && strings.HasPrefix(subject, journalPrefix) || readingDenied(JournalStream, last, before)
}

// ensure makes the stream, or gives an existing one the journal's bounds, unless known.
func (j *Journal) ensure(ctx context.Context) error {
	if j.known || j.cfg.Labels {
		return nil
	}
	s, err := j.js.Stream(ctx, JournalStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		_, err = j.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: JournalStream, Description: "what hamlet's scorers decided",
			Subjects: []string{journalSubjects}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: j.cfg.Replicas, MaxAge: j.cfg.Age, MaxBytes: j.cfg.Bytes,
			Duplicates: min(2*time.Minute, j.cfg.Age),
		})
		if err == nil {
			j.cfg.Log.Info("journal: created the stream", "stream", JournalStream, "kept", j.cfg.Age, "bytes", j.cfg.Bytes)
		}
	case err == nil:
		cfg := s.CachedInfo().Config
		if changes := j.amend(&cfg); len(changes) > 0 {
			if _, err = j.js.UpdateStream(ctx, cfg); err == nil {
				j.cfg.Log.Info("journal: changed the stream", "stream", JournalStream, "changed", changes, "kept", j.cfg.Age, "bytes", j.cfg.Bytes)
			}
		}
	}
	j.known = err == nil
	return err
}

// amend changes in cfg what the journal promises otherwise, and returns the names of the
// changes.
func (j *Journal) amend(cfg *jetstream.StreamConfig) (changes []string) {
	if !slices.ContainsFunc(cfg.Subjects, func(s string) bool { return covers(s, journalSubjects) }) {
		cfg.Subjects = slices.DeleteFunc(cfg.Subjects, func(s string) bool { return covers(journalSubjects, s) })
		cfg.Subjects = append(cfg.Subjects, journalSubjects)
		changes = append(changes, "subjects")
	}
	if cfg.Discard != jetstream.DiscardOld {
		cfg.Discard, cfg.DiscardNewPerSubject = jetstream.DiscardOld, false
		changes = append(changes, "what goes when it is full")
	}
	if cfg.MaxAge != j.cfg.Age {
		cfg.MaxAge, cfg.Duplicates = j.cfg.Age, min(2*time.Minute, j.cfg.Age)
		changes = append(changes, "age")
	}
	if cfg.MaxBytes != j.cfg.Bytes {
		cfg.MaxBytes = j.cfg.Bytes
		changes = append(changes, "bytes")
	}
	if cfg.NoAck {
		cfg.NoAck = false
		changes = append(changes, "acknowledgements")
	}
	return changes
}
