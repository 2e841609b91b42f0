package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"hamlet/stream"
)

var (
	// ErrTooLarge: retrying cannot help. Make the record smaller, or raise
	// message.max.bytes at the broker.
	ErrTooLarge = stream.ErrTooLarge

	// ErrUnknownTopic: create the topic with Config.Ensure, or correct its name.
	ErrUnknownTopic = stream.ErrNoLog

	// ErrPartitions: a log is a topic of one partition, and this one has more.
	ErrPartitions = errors.New("a log has one partition")

	// ErrOutage: nothing succeeded for Config.MaxOutage. See to the brokers and start
	// again.
	ErrOutage = errors.New("kafka outage")

	// ErrAuth: the broker refuses the user, password, SASL mechanism or rights.
	ErrAuth = stream.ErrDenied

	// ErrTLS: only one side uses TLS, or a certificate is not trusted.
	ErrTLS = errors.New("TLS does not match")

	// ErrClosed: the log was closed before Append or during it.
	ErrClosed = errors.New("log closed")
)

// severalPartitions returns the error of a topic that has n partitions, and should be a log.
func severalPartitions(n int) error { return fmt.Errorf("%w, and this has %d", ErrPartitions, n) }

// permanent returns nil if the same operation may succeed later, otherwise an error
// that says what to do. Unknown topic counts as transient, because a new topic and a
// broker that starts get it too; [outage] decides.
func permanent(err error) error {
	var code kafkago.Error
	switch {
	case err == nil:
		return nil
	case certificateRefused(err):
		return fmt.Errorf("%w: %w; the broker wants a certificate of our own that an authority it trusts has signed",
			ErrTLS, err)
	case expired(err):
		return fmt.Errorf("%w: %w; renew the broker's certificate, or correct the clock here", ErrTLS, err)
	// Nobody replaces a certificate while we wait, and waiting would hide the error.
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.HostnameError)):
		return fmt.Errorf("%w: %w; give the authority that signed the broker's certificate, "+
			"and an address that it names", ErrTLS, err)
	// The broker answered the TLS handshake in plain text.
	case errors.As(err, new(tls.RecordHeaderError)):
		return fmt.Errorf("%w: the broker speaks plain text at this port; turn TLS off or use its TLS port", ErrTLS)
	case !errors.As(err, &code):
		// The network, a broker that stops or starts, or kafka-go's cached metadata
		// ("topic partition has no leader"). They pass.
		return nil
	}
	switch code {
	// The same user and password will be refused again.
	case kafkago.SASLAuthenticationFailed, kafkago.UnsupportedSASLMechanism, kafkago.IllegalSASLState:
		return fmt.Errorf("%w: %w; check user, password and SASL mechanism", ErrAuth, err)
	// Rights can change, but a service that waits for that in silence seems to work.
	case kafkago.TopicAuthorizationFailed, kafkago.GroupAuthorizationFailed, kafkago.ClusterAuthorizationFailed:
		return fmt.Errorf("%w: %w; give the user the rights to read, write and create it", ErrAuth, err)
	// The same bytes are refused again.
	case kafkago.MessageSizeTooLarge, kafkago.RecordListTooLarge:
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	// A name that can never exist.
	case kafkago.InvalidTopic:
		return fmt.Errorf("%w: %w; a topic's name has letters, digits, '.', '_' and '-'", ErrUnknownTopic, err)
	// The clock of this machine, mostly: a topic takes no records from an hour ahead on.
	case kafkago.InvalidTimestamp:
		return fmt.Errorf("%w; see to the clock of this machine, or to message.timestamp.after.max.ms of the topic", err)
	// The request itself is wrong: our bug, or the topic's settings.
	case kafkago.PolicyViolation, kafkago.UnsupportedForMessageFormat,
		kafkago.InvalidRequiredAcks, kafkago.UnsupportedVersion, kafkago.InvalidRecord,
		kafkago.InvalidPartitionNumber, kafkago.InvalidReplicationFactor, kafkago.InvalidConfiguration,
		kafkago.InvalidGroupId, kafkago.InvalidSessionTimeout, kafkago.UnsupportedCompressionType:
		return err
	}
	// Every other code is a passing state of the cluster: elections, loading, too few
	// in-sync replicas, a full disk.
	return nil
}

// certificateRefused reports whether the other side refused our certificate, or wants
// one. The alert has no exported type. In TLS 1.2 a missing certificate is a "handshake
// failure", which can also mean that the two sides share no cipher.
func certificateRefused(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" &&
		(strings.Contains(alert.Err.Error(), "certificate") || strings.Contains(alert.Err.Error(), "handshake failure"))
}

// expired reports whether the other side's certificate has expired, or is not valid yet.
func expired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// unknownTopic reports whether err says that a topic or partition does not exist. That
// alone proves nothing: kafka-go says so of every topic while no broker answers.
func unknownTopic(err error) bool {
	return errors.Is(err, kafkago.UnknownTopicOrPartition) ||
		errors.Is(err, protocol.ErrNoTopic) || errors.Is(err, protocol.ErrNoPartition)
}

// explain adds the probable cause to the error of a first request.
func explain(cfg *Config, err error) error {
	permanent := permanent(err)
	switch {
	case permanent != nil:
		return fmt.Errorf("kafka at %s: %w", cfg.addresses(), permanent)
	case errors.As(err, new(*net.DNSError)):
		return fmt.Errorf("kafka at %s: %w; check the host's name", cfg.addresses(), err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		// A broker closes the connection when SASL or TLS is missing on our side.
		return fmt.Errorf("kafka at %s: the broker closed the connection (%w); "+
			"check TLS, a certificate of our own, SASL, user and password", cfg.addresses(), err)
	// A broker without TLS may take a handshake for the size of a request, and wait for it.
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("kafka at %s: no answer in time (%w); "+
			"check that a Kafka broker listens there, and whether with TLS", cfg.addresses(), err)
	}
	return fmt.Errorf("kafka at %s: %w; check the address and that the broker runs", cfg.addresses(), err)
}
