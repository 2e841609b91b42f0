package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// A Handler takes the records of one partition during one assignment. One
// goroutine calls its methods. The contexts of Handle, Idle and Close end
// ConsumerConfig.Drain after a request to stop. A handler whose Handle or Idle failed
// is dropped without Close, so it must hold nothing but memory.
type Handler interface {
	// Position returns the offset to read next, or false without a state: then the
	// partition is read from offset 0. It is called once, first.
	//
	// Handle and Idle call confirm before they save. It returns nil if all records that
	// were handed over are of one log, and ErrReplaced if the topic was created again
	// meanwhile: then the handler returns that error and does not save. It returns
	// ErrUnconfirmed if the broker does not answer within a second, or fails after that:
	// the handler saves later. It costs two fetches, of a batch each. Before Close the
	// consumer itself confirms. Another goroutine may call it too, until Close returns: it
	// gets ErrUnconfirmed while the consumer itself asks.
	Position(confirm func(context.Context) error) (next int64, ok bool)

	// Follows reports whether last, the log's record at next−1, is the one that the
	// state absorbed last, by key, value and headers. It is called once, if there is
	// a position and the log has that record.
	Follows(last Record) bool

	// Handle takes records in ascending offset order. It may keep their keys and
	// values, but not the slice.
	Handle(ctx context.Context, batch []Record) error

	// Idle is called after each PollInterval without a record.
	Idle(ctx context.Context) error

	// Close finishes and saves: the partition is revoked, or Run stops. It is the last
	// call. It is not called after ErrReplaced, unless that came at the assignment.
	Close(ctx context.Context) error
}

// A ConsumerConfig says what to consume, and how.
type ConsumerConfig struct {
	Config
	Topic string
	Group string

	AcceptGap bool // go on after records lost to retention, instead of ErrGap

	// AcceptLostBeginning: a handler without a position reads what retention has left,
	// instead of ErrNoBeginning.
	AcceptLostBeginning bool

	// Whole: nothing can be done without a part of the log. AcceptGap and
	// AcceptLostBeginning have no effect, and no error advises them.
	Whole bool

	// CommitEach: offsets are committed after each batch, and not every five seconds. It is
	// for handlers whose position is CommittedOffset.
	CommitEach bool

	MaxBatch     int           // most records in one Handle; default 128
	PollInterval time.Duration // quiet time before Idle; default 1 s

	// SessionTimeout is how long the group waits for a vanished member before it
	// reassigns its partitions; default 10 s. Brokers refuse less than 6 s unless
	// configured otherwise.
	SessionTimeout time.Duration

	// Drain is the time that a handler has after a request to stop: once for the
	// batch in hand, and once for Close. Twice Drain must be less than SessionTimeout.
	// A handler must bound each of its own requests by Drain. Default 2/5 of
	// SessionTimeout.
	Drain time.Duration
}

func (cfg ConsumerConfig) withDefaults() (ConsumerConfig, error) {
	base, err := cfg.Config.withDefaults()
	errs := []error{err}
	cfg.Config = base
	if cfg.Topic == "" {
		errs = append(errs, errors.New("topic: none given"))
	}
	if cfg.Group == "" {
		errs = append(errs, errors.New("group: none given"))
	}
	if cfg.MaxBatch < 0 || cfg.PollInterval < 0 || cfg.SessionTimeout < 0 || cfg.Drain < 0 {
		errs = append(errs, errors.New("max batch, poll interval, session timeout, drain: none may be negative"))
	}
	if cfg.Whole {
		cfg.AcceptGap, cfg.AcceptLostBeginning = false, false
	}
	cfg.MaxBatch = cmp.Or(cfg.MaxBatch, 128)
	cfg.PollInterval = cmp.Or(cfg.PollInterval, time.Second)
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, 10*time.Second)
	cfg.Drain = cmp.Or(cfg.Drain, cfg.SessionTimeout*2/5)
	if 2*cfg.Drain >= cfg.SessionTimeout {
		errs = append(errs, fmt.Errorf("drain: twice %v is not less than the session timeout of %v", cfg.Drain, cfg.SessionTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return cfg, fmt.Errorf("consumer configuration: %w", err)
	}
	return cfg, nil
}

// A Consumer reads the partitions that its consumer group assigns to it, each in
// order and from its handler's position.
type Consumer struct {
	cfg    ConsumerConfig
	joined atomic.Bool  // set by the first generation of a Run, cleared when Run returns
	active atomic.Int32 // the id of the generation that runs; 0: none does
}

// NewConsumer returns a consumer. It does not connect; [Ping] does.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Consumer{cfg: cfg}, nil
}

// Joined reports whether this consumer has become a member of its group since Run
// was called, with or without a partition.
func (c *Consumer) Joined() bool { return c.joined.Load() }

// Active reports whether this consumer is a member of its group now. While brokers
// restart and while members change it is not, and has no partitions.
func (c *Consumer) Active() bool { return c.active.Load() != 0 }

// Run joins the group and reads until ctx ends, then closes every handler, leaves
// the group and returns nil. It may be called again.
//
// For each assigned partition it calls open, with a context that ends with the
// assignment, and drives the handler. It waits through broker restarts, for
// Config.MaxOutage. It ends early, after closing the other handlers, with an error of
// open or of a handler that does not wrap ErrReload, and with ErrGap, ErrNoBeginning, ErrBehind,
// ErrReplaced, ErrUnknownTopic, ErrOutage, ErrAuth or ErrTLS.
//
// If handlers fail after ctx has ended, for instance in their last save, Run returns
// these errors joined. If they fail after their partition was revoked, Run logs a
// warning: the new owner reads from the saved state.
func (c *Consumer) Run(ctx context.Context, open func(ctx context.Context, partition int) (Handler, error)) error {
	return c.takePart(ctx, func(m *member) {
		m.open = open
		m.serve = m.readPartition
	})
}

// Hold takes part in the group as Run does, but reads nothing: it calls hold for each assigned
// partition, with a context that ends with the assignment. The group waits until hold has
// returned. What hold returns before its context ends, nil too, ends Hold. An error after a
// request to stop is returned as well; one after a revocation is logged.
func (c *Consumer) Hold(ctx context.Context, hold func(ctx context.Context, partition int) error) error {
	return c.takePart(ctx, func(m *member) {
		m.serve = func(running, ended context.Context, _ *kafkago.Generation, partition int) {
			m.hold(running, ended, partition, hold)
		}
	})
}

func (m *member) hold(running, ended context.Context, partition int, hold func(ctx context.Context, partition int) error) {
	if ended.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(running)
	defer cancel()
	defer context.AfterFunc(ended, cancel)()
	err := hold(ctx, partition)
	if err != nil {
		err = fmt.Errorf("topic %s, partition %d: %w", m.cfg.Topic, partition, err)
	}
	switch {
	case ctx.Err() == nil:
		m.stop(err)
	case err == nil:
	case running.Err() != nil:
		m.mu.Lock()
		m.late = append(m.late, err)
		m.mu.Unlock()
	default:
		m.cfg.Log.Warn("kafka: a partition was not given up in order before it was revoked", "topic", m.cfg.Topic, "partition", partition, "error", err)
	}
}

// takePart is a membership of the group, with prepare for what it does with partitions.
func (c *Consumer) takePart(ctx context.Context, prepare func(*member)) error {
	parent := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	m := &member{cfg: &c.cfg, client: c.cfg.client(c.cfg.Topic), stop: stop, joined: &c.joined, active: &c.active}
	prepare(m)
	defer closeIdle(m.client)
	defer c.joined.Store(false)
	err := m.generations(ctx)
	stop(err)
	m.readers.Wait()
	if parent.Err() != nil && (errors.Is(err, parent.Err()) || errors.Is(err, context.Cause(parent))) {
		err = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(append([]error{err}, m.late...)...)
}

// A member is the group membership of one call of Run or Hold.
type member struct {
	cfg     *ConsumerConfig
	client  *kafkago.Client
	open    func(context.Context, int) (Handler, error)
	serve   func(running, ended context.Context, generation *kafkago.Generation, partition int) // an assigned partition
	stop    context.CancelCauseFunc                                                             // ends Run with an error
	joined  *atomic.Bool
	active  *atomic.Int32
	readers sync.WaitGroup // the goroutines of all generations

	mu   sync.Mutex
	late []error // of handlers that failed after Run was asked to stop
}

// generations takes part in the group's generations until ctx ends.
func (m *member) generations(ctx context.Context) error {
	if err := m.awaitTopic(ctx); err != nil {
		return err
	}
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx))
	group, err := kafkago.NewConsumerGroup(m.groupConfig(m.cfg.dialer(connected)))
	if err != nil {
		disconnect()
		return fmt.Errorf("join group %s: %w", m.cfg.Group, err)
	}
	defer m.leave(group, disconnect)

	var failing outage
	for {
		generation, err := group.Next(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			_, final := failing.failed(ctx, &m.cfg.Config, m.client, err, "kafka: joining the group again", "group", m.cfg.Group)
			if final != nil {
				return fmt.Errorf("join group %s: %w", m.cfg.Group, final)
			}
			continue
		}
		failing.over(&m.cfg.Config, "group", m.cfg.Group)
		m.joined.Store(true)
		// Without its topic a generation ends as soon as it begins.
		if err := m.awaitTopic(ctx); err != nil {
			return err
		}
		var partitions []int
		for _, a := range generation.Assignments[m.cfg.Topic] {
			partitions = append(partitions, a.ID)
		}
		m.cfg.Log.Info("kafka: partitions assigned", "group", m.cfg.Group, "topic", m.cfg.Topic, "generation", generation.ID, "partitions", partitions)
		start := func(f func(ended context.Context)) {
			m.readers.Add(1) // kafka-go does not wait for what starts after the generation's end
			generation.Start(func(ended context.Context) { defer m.readers.Done(); f(ended) })
		}
		m.active.Store(generation.ID)
		start(func(ended context.Context) {
			<-ended.Done()
			m.active.CompareAndSwap(generation.ID, 0) // the next one may have begun
			m.awaitCoordinator(ctx)
		})
		for _, partition := range partitions {
			start(func(ended context.Context) { m.serve(ctx, ended, generation, partition) })
		}
	}
}

func (m *member) groupConfig(dialer *kafkago.Dialer) kafkago.ConsumerGroupConfig {
	return kafkago.ConsumerGroupConfig{
		ID:      m.cfg.Group,
		Brokers: m.cfg.Brokers,
		Dialer:  dialer,
		Topics:  []string{m.cfg.Topic},
		// A rebalance is noticed at a heartbeat, so the other members wait for ours.
		HeartbeatInterval: min(500*time.Millisecond, m.cfg.SessionTimeout/6),
		SessionTimeout:    m.cfg.SessionTimeout,
		// Members have to close their handlers before they join again.
		RebalanceTimeout: max(30*time.Second, 3*m.cfg.Drain),
		// After a lost membership; kafka-go's 5 s is longer than needed.
		JoinGroupBackoff:       2 * minPause,
		WatchPartitionChanges:  true,
		PartitionWatchInterval: 5 * time.Second,
		StartOffset:            kafkago.FirstOffset,
		// Negative: the broker's own retention of offsets.
		RetentionTime: -1 * time.Millisecond,
	}
}

// awaitCoordinator delays the next generation until the group's coordinator is there.
// kafka-go drops its member id when a join fails, and the next join would wait a
// session timeout for the old id to leave.
func (m *member) awaitCoordinator(ctx context.Context) {
	var failing outage
	for pause := newPause(); ctx.Err() == nil; wait(ctx, pause) {
		err := m.askCoordinator(ctx)
		if err == nil {
			failing.over(&m.cfg.Config, "group", m.cfg.Group)
			return
		}
		if ctx.Err() != nil {
			return
		}
		_, final := failing.failed(ctx, &m.cfg.Config, m.client, err, "kafka: waiting for the group's coordinator", "group", m.cfg.Group)
		if errors.Is(final, ErrOutage) {
			m.stop(fmt.Errorf("group %s: wait for the coordinator: %w", m.cfg.Group, final))
			return
		}
		if final != nil {
			return // the join says so too
		}
	}
}

// askCoordinator returns nil if the coordinator has loaded the group. It asks for
// offsets: a coordinator that still loads the group answers heartbeats.
func (m *member) askCoordinator(ctx context.Context) error {
	res, err := m.client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: m.cfg.Group, Topics: map[string][]int{m.cfg.Topic: {0}}})
	if err == nil {
		err = res.Error
	}
	if err == nil {
		for _, p := range res.Topics[m.cfg.Topic] {
			err = errors.Join(err, p.Error)
		}
	}
	if errors.Is(err, kafkago.GroupIdNotFound) || unknownTopic(err) {
		return nil // the broker lost its data, so there is nothing to load
	}
	return err
}

// awaitTopic returns when the cluster knows the topic.
func (m *member) awaitTopic(ctx context.Context) error {
	return retry(ctx, &m.cfg.Config, m.client, "find topic "+m.cfg.Topic, func(ctx context.Context) error {
		_, err := partitionsOf(ctx, &m.cfg.Config, m.client, m.cfg.Topic)
		return err
	})
}

// leave ends the generation, which closes the handlers, and leaves the group. kafka-go
// cannot interrupt a join, so its connections are closed after a while.
func (m *member) leave(group *kafkago.ConsumerGroup, disconnect func()) {
	defer disconnect()
	t := time.AfterFunc(2*m.cfg.Drain+requestTimeout, disconnect)
	defer t.Stop()
	if err := group.Close(); err != nil {
		m.cfg.Log.Warn("kafka: leaving the group", "group", m.cfg.Group, "error", err)
	}
}
