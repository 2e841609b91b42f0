package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

const (
	// metadataTTL bounds the age of cached metadata. kafka-go also uses it as the
	// deadline of the metadata request, so it must exceed the slowest answer of a busy
	// cluster.
	metadataTTL = 3 * time.Second

	requestTimeout = 10 * time.Second // of one request on an open connection
	connectTimeout = 3 * time.Second  // of one attempt to connect: three SYN transmissions
)

// A Config names the cluster and says how to connect to it.
type Config struct {
	Brokers  []string       // host:port, at least one; the others are found through it
	ClientID string         // shown in the broker's logs and quotas; default "hamlet"
	TLS      *tls.Config    // nil: plain text
	SASL     sasl.Mechanism // nil: no authentication
	Log      *slog.Logger   // nil: silent

	// MaxOutage is how long Kafka may fail without a success in between, before what
	// waits for it gives up with ErrOutage. Restarts, elections and a topic that is
	// missing although it was there are such failures. 0: as long as the context lives.
	MaxOutage time.Duration

	// Seen remembers the topics that were found. Copies of a Config share it. A topic in
	// it is not called missing while brokers restart. nil: each call and each
	// Log has its own.
	Seen *SeenTopics

	// MaxRecordBytes bounds a record: key, value, headers and framing. The default, 1
	// MiB − 1 KiB, fits uncompressed into the default of message.max.bytes.
	MaxRecordBytes int
}

// withDefaults returns cfg with its zero fields set, or all its errors.
func (cfg Config) withDefaults() (Config, error) {
	var errs []error
	if len(cfg.Brokers) == 0 {
		errs = append(errs, errors.New("brokers: none given; give at least one host:port"))
	}
	for _, b := range cfg.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			errs = append(errs, fmt.Errorf("brokers: %q is not host:port", b))
		}
	}
	if cfg.MaxRecordBytes < 0 {
		errs = append(errs, fmt.Errorf("max record bytes: %d is negative", cfg.MaxRecordBytes))
	}
	if cfg.MaxOutage < 0 {
		errs = append(errs, fmt.Errorf("max outage: %v is negative", cfg.MaxOutage))
	}
	if len(errs) > 0 {
		return cfg, fmt.Errorf("kafka configuration: %w", errors.Join(errs...))
	}
	cfg.ClientID = cmp.Or(cfg.ClientID, "hamlet")
	if cfg.Seen == nil {
		cfg.Seen = new(SeenTopics)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.MaxRecordBytes = cmp.Or(cfg.MaxRecordBytes, 1<<20-1<<10)
	return cfg, nil
}

// addresses names the brokers in errors and logs.
func (cfg *Config) addresses() string { return strings.Join(cfg.Brokers, ", ") }

// client returns a client that fetches the metadata of the given topics only, or
// of all topics if none is given. The caller ends it with closeIdle.
func (cfg *Config) client(topics ...string) *kafkago.Client {
	return &kafkago.Client{
		Addr:    kafkago.TCP(cfg.Brokers...),
		Timeout: requestTimeout,
		Transport: &kafkago.Transport{
			Dial:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
			DialTimeout:    requestTimeout,
			MetadataTTL:    metadataTTL,
			MetadataTopics: topics,
			ClientID:       cfg.ClientID,
			TLS:            cfg.TLS,
			SASL:           cfg.SASL,
		},
	}
}

// closeIdle closes the client's idle connections and drops its cached metadata.
// Requests in flight go on.
func closeIdle(client *kafkago.Client) {
	client.Transport.(*kafkago.Transport).CloseIdleConnections()
}

// dialer returns a dialer whose connections close when ctx ends. kafka-go itself would
// wait for the end of a long poll, a join or a timeout.
func (cfg *Config) dialer(ctx context.Context) *kafkago.Dialer {
	return &kafkago.Dialer{
		ClientID:      cfg.ClientID,
		Timeout:       requestTimeout,
		TLS:           cfg.TLS,
		SASLMechanism: cfg.SASL,
		DialFunc: func(dialing context.Context, network, address string) (net.Conn, error) {
			dialing, cancel := context.WithCancel(dialing)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			conn, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(dialing, network, address)
			if err != nil {
				return nil, err
			}
			return &boundConn{conn, context.AfterFunc(ctx, func() { conn.Close() })}, nil
		},
	}
}

// A boundConn is a connection that a context closes.
type boundConn struct {
	net.Conn
	release func() bool // from the context
}

func (c *boundConn) Close() error {
	c.release()
	return c.Conn.Close()
}
