package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

// The stream of answers that wait for a contradiction. It and KeptStream alone hold mail.
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

// Errors of a [Waiting].
var (
	// ErrNoWaiting: the server does not take answers, and will not until somebody changes it.
	// The text says what to change. Try again after minutes.
	ErrNoWaiting = errors.New("no stream for answers to wait in")

	// ErrWaitingFull: as many bytes wait as may. Go on without this answer.
	ErrWaitingFull = errors.New("the stream of waiting answers is full")

	// ErrWaitingTooLarge: the server carries no message of this size.
	ErrWaitingTooLarge = errors.New("the answer is too large for the server")
)

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
	conn  *natsgo.Conn
	js    jetstream.JetStream
	cfg   WaitingConfig
	known atomic.Bool // the stream was right, and nothing has failed since

	consumer atomic.Pointer[jetstream.Consumer] // nil: it must be made, or looked at
}

// NewWaiting returns a Waiting on conn, which the caller closes. It asks the server for nothing:
// the first Put or Take makes the stream.
func NewWaiting(conn *natsgo.Conn, cfg WaitingConfig) (*Waiting, error) {
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.Bytes = cmp.Or(cfg.Bytes, WaitingBytes)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	switch {
	case !modelName.MatchString(cfg.Model):
		return nil, fmt.Errorf("waiting answers: model name %q: only a-z, 0-9 and - are allowed", clip(cfg.Model))
	case cfg.After < time.Second || cfg.Bytes < 1<<20:
		return nil, fmt.Errorf("waiting answers: %v and %d bytes; at least a second and 1 MiB are wanted", cfg.After, cfg.Bytes)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("waiting answers: %w", err)
	}
	return &Waiting{conn: conn, js: js, cfg: cfg}, nil
}

// Put stores an answer and returns when the server has acknowledged it. It tries once, for at most
// two seconds. For two minutes the server drops a second answer of this ID. Errors that trying
// again will not cure wrap [ErrNoWaiting], [ErrWaitingFull] or [ErrWaitingTooLarge].
func (w *Waiting) Put(ctx context.Context, e *stream.Event) error {
	data, err := e.AppendProto(nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWaitingTooLarge, err)
	}
	return w.try(ctx, func(ctx context.Context) error {
		if err := w.ensure(ctx); err != nil {
			return err
		}
		_, err := w.js.Publish(ctx, WaitingSubject(w.cfg.Model), data, jetstream.WithMsgID(w.cfg.Model+"/"+e.ID),
			jetstream.WithExpectStream(WaitingStream), jetstream.WithRetryAttempts(0))
		return err
	})
}

// try does one thing with the server. After a failure the stream and the consumer are looked at
// again, because somebody may have deleted them.
func (w *Waiting) try(ctx context.Context, do func(context.Context) error) error {
	if !w.conn.IsConnected() {
		return fmt.Errorf("waiting answers: %w", ErrNoServer)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	err := do(ctx)
	if err == nil {
		return nil
	}
	err = w.explain(err)
	if !errors.Is(err, ErrWaitingFull) && !errors.Is(err, ErrWaitingTooLarge) {
		w.known.Store(false)
		w.consumer.Store(nil)
	}
	return err
}

// errNoQueue: a stream of this name exists that keeps what is done.
var errNoQueue = errors.New("it does not delete what is acknowledged (retention: workqueue)")

// explain says what to do about err.
func (w *Waiting) explain(err error) error {
	var api *jetstream.APIError
	known := errors.As(err, &api)
	switch {
	case errors.Is(err, natsgo.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Errorf("%w: %w", ErrWaitingTooLarge, err)
	case known && api.ErrorCode == jsStoreFailed && strings.Contains(api.Description, "maximum"):
		return fmt.Errorf("%w: %w", ErrWaitingFull, err)
	case errors.Is(err, natsgo.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: the server has no JetStream for this account: %w; switch it on (nats-server -js)", ErrNoWaiting, err)
	case errors.Is(err, errNoQueue):
		return fmt.Errorf("%w: the stream %s is not hamlet's: %w; delete it", ErrNoWaiting, WaitingStream, err)
	case known && slices.Contains([]jetstream.ErrorCode{jsSubjectsOverlap, jsNotThatStream}, api.ErrorCode):
		return fmt.Errorf("%w: another stream than %s takes %s: %w; take the subjects from it (nats stream ls --subjects)", ErrNoWaiting, WaitingStream, waitingSubjects, err)
	case known && slices.Contains([]jetstream.ErrorCode{jsInvalidConfig, jsMaxBytesRequired, jsTooManyStreams, jsBytesOverLimit, jsUpdateFailed}, api.ErrorCode):
		return fmt.Errorf("%w: the server refuses the stream %s: %w; lower --self-label-size, or raise the server's limit", ErrNoWaiting, WaitingStream, err)
	}
	// A request without the right to it gets no answer. The server reports it as the
	// connection's last error.
	if last := w.conn.LastError(); errors.Is(err, context.DeadlineExceeded) && waitingDenied(last) {
		return fmt.Errorf("%w: the user has not the rights: %w; the user waiting of deploy/nats/hamlet.conf has them (--self-label-nats)", ErrNoWaiting, last)
	}
	return fmt.Errorf("waiting answers: %w", err)
}

// waitingDenied reports whether a connection's last error is a refusal of what a Waiting does.
func waitingDenied(last error) bool {
	operation, subject := violation(last)
	if operation == "Subscription" {
		return strings.HasPrefix(subject, natsgo.InboxPrefix)
	}
	return strings.HasPrefix(subject, waitingPrefix) || strings.Contains(subject+".", "."+WaitingStream+".")
}

// ensure makes the stream, or gives an existing one what a Waiting promises, unless known.
func (w *Waiting) ensure(ctx context.Context) error {
	if w.known.Load() {
		return nil
	}
	age := w.cfg.After + WaitingSlack
	s, err := w.js.Stream(ctx, WaitingStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		_, err = w.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: WaitingStream, Description: "mail that hamlet answered, until the answer is learnt",
			Subjects: []string{waitingSubjects}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: age, MaxBytes: w.cfg.Bytes, Duplicates: 2 * time.Minute,
		})
		if err == nil {
			w.cfg.Log.Info("self-label: created the stream", "stream", WaitingStream, "kept", age, "bytes", w.cfg.Bytes)
		}
	case err == nil:
		cfg := s.CachedInfo().Config
		if cfg.Retention != jetstream.WorkQueuePolicy {
			return errNoQueue
		}
		if changes := w.amend(&cfg, age); len(changes) > 0 {
			if _, err = w.js.UpdateStream(ctx, cfg); err == nil {
				w.cfg.Log.Info("self-label: changed the stream", "stream", WaitingStream, "changed", changes, "kept", cfg.MaxAge, "bytes", cfg.MaxBytes)
			}
		}
	}
	w.known.Store(err == nil)
	return err
}

// amend changes in cfg what a Waiting promises otherwise, and returns the names of the changes.
// Another model's gateway may want a higher age, so the highest stays.
func (w *Waiting) amend(cfg *jetstream.StreamConfig, age time.Duration) (changes []string) {
	if !slices.ContainsFunc(cfg.Subjects, func(s string) bool { return covers(s, waitingSubjects) }) {
		cfg.Subjects = slices.DeleteFunc(cfg.Subjects, func(s string) bool { return covers(waitingSubjects, s) })
		cfg.Subjects = append(cfg.Subjects, waitingSubjects)
		changes = append(changes, "subjects")
	}
	if cfg.Discard != jetstream.DiscardNew {
		cfg.Discard = jetstream.DiscardNew
		changes = append(changes, "what goes when it is full")
	}
	if cfg.MaxAge == 0 || cfg.MaxAge < age { // 0 keeps for ever
		cfg.MaxAge = age
		changes = append(changes, "age")
	}
	if cfg.MaxBytes != w.cfg.Bytes {
		cfg.MaxBytes = w.cfg.Bytes
		changes = append(changes, "bytes")
	}
	return changes
}
