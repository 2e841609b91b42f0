package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	kafkago "github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"hamlet/stream"
)

// A Producer publishes records, partitioned by murmur2 as in Java's clients and
// acknowledged by all in-sync replicas. It does not linger: records published while a
// request is in flight travel together in the next one. Its methods are safe for
// concurrent use.
type Producer struct {
	cfg Config

	closing context.Context // ends with ErrClosed when Close is called
	close   context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool           // set by Close; no call begins after it
	calls   sync.WaitGroup // Publish and Reach calls in progress
	clients map[string]*kafkago.Client
	writers map[topicPartition]*partitionWriter
}

type topicPartition struct {
	topic     string
	partition int
}

// NewProducer returns a producer. It does not connect; [Ping] does.
func NewProducer(cfg Config) (*Producer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Producer{cfg: cfg, clients: make(map[string]*kafkago.Client), writers: make(map[topicPartition]*partitionWriter)}
	p.closing, p.close = context.WithCancelCause(context.Background())
	return p, nil
}

// Publish appends the records to the logs of their topics and returns when all are
// acknowledged. The records of one call that go to one partition keep their order,
// also through retries.
//
// It retries through broker restarts until ctx ends, or for Config.MaxOutage. An error
// says how many records were acknowledged. The others may be stored all the same:
// publish them again only if they may appear twice, and do not reuse their bytes.
// ErrTooLarge, ErrUnknownTopic, ErrAuth and ErrTLS are permanent.
func (p *Producer) Publish(ctx context.Context, records ...Record) error {
	ctx, end, err := p.beginPublish(ctx, records)
	if err != nil {
		return err
	}
	defer end()
	byPartition, err := p.route(ctx, records)
	if err != nil {
		return err
	}
	if len(byPartition) == 1 { // no goroutine needed
		for at, records := range byPartition {
			return p.writer(at).publish(ctx, records)
		}
	}
	var group errgroup.Group
	for at, records := range byPartition {
		group.Go(func() error { return p.writer(at).publish(ctx, records) })
	}
	return group.Wait()
}

// PublishTo is Publish to one partition of a topic, whatever the records' keys say.
func (p *Producer) PublishTo(ctx context.Context, topic string, partition int, records ...Record) error {
	ctx, end, err := p.beginPublish(ctx, records)
	if err != nil {
		return err
	}
	defer end()
	ids, err := p.partitions(ctx, topic)
	if err != nil {
		return err
	}
	if !slices.Contains(ids, partition) {
		return fmt.Errorf("publish to %s, partition %d: the topic has %d partitions", topic, partition, len(ids))
	}
	plain := make([]stream.Record, len(records))
	for i := range records {
		plain[i] = records[i].stream()
	}
	return p.writer(topicPartition{topic, partition}).publish(ctx, plain)
}

// beginPublish is begin, unless a record is too large.
func (p *Producer) beginPublish(ctx context.Context, records []Record) (_ context.Context, end func(), err error) {
	for i := range records {
		plain := records[i].stream()
		if n := sizeOf(&plain); n > p.cfg.MaxRecordBytes {
			return nil, nil, fmt.Errorf("publish to %s: %w: record %d of %d has %d bytes, more than %d; reduce it, or raise the limit here and at the broker",
				records[i].Topic, ErrTooLarge, i+1, len(records), n, p.cfg.MaxRecordBytes)
		}
	}
	ctx, end, err = p.begin(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("publish: %w", err)
	}
	return ctx, end, nil
}

// Close ends the calls in progress with ErrClosed, waits for them, and closes all
// connections.
func (p *Producer) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.close(ErrClosed)
	p.calls.Wait()
	for _, client := range p.clients {
		closeIdle(client)
	}
	return nil
}

// begin registers a call. Its context ends with ErrClosed when Close is called.
// The caller must call end.
func (p *Producer) begin(parent context.Context) (ctx context.Context, end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	p.calls.Add(1)
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(p.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		p.calls.Done()
	}, nil
}

// client returns the client of a topic. Each topic has its own, whose metadata is
// about that topic only.
func (p *Producer) client(topic string) *kafkago.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients[topic] == nil {
		p.clients[topic] = p.cfg.client(topic)
	}
	return p.clients[topic]
}

// writer returns the one writer of a partition.
func (p *Producer) writer(at topicPartition) *partitionWriter {
	client := p.client(at.topic)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writers[at] == nil {
		p.writers[at] = newPartitionWriter(p.closing, &p.calls, at, &p.cfg, client)
	}
	return p.writers[at]
}

// route splits records by partition and keeps their order.
func (p *Producer) route(ctx context.Context, records []Record) (map[topicPartition][]stream.Record, error) {
	partitions := make(map[string][]int, 1)
	byPartition := make(map[topicPartition][]stream.Record, 1)
	for _, r := range records {
		ids, ok := partitions[r.Topic]
		if !ok {
			var err error
			if ids, err = p.partitions(ctx, r.Topic); err != nil {
				return nil, err
			}
			partitions[r.Topic] = ids
		}
		at := topicPartition{r.Topic, kafkago.Murmur2Balancer{}.Balance(kafkago.Message{Topic: r.Topic, Key: r.Key, Value: r.Value}, ids...)}
		byPartition[at] = append(byPartition[at], r.stream())
	}
	return byPartition, nil
}

// partitions returns a topic's partitions. It waits until the topic is known.
func (p *Producer) partitions(ctx context.Context, topic string) (ids []int, err error) {
	if topic == "" {
		return nil, errors.New("publish: a record names no topic")
	}
	client := p.client(topic)
	err = retry(ctx, &p.cfg, client, "find the partitions of topic "+topic, func(ctx context.Context) error {
		ids, err = partitionsOf(ctx, &p.cfg, client, topic)
		return err
	})
	return ids, err
}
