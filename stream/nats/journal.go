package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	*store
	subject string // of its lines
}

// NewJournal returns a journal on conn, which the caller closes. It asks the server for
// nothing: the first Append makes the stream.
func NewJournal(conn *natsgo.Conn, cfg JournalConfig) (*Journal, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.Age, cfg.Bytes = cmp.Or(cfg.Age, JournalAge), cmp.Or(cfg.Bytes, JournalBytes)
	if err := stream.CheckModelName(cfg.Model); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if cfg.Age < time.Second || cfg.Bytes < 1<<20 {
		return nil, fmt.Errorf("journal: an age of %v and %d bytes; at least a second and 1 MiB are wanted",
			cfg.Age, cfg.Bytes)
	}
	subject := JournalSubject(cfg.Model)
	if cfg.Labels {
		subject = JournalLabelSubject(cfg.Model)
	}
	s := &store{
		what: "journal", log: cfg.Log, prefix: journalPrefix, theirs: cfg.Labels, none: errors.New("no journal of decisions"),
		want: jetstream.StreamConfig{
			Name: JournalStream, Description: "what hamlet's scorers decided",
			Subjects: []string{journalSubjects}, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, Replicas: cmp.Or(cfg.Replicas, 1), MaxAge: cfg.Age, MaxBytes: cfg.Bytes,
			Duplicates: duplicates(cfg.Age),
		},
		rights: "let it publish to $JS.API.STREAM.*." + JournalStream + " and " +
			journalSubjects + ", and subscribe to its own inbox (deploy/nats/hamlet.conf)",
	}
	if err := s.open(conn); err != nil {
		return nil, err
	}
	return &Journal{s, subject}, nil
}

// Append writes entries as one message, a line each, and returns when the server has
// acknowledged it. It tries once, for at most two seconds. id names the message: for two
// minutes the server drops a second one of that id. Trying again later than that after an
// error may write the entries twice, if the server had stored them and could not say so.
// Errors that trying again will not cure wrap [ErrRefused] or [stream.ErrTooLarge].
func (j *Journal) Append(ctx context.Context, id string, entries []stream.JournalEntry) error {
	m := natsgo.NewMsg(j.subject)
	for i := range entries {
		var err error
		if m.Data, err = entries[i].AppendJSON(m.Data); err != nil {
			return fmt.Errorf("journal: %w: %w", stream.ErrTooLarge, err)
		}
	}
	return j.attempt(ctx, func(ctx context.Context) error { return j.publish(ctx, m, jetstream.WithMsgID(id)) })
}
