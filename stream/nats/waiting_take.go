package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
)

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
