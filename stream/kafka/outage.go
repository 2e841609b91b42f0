package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// errIncomplete: the cluster does not know itself yet, so it may not know its topics.
var errIncomplete = errors.New("the cluster is not complete yet")

// SeenTopics are the topics that were found, with the number of their partitions. The
// zero value is empty. Its methods are safe for concurrent use.
type SeenTopics struct {
	mu         sync.Mutex
	partitions map[string]int
}

// add records that a topic has so many partitions. The number never falls.
func (s *SeenTopics) add(topic string, partitions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partitions == nil {
		s.partitions = make(map[string]int)
	}
	s.partitions[topic] = max(s.partitions[topic], partitions)
}

// count returns how many partitions of a topic were found; 0 means that it was not.
func (s *SeenTopics) count(topic string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partitions[topic]
}

// An outage is the time since the first failure of an operation that has not succeeded
// since. Its zero value has not begun.
//
//	what Kafka says                                    what failed returns
//	a permanent error                                  that error
//	no such topic or partition, never seen, for        ErrUnknownTopic
//	gracePeriod, by a complete cluster each time
//	anything, for MaxOutage                            ErrOutage
//	anything else: no connection, no leader, loading,  nil: try again
//	no such topic although it was seen, …
//
// One goroutine uses an outage.
type outage struct {
	began    time.Time   // the first failure; zero: none
	absent   grace       // the topic or partition was never seen, and is unknown
	warnings rateLimiter // about failures that pass
}

// failed takes the error of an attempt on a client's topic. final is not nil if there
// is to be no other attempt. Otherwise cause is the error as it is to be shown, and
// failed logs it from time to time. It may ask for the cluster's metadata.
func (o *outage) failed(ctx context.Context, cfg *Config, client *kafkago.Client, err error,
	message string, attributes ...any) (cause, final error) {
	if p := permanent(err); p != nil {
		return err, p
	}
	if o.began.IsZero() {
		o.began = time.Now()
	}
	invalidateMetadata(client, err)
	never := false // seen
	if unknownTopic(err) {
		never, err = o.inquire(ctx, cfg, client, err)
	}
	switch {
	case !never:
		o.absent.reset()
	case o.absent.over():
		return err, cfg.absentError(topicOf(client), err)
	}
	if cfg.MaxOutage > 0 && time.Since(o.began) > cfg.MaxOutage {
		return err, o.error(cfg, err)
	}
	if !never && ctx.Err() == nil { // what was never seen ends soon, with an error of its own
		o.warnings.warn(cfg.Log, message,
			append(attributes, "brokers", cfg.addresses(), "error", err, "until", o.until(cfg))...)
	}
	return err, nil
}

// inquire asks the metadata about a topic, or a partition, that is said not to exist.
// never means that it was not seen and that a complete cluster does not know it. The
// error is the metadata's where there is one: kafka-go's own is the same for an unknown
// topic and for a broker that refuses connections.
func (o *outage) inquire(ctx context.Context, cfg *Config, client *kafkago.Client, err error) (never bool, _ error) {
	topic := topicOf(client)
	_, asked := partitionsOf(ctx, cfg, client, topic)
	var at *protocol.TopicPartitionError
	switch {
	case asked == nil:
		return errors.As(err, &at) && int(at.Partition) >= cfg.Seen.count(topic), err
	case !unknownTopic(asked):
		return false, asked
	}
	return cfg.Seen.count(topic) == 0, err
}

// over ends the outage after a success. It logs how long it was, if it was logged.
func (o *outage) over(cfg *Config, attributes ...any) {
	if !o.warnings.last.IsZero() {
		cfg.Log.Info("kafka: answers again", append(attributes, "after", time.Since(o.began).Round(time.Millisecond))...)
	}
	o.reset()
}

// reset forgets the outage: the next attempt may come much later.
func (o *outage) reset() { *o = outage{} }

// until says, for a log line, when the operation fails.
func (o *outage) until(cfg *Config) string {
	if cfg.MaxOutage == 0 {
		return "it is stopped"
	}
	return o.began.Add(cfg.MaxOutage).Format(time.RFC3339)
}

func (o *outage) error(cfg *Config, err error) error {
	return fmt.Errorf("%w: nothing succeeded at %s for %v, since %s (last failure: %w); "+
		"see to the brokers and start again",
		ErrOutage, cfg.addresses(), cfg.MaxOutage, o.began.Format(time.RFC3339), err)
}

// absentError says that a topic, or the partition that err names, does not exist.
func (cfg *Config) absentError(topic string, err error) error {
	if n := cfg.Seen.count(topic); n > 0 {
		return fmt.Errorf("%w: topic %s has %d partitions at %s: %w", ErrUnknownTopic, topic, n, cfg.addresses(), err)
	}
	return fmt.Errorf("%w: the broker at %s has no topic of that name; create it or correct the name",
		ErrUnknownTopic, cfg.addresses())
}

// topicOf returns the one topic whose metadata a client fetches.
func topicOf(client *kafkago.Client) string {
	return client.Transport.(*kafkago.Transport).MetadataTopics[0]
}
