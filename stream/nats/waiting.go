package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// The stream of answers that wait for a contradiction. It and MailStream alone hold mail.
const (
	WaitingStream   = "HAMLET_WAITING"
	waitingPrefix   = "hamlet.waiting."
	waitingSubjects = waitingPrefix + ">"
)

// WaitingBytes is how much mail waits by default.
const WaitingBytes = 512 << 20

// WaitingSlack is how much longer than WaitingConfig.After an answer is kept while nobody can
// publish it: an outage of Kafka may last so long.
const WaitingSlack = 24 * time.Hour

// WaitingSubject returns where the answers of a model wait: "hamlet.waiting.default".
func WaitingSubject(model string) string { return waitingPrefix + model }

// A WaitingConfig says how long answers wait, and how many. Zero fields mean the defaults.
type WaitingConfig struct {
	Model string        // default DefaultModel
	After time.Duration // how long an answer waits; at least a second
	Bytes int64         // of the stream, for all models; default WaitingBytes
	Log   *slog.Logger  // nil: silent
}

// A Waiting keeps answers in JetStream until they are due: events of stream.Assume in the bytes of
// event.proto, each with its message. The stream is a work queue, and all gateways of a model share
// its consumer assume-<model>. A full stream refuses further ones, so that those that wait become due. What is done is
// deleted at once. What nobody takes is deleted after After and WaitingSlack. The highest After that
// anybody asked for counts, until somebody edits or deletes the stream. Each answer is taken by
// one of a model's Waitings. The methods may be called concurrently.
type Waiting struct {
	*store
	model    string
	consumer atomic.Pointer[jetstream.Consumer] // nil: it must be made, or looked at
}

// NewWaiting returns a Waiting on conn, which the caller closes. It asks the server for nothing:
// the first Put or Take makes the stream.
func NewWaiting(conn *natsgo.Conn, cfg WaitingConfig) (*Waiting, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.Bytes = cmp.Or(cfg.Bytes, WaitingBytes)
	if err := stream.CheckModelName(cfg.Model); err != nil {
		return nil, fmt.Errorf("waiting answers: %w", err)
	}
	if cfg.After < time.Second || cfg.Bytes < 1<<20 {
		return nil, fmt.Errorf("waiting answers: %v and %d bytes; at least a second and 1 MiB are wanted", cfg.After, cfg.Bytes)
	}
	age := cfg.After + WaitingSlack
	s := &store{
		what: "waiting answers", log: cfg.Log, prefix: waitingPrefix, none: errors.New("no stream for answers to wait in"),
		want: jetstream.StreamConfig{
			Name: WaitingStream, Description: "mail that hamlet answered, until the answer is learnt",
			Subjects: []string{waitingSubjects}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: age, MaxBytes: cfg.Bytes, Duplicates: 2 * time.Minute,
		},
		amend: func(a *amendment) error {
			if a.Retention != jetstream.WorkQueuePolicy {
				return errors.New("it does not delete what is acknowledged (retention: workqueue); " +
					"delete it, or use another account")
			}
			a.takes(waitingSubjects, waitingSubjects)
			a.discards(jetstream.DiscardNew)
			// Another model's gateway may want a higher age, so the highest stays. 0 keeps for ever.
			amend(a, &a.MaxAge, max(a.MaxAge, age), "age")
			amend(a, &a.MaxBytes, cfg.Bytes, "bytes")
			return nil
		},
		older:  true,
		rights: "the user waiting of deploy/nats/hamlet.conf has them",
	}
	if err := s.open(conn); err != nil {
		return nil, err
	}
	return &Waiting{store: s, model: cfg.Model}, nil
}

// Put stores an answer and returns when the server has acknowledged it. It tries once, for at most
// two seconds. For two minutes the server drops a second answer of this ID. Errors that trying
// again will not cure wrap [ErrRefused], [stream.ErrFull] or [stream.ErrTooLarge].
func (w *Waiting) Put(ctx context.Context, e *stream.Event) error {
	data, err := e.AppendProto(nil)
	if err != nil {
		return fmt.Errorf("waiting answers: %w: %w", stream.ErrTooLarge, err)
	}
	m := &natsgo.Msg{Subject: WaitingSubject(w.model), Data: data}
	return w.try(ctx, func(ctx context.Context) error { return w.publish(ctx, m, jetstream.WithMsgID(w.model+"/"+e.ID)) })
}

// try does one thing with the server. After a failure the consumer is looked at again too.
func (w *Waiting) try(ctx context.Context, do func(context.Context) error) error {
	err := w.attempt(ctx, do)
	if err != nil && !errors.Is(err, stream.ErrFull) && !errors.Is(err, stream.ErrTooLarge) {
		w.consumer.Store(nil)
	}
	return err
}
