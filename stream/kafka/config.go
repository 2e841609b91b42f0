package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/sasl"

	"hamlet/stream"
)

const (
	// metadataTTL bounds how long the transport believes what it knows of the
	// cluster; it asks again after half of it on average, and takes it as the
	// deadline of the question as well, so it must not be less than the worst
	// answer of a busy cluster. What is found wrong earlier is forgotten at once.
	metadataTTL = 3 * time.Second

	// requestTimeout bounds one request to a broker that has accepted it.
	requestTimeout = 10 * time.Second

	// connectTimeout bounds one attempt to connect: three SYN transmissions.
	connectTimeout = 3 * time.Second

	// patience is how long an answer that is wrong for a moment after a restart
	// or a creation, and right for ever otherwise, is doubted: "no such topic"
	// and "your position is beyond the log's end". A broker started again after
	// kill −9 gives them for less than 0.4 s (measured, Kafka 4.3.1).
	patience = 2 * time.Second

	// Pauses between attempts: long enough not to burden a broker that is
	// loading its logs, short enough not to be noticed after a restart of seconds.
	minPause, maxPause = 50 * time.Millisecond, 500 * time.Millisecond

	// A condition that lasts is logged after logAfter and then every logEvery.
	logAfter, logEvery = time.Second, 10 * time.Second
)

// A Config says which cluster to speak to, and how.
type Config struct {
	Brokers  []string       // host:port, at least one; the others are found through it
	ClientID string         // shown in the broker's logs and quotas; default "hamlet"
	TLS      *tls.Config    // nil: plain text
	SASL     sasl.Mechanism // nil: no authentication
	Log      *slog.Logger   // nil: silent

	// MaxRecordBytes is the largest record that a Producer accepts, key, value,
	// headers and framing; default 1 MiB − 1 KiB, which Kafka's own default of
	// message.max.bytes takes uncompressed. The broker may refuse smaller ones.
	MaxRecordBytes int
}

// withDefaults returns cfg with its zero fields filled in, or everything that
// is wrong with it.
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
	if len(errs) > 0 {
		return cfg, fmt.Errorf("kafka configuration: %w", errors.Join(errs...))
	}
	if cfg.ClientID == "" {
		cfg.ClientID = "hamlet"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxRecordBytes == 0 {
		cfg.MaxRecordBytes = 1<<20 - 1<<10
	}
	return cfg, nil
}

// addresses names the brokers in errors and logs.
func (cfg *Config) addresses() string { return strings.Join(cfg.Brokers, ", ") }

// client returns a client on a transport of its own, which learns of the given
// topics only; with none it learns of all that the cluster has. Who asks for it
// closes the transport's connections at the end.
func (cfg *Config) client(topics ...string) (*kafkago.Client, *kafkago.Transport) {
	t := &kafkago.Transport{
		Dial:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		DialTimeout:    requestTimeout,
		MetadataTTL:    metadataTTL,
		MetadataTopics: topics,
		ClientID:       cfg.ClientID,
		TLS:            cfg.TLS,
		SASL:           cfg.SASL,
	}
	return &kafkago.Client{Addr: kafkago.TCP(cfg.Brokers...), Timeout: requestTimeout, Transport: t}, t
}

// forget lets a client learn the cluster anew with its next request if err says
// that what it knows may be out of date: after a clean restart of a broker it
// would else hold on to the "no leader" that it heard during the shutdown.
func forget(client *kafkago.Client, err error) {
	for _, outdated := range []error{
		protocol.ErrNoTopic, protocol.ErrNoPartition, protocol.ErrNoLeader,
		kafkago.UnknownTopicOrPartition, kafkago.LeaderNotAvailable, kafkago.NotLeaderForPartition,
		kafkago.BrokerNotAvailable, kafkago.ReplicaNotAvailable, kafkago.FencedLeaderEpoch, kafkago.UnknownLeaderEpoch,
	} {
		if errors.Is(err, outdated) {
			// The transport has no other way; requests under way are not cut.
			client.Transport.(*kafkago.Transport).CloseIdleConnections()
			return
		}
	}
}

// A Header is one of a record's named values; names may repeat.
type Header = stream.Header

// A Record is one entry of a partition's log. A producer takes Topic, Key,
// Value, Headers and Time (zero: now); partition and offset are the log's.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
	Key       []byte // nil: no key, any partition
	Value     []byte
	Headers   []Header
	Time      time.Time
	HighWater int64 // the log's end when the record was fetched
}

// size bounds the bytes that r takes in a record batch: RECORD v2 has at most 35
// bytes of varints beside its key and value, and 10 for each header.
func (r *Record) size() int {
	n := 35 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 10 + len(h.Key) + len(h.Value)
	}
	return n
}

func toMessage(r *Record) kafkago.Message {
	return kafkago.Message{Topic: r.Topic, Key: r.Key, Value: r.Value}
}

func fromMessage(m *kafkago.Message) Record {
	r := Record{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset,
		Key: m.Key, Value: m.Value, Time: m.Time, HighWater: m.HighWaterMark,
	}
	if len(m.Headers) > 0 {
		r.Headers = make([]Header, len(m.Headers))
		for i, h := range m.Headers {
			r.Headers[i] = Header{Key: h.Key, Value: h.Value}
		}
	}
	return r
}

// newPause returns the sequence of pauses between attempts.
func newPause() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = minPause, maxPause, 2
	b.Reset()
	return b
}

// A gate lets a condition that lasts into the log: not in its first second, since
// every election and restart is over by then, and then every logEvery. It is for
// one goroutine.
type gate struct {
	began, last time.Time
	times       int // since the last line
}

// open notes that the condition holds, and reports whether to log it now and how
// often it was noted since the last line.
func (g *gate) open() (times int, ok bool) {
	now := time.Now()
	if g.began.IsZero() {
		g.began = now
	}
	g.times++
	if now.Sub(g.began) < logAfter || now.Sub(g.last) < logEvery {
		return 0, false
	}
	times, g.times, g.last = g.times, 0, now
	return times, true
}

// clear notes that the condition is over.
func (g *gate) clear() { *g = gate{} }
