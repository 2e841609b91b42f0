package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// readTimeout bounds the wait for the next message of a stream.
const readTimeout = 10 * time.Second

// A MessageError says that a message of a stream, or a line of one, cannot be read.
type MessageError struct {
	Sequence uint64 // of the message in the stream
	Err      error
}

// Error names the message.
func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Sequence, e.Err) }

// Unwrap returns Err.
func (e *MessageError) Unwrap() error { return e.Err }

// A stored names messages that a stream of JetStream holds.
type stored struct {
	stream   string
	subjects []string
	since    time.Time // of the first message; zero: all
	first    uint64    // or its sequence in the stream; 0: all
	last     uint64    // sequence of the last message; 0: the stream's
	what     string    // they are, for an error
}

// each calls take for each message, as far as the stream has come when it begins, in order,
// until take returns false. Without a stream there is none. When the server goes away it waits
// for some seconds, and then returns an error.
func (s *stored) each(ctx context.Context, conn *natsgo.Conn, take func(m jetstream.Msg, sequence uint64) bool) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	before := conn.LastError()
	consumer, last, err := s.open(ctx, js)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil
	case err != nil:
		return readingError(err, s.stream, s.what, conn.LastError(), before)
	}
	// Without waiting for the answer. The server lets a consumer go by itself too, but takes a thousand a stream, and
	// a script that asks often would reach that.
	defer func() {
		_ = conn.Publish(jetstream.DefaultAPIPrefix+"CONSUMER.DELETE."+s.stream+"."+consumer.CachedInfo().Name, nil)
	}()
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages(s.pull(last)...)
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, at, err := next(ctx, messages)
		if err != nil {
			return err
		}
		if at.Sequence.Stream > last {
			return nil
		}
		if !take(m, at.Sequence.Stream) || at.NumPending == 0 || at.Sequence.Stream >= last {
			return nil
		}
	}
}

// pull asks the server for no more messages at once than there may be, so that few come that
// are not wanted.
func (s *stored) pull(last uint64) []jetstream.PullMessagesOpt {
	const usual = 500 // of the library
	if s.last == 0 || last < s.first || last-s.first+1 >= usual {
		return nil
	}
	return []jetstream.PullMessagesOpt{jetstream.PullMaxMessages(int(last - s.first + 1))}
}

var errDenied = errors.New("the user may not read")

// readingError says why a stream cannot be read. now and before are the connection's last
// errors.
func readingError(err error, stream, what string, now, before error) error {
	switch {
	case errors.Is(err, natsgo.ErrNoResponders):
		return fmt.Errorf("the server has no JetStream for this user: %w", err)
	case readingDenied(stream, now, before):
		return fmt.Errorf("%w %s: %w; deploy/nats/hamlet.conf says who may", errDenied, what, now)
	}
	return err
}

// open returns a consumer of the messages, and the sequence of the last one that is wanted.
func (s *stored) open(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, uint64, error) {
	first, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	found, err := js.Stream(first, s.stream)
	if err != nil {
		return nil, 0, err
	}
	second, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	consumer, err := js.OrderedConsumer(second, s.stream, inOrder(s.subjects, max(1, s.first)-1, s.since))
	last := found.CachedInfo().State.LastSeq
	if s.last > 0 {
		last = min(last, s.last)
	}
	return consumer, last, err
}

// inOrder describes a consumer that begins behind a message, or without one (0) at a time (zero: at
// the first message).
func inOrder(subjects []string, last uint64, since time.Time) jetstream.OrderedConsumerConfig {
	cfg := jetstream.OrderedConsumerConfig{
		FilterSubjects: subjects,
		// With more attempts the library tries for ever while the server is away, whatever ctx says.
		MaxResetAttempts: 1,
		// The server keeps a consumer that nobody reads so long, five minutes by default, and takes a thousand a stream.
		InactiveThreshold: time.Minute,
	}
	switch {
	case last > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, last+1
	case !since.IsZero():
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &since
	}
	return cfg
}

// streamState returns how much a stream holds: nothing if there is none. What says what it
// holds, for an error.
func streamState(ctx context.Context, js jetstream.JetStream, name, what string) (jetstream.StreamState, error) {
	before := js.Conn().LastError()
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	s, err := js.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return jetstream.StreamState{}, nil
	case err != nil:
		return jetstream.StreamState{}, readingError(err, name, what, js.Conn().LastError(), before)
	}
	return s.CachedInfo().State, nil
}

// next returns the next message and where it stands in the stream.
func next(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, *jetstream.MsgMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	m, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	at, err := m.Metadata()
	return m, at, err
}

// readingDenied reports whether last, a connection's last error, is a refusal to read a stream
// that is newer than before. A connection keeps its last error until it reconnects.
func readingDenied(name string, last, before error) bool {
	return last != before && refuses(last, name, "")
}
