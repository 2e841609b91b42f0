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
		return nil, fmt.Errorf("waiting answers: %v and %d bytes; at least a second and 1 MiB are wanted",
			cfg.After, cfg.Bytes)
	}
	age := cfg.After + WaitingSlack
	s := &store{
		what: "waiting answers", log: cfg.Log, prefix: waitingPrefix, none: errors.New("no stream for answers to wait in"),
		want: jetstream.StreamConfig{
			Name: WaitingStream, Description: "mail that hamlet answered, until the answer is learnt",
			Subjects: []string{waitingSubjects}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
			Storage: jetstream.FileStorage, Replicas: 1, MaxAge: age, MaxBytes: cfg.Bytes, Duplicates: 2 * time.Minute,
		},
		foreign: func(found *jetstream.StreamConfig) error {
			if found.Retention != jetstream.WorkQueuePolicy {
				return errors.New("it does not delete what is acknowledged (retention: workqueue); " +
					"delete it, or use another account")
			}
			return nil
		},
		amend: func(a *amendment) {
			a.takes(waitingSubjects, waitingSubjects)
			a.discards(jetstream.DiscardNew)
			// Another model's gateway may want a higher age, so the highest stays. 0 keeps for ever.
			amend(a, &a.MaxAge, max(a.MaxAge, age), "age")
			amend(a, &a.MaxBytes, cfg.Bytes, "bytes")
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

// How a consumer takes waiting answers.
const (
	// takenAtMost bounds the answers of a model that are taken and not done. Those that were put
	// back count too. It is a few times prefetched, for as many gateways.
	takenAtMost = 64
	prefetched  = 8 // by each gateway

	// takenFor is when the server gives an answer to somebody else, if nobody has said what
	// became of it.
	takenFor = 2 * time.Minute

	pullTime  = 10 * time.Second // of one request for more; a server that is gone is noticed after it
	drainTime = 2 * time.Second
)

// A WaitingAnswer is one that was taken. One of its methods says what becomes of it.
type WaitingAnswer struct {
	Event  stream.Event // of stream.Assume
	Stored time.Time    // by the server's clock; the order of the answers
	Err    error        // not nil: what waited is no answer

	message jetstream.Msg
}

// Done deletes the answer from the stream. If the server does not hear of it, the answer comes again
// after two minutes.
func (a *WaitingAnswer) Done() error { return a.message.Ack() }

// Later puts the answer back for a time.
func (a *WaitingAnswer) Later(delay time.Duration) error { return a.message.NakWithDelay(delay) }

// Receive calls handle for each answer, those that have waited longest first, until ctx ends; then
// it returns nil. It takes a few answers ahead, and each is given to somebody else two minutes after
// it was taken. So handle waits less than a minute in all. An error says why there are no more: call
// Receive again.
func (w *Waiting) Receive(ctx context.Context, handle func(*WaitingAnswer)) error {
	var messages jetstream.MessagesContext
	err := w.try(ctx, func(ctx context.Context) error {
		c, err := w.shared(ctx)
		if err != nil {
			return err
		}
		messages, err = c.Messages(jetstream.PullMaxMessages(prefetched), jetstream.PullExpiry(pullTime))
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			if ctx.Err() != nil {
				putBack(messages)
				return nil
			}
			w.forget()
			w.consumer.Store(nil)
			return w.explain(err, nil)
		}
		handle(decodeAnswer(m))
	}
}

// putBack ends the subscription and puts back what was taken ahead.
func putBack(messages jetstream.MessagesContext) {
	messages.Drain()
	for {
		m, err := messages.Next(jetstream.NextMaxWait(drainTime))
		if err != nil {
			return
		}
		_ = m.Nak() // or it comes again after takenFor
	}
}

func decodeAnswer(m jetstream.Msg) *WaitingAnswer {
	a := &WaitingAnswer{message: m}
	about, err := m.Metadata()
	if err != nil {
		a.Err = fmt.Errorf("when it was stored: %w", err)
		return a
	}
	a.Stored = about.Timestamp
	if a.Event, a.Err = stream.DecodeProto(m.Data()); a.Err == nil {
		a.Err = checkAssumption(&a.Event)
	}
	return a
}

// checkAssumption refuses what is no answer: nobody makes labels of another kind by this stream.
func checkAssumption(e *stream.Event) error {
	if e.Action != stream.Assume || e.Of == "" {
		return errors.New("action: only an answer about a message waits here")
	}
	return e.Validate()
}

// shared returns the consumer of the model's answers, which all of its gateways share.
func (w *Waiting) shared(ctx context.Context) (jetstream.Consumer, error) {
	if c := w.consumer.Load(); c != nil {
		return *c, nil
	}
	c, err := w.js.CreateOrUpdateConsumer(ctx, WaitingStream, jetstream.ConsumerConfig{
		Durable: "assume-" + w.model, Description: "answers that become labels", FilterSubject: WaitingSubject(w.model),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: takenFor, MaxAckPending: takenAtMost, MaxDeliver: -1,
	})
	if err != nil {
		return nil, err
	}
	w.consumer.Store(&c)
	return c, nil
}

// A WaitingState says what waits.
type WaitingState struct {
	Answers int       // of the model
	Oldest  time.Time // of the model, when the server stored it; zero: none waits
}

// State asks the server what waits.
func (w *Waiting) State(ctx context.Context) (state WaitingState, err error) {
	err = w.try(ctx, func(ctx context.Context) error {
		c, err := w.shared(ctx)
		if err != nil {
			return err
		}
		info, err := c.Info(ctx)
		if err != nil {
			return err
		}
		state.Answers = int(info.NumPending) + info.NumAckPending
		if state.Answers == 0 {
			return nil
		}
		s, err := w.js.Stream(ctx, WaitingStream)
		if err != nil {
			return err
		}
		// The stream's first time is that of all models.
		oldest, err := s.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(WaitingSubject(w.model)))
		if errors.Is(err, jetstream.ErrMsgNotFound) { // it was done just now
			return nil
		}
		if err != nil {
			return err
		}
		state.Oldest = oldest.Time
		return nil
	})
	return state, err
}
