package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

var (
	// ErrTooLarge: no retry will help; make the record smaller (mail is reduced
	// before any wire) or raise message.max.bytes at the broker.
	ErrTooLarge = errors.New("record too large")

	// ErrUnknownTopic: create the topic (EnsureTopic), or mend its name.
	ErrUnknownTopic = errors.New("unknown topic")

	// ErrAuth: the broker refuses our user, password, mechanism or rights.
	ErrAuth = errors.New("not authorised")

	// ErrTLS: one side speaks TLS and the other does not, or a certificate is
	// not trusted.
	ErrTLS = errors.New("no common ground on TLS")

	// ErrClosed: the producer was closed before or while it published.
	ErrClosed = errors.New("producer closed")

	// ErrGap: retention deleted records that the state has not absorbed. Start
	// over from an empty state, or go on without them (ConsumerConfig.AcceptGap).
	ErrGap = errors.New("records lost to retention")

	// ErrBehind: the log ends before the state's position, so it is not the log
	// that the state came from: the topic was deleted and created again, or the
	// broker lost acknowledged records, or the address is another cluster's.
	ErrBehind = errors.New("log ends before the position")

	// ErrReplaced: the log has another record before the state's position than the
	// state has absorbed, so it is not the log that the state came from: the topic
	// was deleted and created again, or the broker lost acknowledged records, or the
	// address is another cluster's.
	ErrReplaced = errors.New("another log than the one absorbed")

	// ErrReload: a Handler returns it (wrapped) to be dropped and opened anew from
	// its saved state, for instance after losing the race for a save.
	ErrReload = errors.New("reload the state")
)

// permanent is the one place that decides about retries: it returns nil if
// trying err's operation again may help, and otherwise an error that says what
// to do. "Unknown topic" is transient here: it is also the answer to a topic
// just created, so callers doubt it for [patience] before they believe it.
func permanent(err error) error {
	var (
		code kafkago.Error
		cert *tls.CertificateVerificationError
		rec  tls.RecordHeaderError
		host x509.HostnameError
	)
	switch {
	case err == nil:
		return nil

	// Nobody mends a certificate while we wait, and waiting would hide it.
	case errors.As(err, &cert), errors.As(err, &host):
		return fmt.Errorf("%w: %w; give the authority that signed the broker's certificate, and an address that it names", ErrTLS, err)
	// The broker answered our handshake in plain text.
	case errors.As(err, &rec):
		return fmt.Errorf("%w: the broker speaks plain text at this port; turn TLS off or use its TLS port", ErrTLS)

	case errors.As(err, &code):
		switch code {
		// The same user and password will be refused again.
		case kafkago.SASLAuthenticationFailed, kafkago.UnsupportedSASLMechanism, kafkago.IllegalSASLState:
			return fmt.Errorf("%w: %w; check user, password and SASL mechanism", ErrAuth, err)
		// Rights do change at run time, but a service that waits for that in
		// silence looks like one that works.
		case kafkago.TopicAuthorizationFailed, kafkago.GroupAuthorizationFailed, kafkago.ClusterAuthorizationFailed:
			return fmt.Errorf("%w: %w; give the user the rights to read, write and create it", ErrAuth, err)
		// The same bytes are refused again.
		case kafkago.MessageSizeTooLarge, kafkago.RecordListTooLarge:
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		// A name that can never exist.
		case kafkago.InvalidTopic:
			return fmt.Errorf("%w: %w; a topic's name has letters, digits, '.', '_' and '-'", ErrUnknownTopic, err)
		// The request itself is wrong: our bug, or the topic's settings.
		case kafkago.InvalidTimestamp, kafkago.PolicyViolation, kafkago.UnsupportedForMessageFormat,
			kafkago.InvalidRequiredAcks, kafkago.UnsupportedVersion, kafkago.InvalidRecord,
			kafkago.InvalidPartitionNumber, kafkago.InvalidReplicationFactor, kafkago.InvalidConfiguration,
			kafkago.InvalidGroupId, kafkago.InvalidSessionTimeout, kafkago.UnsupportedCompressionType:
			return err
		}
		// Every other code is about a state of the cluster that passes:
		// elections, loading, too few replicas in sync, a full disk.
		return nil
	}
	// What is left is the network, a broker that stops or starts, or kafka-go's
	// cached picture of the cluster ("topic partition has no leader", which
	// kafka-go itself does not call temporary). They pass.
	return nil
}

// unknownTopic reports whether err says that a topic or partition does not exist.
func unknownTopic(err error) bool {
	return errors.Is(err, kafkago.UnknownTopicOrPartition) ||
		errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition)
}

// retry runs attempt, which asks client, until it succeeds, fails for good, or
// ctx ends. The error of an ended ctx names the last failure.
func retry(ctx context.Context, cfg *Config, client *kafkago.Client, what string, attempt func(context.Context) error) error {
	var (
		lines gate
		doubt time.Time // when the topic was first found missing
		last  error
	)
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := attempt(ctx)
		if err == nil {
			return struct{}{}, nil
		}
		if p := permanent(err); p != nil {
			return struct{}{}, backoff.Permanent(p)
		}
		forget(client, err)
		if !unknownTopic(err) {
			doubt = time.Time{}
		} else if doubt.IsZero() {
			doubt = time.Now()
		} else if time.Since(doubt) > patience {
			return struct{}{}, backoff.Permanent(fmt.Errorf("%w: the broker at %s has none of that name; create it, or mend its name", ErrUnknownTopic, cfg.addresses()))
		}
		if ctx.Err() == nil {
			last = err
		}
		if unknownTopic(err) || ctx.Err() != nil {
			return struct{}{}, err // it ends soon, and says so itself
		}
		if n, ok := lines.open(); ok {
			cfg.Log.Warn("kafka: trying again", "doing", what, "brokers", cfg.addresses(), "error", err, "times", n)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(newPause()), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && last != nil:
		return fmt.Errorf("%s: %w (last failure: %v)", what, context.Cause(ctx), last)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// explain adds to the error of a first contact what is probably wrong.
func explain(cfg *Config, err error) error {
	if p := permanent(err); p != nil {
		return fmt.Errorf("kafka at %s: %w", cfg.addresses(), p)
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("kafka at %s: %w; check the host's name", cfg.addresses(), err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		// A Kafka broker closes like this when SASL or TLS is missing on our side, and
		// resets where it has not read the whole of our handshake; the embedded broker
		// closes also on a wrong password.
		return fmt.Errorf("kafka at %s: the broker closed the connection (%w); check that TLS and SASL are set as the port wants them, and user and password", cfg.addresses(), err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("kafka at %s: no answer in time (%w); check that a Kafka broker listens there, and whether with TLS", cfg.addresses(), err)
	}
	return fmt.Errorf("kafka at %s: %w; check the address and that the broker runs", cfg.addresses(), err)
}
