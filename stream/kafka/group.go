package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

const (
	// sessionTimeout is how long a group waits for a member that vanished. Brokers refuse less
	// than 6 s, unless they are configured otherwise.
	sessionTimeout = 10 * time.Second

	// heartbeatEvery is how often a member learns whether the group forms again: the others
	// wait for it.
	heartbeatEvery = 500 * time.Millisecond

	// rebalanceTimeout is how long the group waits for the readers of a member that was told.
	rebalanceTimeout = 30 * time.Second

	// leaveTimeout bounds a join that is under way when Consume is to stop.
	leaveTimeout = 8*time.Second + requestTimeout
)

// An Assignment is a partition that a consumer group has assigned to this process.
type Assignment struct {
	Log       *Log // the partition; it is closed after the assignment
	Partition int
	Next      int64 // the offset that the group committed: that of the record to read next
	Known     bool  // it has committed one

	generation *kafkago.Generation
	committed  int64 // the offset last committed, or Next
}

// Commit tells the group how far its records are dealt with. After a failure it is told with the
// next call: it may be behind, and never ahead.
func (a *Assignment) Commit(next int64) {
	if next == a.committed {
		return
	}
	l := a.Log
	if err := a.generation.CommitOffsets(map[string]map[int]int64{l.topic: {a.Partition: next}}); err != nil {
		l.cfg.Log.Debug("kafka: committing the group's offset", "partition", a.Partition, "offset", next, "error", err)
		return
	}
	a.committed = next
}

// Consume takes part in a consumer group that reads a topic, until ctx ends, and then leaves the
// group and returns nil. It calls read for each partition that the group assigns to it, with a
// context that ends with the assignment. The group waits until read has returned.
//
// What read returns before its context ends, nil too, ends Consume. An error after ctx has ended is
// returned as well. One after a revocation is logged. It waits through broker restarts, for
// Config.MaxOutage.
func Consume(ctx context.Context, cfg Config, group, topic string,
	read func(ctx context.Context, a *Assignment) error) error {
	cfg, err := cfg.withDefaults()
	if err == nil && (group == "" || topic == "") {
		err = errors.New("consume: a topic and a group are needed")
	}
	if err != nil {
		return err
	}
	parent := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	m := &member{cfg: &cfg, group: group, topic: topic, read: read, client: cfg.client(topic), stop: stop}
	defer closeIdle(m.client)
	err = m.generations(ctx)
	stop(err)
	m.readers.Wait()
	if parent.Err() != nil && (errors.Is(err, parent.Err()) || errors.Is(err, context.Cause(parent))) {
		err = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(append([]error{err}, m.late...)...)
}

// A member is the group membership of one call of Consume.
type member struct {
	cfg     *Config
	group   string
	topic   string
	read    func(context.Context, *Assignment) error
	client  *kafkago.Client
	stop    context.CancelCauseFunc // ends Consume with an error
	readers sync.WaitGroup          // the goroutines of all generations

	mu   sync.Mutex
	late []error // of reads that failed after Consume was asked to stop
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
		return fmt.Errorf("join group %s: %w", m.group, err)
	}
	defer m.leave(group, disconnect)

	var failing outage
	for {
		generation, err := group.Next(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			_, final := failing.failed(ctx, m.cfg, m.client, err, "kafka: joining the group again", "group", m.group)
			if final != nil {
				return fmt.Errorf("join group %s: %w", m.group, final)
			}
			continue
		}
		failing.over(m.cfg, "group", m.group)
		// Without its topic a generation ends as soon as it begins.
		if err := m.awaitTopic(ctx); err != nil {
			return err
		}
		var partitions []int
		for _, a := range generation.Assignments[m.topic] {
			partitions = append(partitions, a.ID)
		}
		m.cfg.Log.Info("kafka: partitions assigned", "group", m.group, "topic", m.topic,
			"generation", generation.ID, "partitions", partitions)
		start := func(f func(ended context.Context)) {
			m.readers.Add(1) // kafka-go does not wait for what starts after the generation's end
			generation.Start(func(ended context.Context) { defer m.readers.Done(); f(ended) })
		}
		start(func(ended context.Context) {
			<-ended.Done()
			m.awaitCoordinator(ctx)
		})
		for _, partition := range partitions {
			start(func(ended context.Context) { m.hold(ctx, ended, generation, partition) })
		}
	}
}

// hold has a partition read while the generation lasts. kafka-go calls it also for a generation
// that has ended, and does not wait for it.
func (m *member) hold(running, ended context.Context, generation *kafkago.Generation, partition int) {
	if ended.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(running)
	defer cancel()
	defer context.AfterFunc(ended, cancel)()
	err := m.assigned(ctx, generation, partition)
	if err != nil {
		err = fmt.Errorf("topic %s, partition %d: %w", m.topic, partition, err)
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
		m.cfg.Log.Warn("kafka: a partition was not given up in order before it was revoked",
			"topic", m.topic, "partition", partition, "error", err)
	}
}

func (m *member) assigned(ctx context.Context, generation *kafkago.Generation, partition int) error {
	log, err := NewPartition(*m.cfg, m.topic, partition)
	if err != nil {
		return err
	}
	defer log.Close()
	a := &Assignment{Log: log, Partition: partition, generation: generation}
	a.Next, a.Known, err = m.cfg.CommittedOffset(ctx, m.group, m.topic, partition)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // nothing was begun
	case err != nil:
		return err
	}
	a.committed = a.Next
	return m.read(ctx, a)
}

func (m *member) groupConfig(dialer *kafkago.Dialer) kafkago.ConsumerGroupConfig {
	return kafkago.ConsumerGroupConfig{
		ID:                m.group,
		Brokers:           m.cfg.Brokers,
		Dialer:            dialer,
		Topics:            []string{m.topic},
		HeartbeatInterval: heartbeatEvery,
		SessionTimeout:    sessionTimeout,
		RebalanceTimeout:  rebalanceTimeout,
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
			failing.over(m.cfg, "group", m.group)
			return
		}
		if ctx.Err() != nil {
			return
		}
		_, final := failing.failed(ctx, m.cfg, m.client, err, "kafka: waiting for the group's coordinator", "group", m.group)
		if errors.Is(final, ErrOutage) {
			m.stop(fmt.Errorf("group %s: wait for the coordinator: %w", m.group, final))
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
	res, err := m.client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{
		GroupID: m.group, Topics: map[string][]int{m.topic: {0}},
	})
	if err == nil {
		err = res.Error
	}
	if err == nil {
		for _, p := range res.Topics[m.topic] {
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
	return retry(ctx, m.cfg, m.client, "find topic "+m.topic, func(ctx context.Context) error {
		_, err := partitionsOf(ctx, m.cfg, m.client, m.topic)
		return err
	})
}

// leave ends the generation, which ends its reads, and leaves the group. kafka-go cannot
// interrupt a join, so its connections are closed after a while.
func (m *member) leave(group *kafkago.ConsumerGroup, disconnect func()) {
	defer disconnect()
	t := time.AfterFunc(leaveTimeout, disconnect)
	defer t.Stop()
	if err := group.Close(); err != nil {
		m.cfg.Log.Warn("kafka: leaving the group", "group", m.group, "error", err)
	}
}

// CommittedOffset returns the offset that a consumer group last committed for a partition,
// that of the record to read next, and false if it has none. It retries until ctx ends.
func (cfg Config) CommittedOffset(ctx context.Context, group, topic string, partition int) (
	next int64, ok bool, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return 0, false, err
	}
	client := cfg.client(topic)
	defer closeIdle(client)
	err = retry(ctx, &cfg, client, "ask for the offsets of group "+group, func(ctx context.Context) error {
		res, err := client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{
			GroupID: group, Topics: map[string][]int{topic: {partition}},
		})
		if err != nil {
			return err
		}
		if errors.Is(res.Error, kafkago.GroupIdNotFound) {
			return nil // nobody has joined it yet
		}
		if res.Error != nil {
			return res.Error
		}
		all := res.Topics[topic]
		if len(all) != 1 || all[0].Partition != partition {
			return fmt.Errorf("got the offsets of %d partitions, want one", len(all))
		}
		if errors.Is(all[0].Error, kafkago.GroupIdNotFound) {
			return nil
		}
		next, ok = all[0].CommittedOffset, all[0].CommittedOffset >= 0
		return all[0].Error
	})
	return next, ok && err == nil, err
}
