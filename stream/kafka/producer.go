package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	kafkago "github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"
)

// A Producer publishes records, keyed by murmur2 as Java's clients, and
// acknowledged by all replicas in sync. Its methods are safe for concurrent use.
//
// It does not linger: a request leaves at once, and what is published meanwhile
// for the same partition, by any goroutine, travels together in the next one.
// So a lone record costs one round trip, and many share their requests.
type Producer struct {
	cfg      Config
	balancer kafkago.Murmur2Balancer

	closing context.Context // ends when Close is called
	close   context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // Publish and Reach calls under way
	lanes   map[lanekey]*lane
	clients map[string]*kafkago.Client // by topic, so that each learns of its own only
}

type lanekey struct {
	topic     string
	partition int
}

// NewProducer returns a producer. It does not connect; [Ping] does.
func NewProducer(cfg Config) (*Producer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Producer{cfg: cfg, lanes: make(map[lanekey]*lane), clients: make(map[string]*kafkago.Client)}
	p.closing, p.close = context.WithCancelCause(context.Background())
	return p, nil
}

// Publish appends the records to the logs of their topics and returns when all
// are acknowledged. Records with the same key, or without one, keep their order
// within the call per partition, also through retries; between calls that
// overlap there is no order.
//
// It retries through broker restarts until ctx ends. An error means that some
// records may not have been stored; it says how many were acknowledged. What
// failed may still be stored later (a request was on its way), so publish again
// only what may appear twice. ErrTooLarge (before anything is sent, if our own
// limit shows it), ErrUnknownTopic, ErrAuth and ErrTLS are permanent. After an
// error the records' bytes may still be read for up to ten seconds: do not
// reuse them.
func (p *Producer) Publish(ctx context.Context, records ...Record) error {
	if len(records) == 0 {
		return nil
	}
	for i := range records {
		if n := records[i].size(); n > p.cfg.MaxRecordBytes {
			return fmt.Errorf("publish to %s: %w: record %d of %d has %d bytes, more than %d; reduce it, or raise the limit here and at the broker",
				records[i].Topic, ErrTooLarge, i+1, len(records), n, p.cfg.MaxRecordBytes)
		}
	}
	if !p.enter() {
		return fmt.Errorf("publish: %w", ErrClosed)
	}
	defer p.calls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.closing, func() { cancel(ErrClosed) })()

	byLane, err := p.route(ctx, records)
	if err != nil {
		return err
	}
	if len(byLane) == 1 { // one record, or one partition: no goroutine needed
		for key, records := range byLane {
			return p.lane(key).publish(ctx, records)
		}
	}
	var group errgroup.Group
	for key, records := range byLane {
		group.Go(func() error { return p.lane(key).publish(ctx, records) })
	}
	return group.Wait()
}

// Reach returns nil if all partitions of a topic have a leader that answers on the
// connections that Publish uses; else why not, when ctx ends or the topic is found
// missing. It logs nothing.
func (p *Producer) Reach(ctx context.Context, topic string) error {
	if !p.enter() {
		return fmt.Errorf("reach topic %s: %w", topic, ErrClosed)
	}
	defer p.calls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.closing, func() { cancel(ErrClosed) })()

	cfg := p.cfg
	cfg.Log = slog.New(slog.DiscardHandler) // the error says it
	_, _, err := offsets(ctx, &cfg, p.client(topic), topic)
	return err
}

// Close ends the calls under way with ErrClosed, waits for them and
// closes all connections.
func (p *Producer) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.close(ErrClosed)
	p.calls.Wait()
	for _, client := range p.clients {
		client.Transport.(*kafkago.Transport).CloseIdleConnections()
	}
	return nil
}

func (p *Producer) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.calls.Add(1)
	}
	return !p.closed
}

// client returns the one client of a topic.
func (p *Producer) client(topic string) *kafkago.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	client := p.clients[topic]
	if client == nil {
		client, _ = p.cfg.client(topic)
		p.clients[topic] = client
	}
	return client
}

// lane returns the one lane of a partition.
func (p *Producer) lane(key lanekey) *lane {
	client := p.client(key.topic)
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[key]
	if l == nil {
		l = &lane{lanekey: key, cfg: &p.cfg, client: client, lead: make(chan struct{}, 1)}
		p.lanes[key] = l
	}
	return l
}

// route splits records by partition, each part in the order given.
func (p *Producer) route(ctx context.Context, records []Record) (map[lanekey][]Record, error) {
	partitions := make(map[string][]int, 1)
	byLane := make(map[lanekey][]Record, 1)
	for i := range records {
		topic := records[i].Topic
		ids, ok := partitions[topic]
		if !ok {
			var err error
			if ids, err = p.partitions(ctx, topic); err != nil {
				return nil, err
			}
			partitions[topic] = ids
		}
		key := lanekey{topic, p.balancer.Balance(toMessage(&records[i]), ids...)}
		byLane[key] = append(byLane[key], records[i])
	}
	return byLane, nil
}

// partitions lists a topic's partitions from the transport's cached metadata.
func (p *Producer) partitions(ctx context.Context, topic string) (ids []int, err error) {
	if topic == "" {
		return nil, errors.New("publish: a record names no topic")
	}
	client := p.client(topic)
	err = retry(ctx, &p.cfg, client, "find the partitions of topic "+topic, func(ctx context.Context) error {
		ids, err = partitionsOf(ctx, client, topic)
		return err
	})
	return ids, err
}
