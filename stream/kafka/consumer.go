package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

const (
	// fetchWait is the longest that the broker holds a fetch open. It wakes up at
	// once for new records, so this only sets how often a quiet partition asks.
	fetchWait = 250 * time.Millisecond

	// fetchBytes is the most that one fetch brings: four of the largest batches.
	fetchBytes = 4 << 20

	// batchBytes closes a batch for a handler before MaxBatch does, so that the
	// largest mails do not make batches of a hundred megabytes.
	batchBytes = 8 << 20

	// queueRecords is how many records a reader has ready for the next batch. Its
	// queue counts records and not bytes, so this bounds it to 16 MiB of the largest
	// ones; the rest of a fetch stays in the connection.
	queueRecords = 16

	// commitEvery is how often a busy partition's offset is committed as advice.
	commitEvery = 5 * time.Second
)

// A Handler takes the records of one partition for the length of one assignment.
// One goroutine calls its methods.
//
// The contexts of Handle, Idle and Close outlive a request to stop by
// ConsumerConfig.Drain, so that what has been handed over is finished.
// A handler whose Handle or Idle returned an error is dropped as it is: its
// Close is not called, and what it holds beside memory it must have let go. An
// error after the request to stop ends no Run: see [Consumer.Run].
type Handler interface {
	// Position returns the offset to read next, which the handler's state decides
	// and not the group. ok is false when there is no state: the partition is then
	// read from its beginning. It is called once, before the first Handle.
	Position() (next int64, ok bool)

	// Follows reports whether the state may go on after last, the log's record at
	// next−1: whether it is the one that the state absorbed last, by key, value and
	// headers. It is called once, after a Position that was ok, unless the log has no
	// such record; if it says no, Run ends with ErrReplaced.
	Follows(last Record) bool

	// Handle takes records in ascending offset order. It may keep their keys and
	// values, but not the batch itself, which is reused.
	Handle(ctx context.Context, batch []Record) error

	// Idle is called when no record came for PollInterval, and again after each
	// further one, so that the handler can save by time.
	Idle(ctx context.Context) error

	// Close ends the assignment: the partition goes elsewhere, or Run stops in
	// order. It finishes and saves. No method is called afterwards.
	Close(ctx context.Context) error
}

// A ConsumerConfig says what to consume, and how.
type ConsumerConfig struct {
	Config
	Topic string
	Group string

	AcceptGap    bool          // go on after records lost to retention, instead of ErrGap
	MaxBatch     int           // most records in one Handle; default 128
	PollInterval time.Duration // quiet time before Idle; default 1 s

	// SessionTimeout is how long the group waits for a member that vanished
	// without leaving before its partitions go to others; default 10 s. Real
	// brokers take 6 s and more unless told otherwise.
	SessionTimeout time.Duration

	// Drain is the time that a handler has to finish after it was asked to stop:
	// one for the batch in hand, and one for Close. Both together must be less
	// than SessionTimeout, or the group gives the partition away while its state
	// is being saved. It ends the handler's context and cannot do more: a handler
	// must bound each of its own requests by Drain, or one in flight at the request
	// to stop outlasts it. Default 2/5 of SessionTimeout.
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
	if cfg.MaxBatch == 0 {
		cfg.MaxBatch = 128
	}
	if cfg.PollInterval == 0 {
		cfg.PollInterval = time.Second
	}
	if cfg.SessionTimeout == 0 {
		cfg.SessionTimeout = 10 * time.Second
	}
	if cfg.Drain == 0 {
		cfg.Drain = cfg.SessionTimeout * 2 / 5
	}
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
	joined atomic.Bool
}

// NewConsumer returns a consumer. It does not connect; [Ping] does.
func NewConsumer(cfg ConsumerConfig) (*Consumer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Consumer{cfg: cfg}, nil
}

// Joined reports whether the group has made this consumer a member since Run was
// called: with or without a partition, so that a spare one is known to be ready.
// It stays true through rebalances and broker restarts until Run returns.
func (c *Consumer) Joined() bool { return c.joined.Load() }

// Run joins the group and reads until ctx ends, then closes every handler,
// leaves the group and returns nil. It owns every goroutine that it starts and
// may be called again.
//
// For each partition that it is assigned it calls open, with a context that ends
// when the assignment does, and drives the handler. It waits through broker
// restarts. It returns early, after closing the other handlers in order, with
// the error of open or of a handler unless that wraps ErrReload, and with
// ErrGap, ErrBehind, ErrReplaced, ErrUnknownTopic, ErrAuth or ErrTLS. What a handler could not
// finish when it was asked to stop, such as its last save, is an error of Run if
// ctx had ended, joined with the others', and only a warning in the log if the
// partition was taken away: whoever has it now reads from the state that is saved.
func (c *Consumer) Run(ctx context.Context, open func(ctx context.Context, partition int) (Handler, error)) error {
	parent := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	client, transport := c.cfg.client(c.cfg.Topic)
	defer transport.CloseIdleConnections()
	defer c.joined.Store(false)
	r := &run{cfg: &c.cfg, client: client, open: open, stop: stop, joined: &c.joined}
	err := r.generations(ctx)
	stop(err)
	r.work.Wait()
	if parent.Err() != nil && (errors.Is(err, parent.Err()) || errors.Is(err, context.Cause(parent))) {
		err = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(append([]error{err}, r.left...)...)
}

// A run is what one call of Run shares between its partitions.
type run struct {
	cfg    *ConsumerConfig
	client *kafkago.Client
	open   func(context.Context, int) (Handler, error)
	stop   context.CancelCauseFunc // ends Run with an error
	joined *atomic.Bool
	work   sync.WaitGroup // what generations have started

	mu   sync.Mutex
	left []error // of handlers that did not finish when Run stopped
}

// unfinished keeps an error that came too late to stop Run.
func (r *run) unfinished(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, err)
}

// generations lives through the group's generations until ctx ends, and returns
// the cause.
func (r *run) generations(ctx context.Context) error {
	if err := r.awaitTopic(ctx); err != nil {
		return err
	}
	w := newWires()
	group, err := kafkago.NewConsumerGroup(r.groupConfig(w))
	if err != nil {
		w.cut()
		return fmt.Errorf("join group %s: %w", r.cfg.Group, err)
	}
	defer r.leave(group, w)

	var lines gate
	for {
		gen, err := group.Next(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if p := permanent(err); p != nil {
				return fmt.Errorf("join group %s: %w", r.cfg.Group, p)
			}
			r.cfg.Log.Debug("kafka: joining the group", "group", r.cfg.Group, "error", err)
			if n, ok := lines.open(); ok {
				r.cfg.Log.Warn("kafka: joining the group again", "group", r.cfg.Group, "error", err, "times", n)
			}
			continue
		}
		lines.clear()
		r.joined.Store(true)
		// Without its topic a generation ends as soon as it begins.
		if err := r.awaitTopic(ctx); err != nil {
			return err
		}
		assigned := gen.Assignments[r.cfg.Topic]
		r.cfg.Log.Info("kafka: partitions assigned", "group", r.cfg.Group, "topic", r.cfg.Topic, "generation", gen.ID, "partitions", ids(assigned))
		start := func(f func(ended context.Context)) {
			r.work.Add(1) // kafka-go loses count of what starts when the generation has ended
			gen.Start(func(ended context.Context) { defer r.work.Done(); f(ended) })
		}
		start(func(ended context.Context) { r.remain(ctx, ended) })
		for _, a := range assigned {
			start(func(ended context.Context) { r.assignment(ctx, ended, gen, a.ID) })
		}
	}
}

func ids(assigned []kafkago.PartitionAssignment) []int {
	ids := make([]int, len(assigned))
	for i, a := range assigned {
		ids[i] = a.ID
	}
	return ids
}

func (r *run) groupConfig(w *wires) kafkago.ConsumerGroupConfig {
	return kafkago.ConsumerGroupConfig{
		ID:      r.cfg.Group,
		Brokers: r.cfg.Brokers,
		Dialer:  r.cfg.dialer(w),
		Topics:  []string{r.cfg.Topic},
		// A rebalance is noticed at a heartbeat, so this is how long the others
		// wait for us; a heartbeat is some hundred bytes.
		HeartbeatInterval: min(500*time.Millisecond, r.cfg.SessionTimeout/6),
		SessionTimeout:    r.cfg.SessionTimeout,
		// Members have to close their handlers before they come back.
		RebalanceTimeout: max(30*time.Second, 3*r.cfg.Drain),
		// After a lost membership; kafka-go's 5 s would be a pause for nothing.
		JoinGroupBackoff:       2 * minPause,
		WatchPartitionChanges:  true,
		PartitionWatchInterval: 5 * time.Second,
		StartOffset:            kafkago.FirstOffset,
		// Negative: the broker's own retention of offsets.
		RetentionTime: -1 * time.Millisecond,
	}
}

// remain keeps an ended generation from being followed by the next before the
// group's coordinator is there. kafka-go forgets who it is when a join fails, and
// since a broker that comes back gives every member it knew a new session, it
// would then wait a whole session timeout for its own ghost to leave.
//
// The question asked is for the group's offsets: a heartbeat is answered well by
// a coordinator that is still loading the group, and then the join fails.
func (r *run) remain(ctx, ended context.Context) {
	<-ended.Done()
	var lines gate
	for pause := newPause(); ctx.Err() == nil; wait(ctx, pause) {
		err := r.coordinated(ctx)
		if err == nil || permanent(err) != nil {
			return
		}
		forget(r.client, err)
		if n, ok := lines.open(); ok {
			r.cfg.Log.Warn("kafka: waiting for the group's coordinator", "group", r.cfg.Group, "brokers", r.cfg.addresses(), "error", err, "times", n)
		}
	}
}

// coordinated reports why the group has no coordinator that knows its state.
func (r *run) coordinated(ctx context.Context) error {
	res, err := r.client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: r.cfg.Group, Topics: map[string][]int{r.cfg.Topic: {0}}})
	if err == nil {
		err = res.Error
	}
	if err == nil {
		for _, p := range res.Topics[r.cfg.Topic] {
			err = errors.Join(err, p.Error)
		}
	}
	if errors.Is(err, kafkago.GroupIdNotFound) || unknownTopic(err) {
		return nil // it knows that there is nothing to know: the broker lost its data
	}
	return err
}

// awaitTopic returns when the cluster knows the topic.
func (r *run) awaitTopic(ctx context.Context) error {
	return retry(ctx, &r.cfg.Config, r.client, "find topic "+r.cfg.Topic, func(ctx context.Context) error {
		_, err := partitionsOf(ctx, r.client, r.cfg.Topic)
		return err
	})
}

// leave ends the generation, which closes the handlers, and leaves the group.
// kafka-go cannot interrupt a join that waits for other members: it gets the
// time that they have to drain, and then its connections are cut.
func (r *run) leave(group *kafkago.ConsumerGroup, w *wires) {
	defer w.cut()
	t := time.AfterFunc(2*r.cfg.Drain+requestTimeout, w.cut)
	defer t.Stop()
	if err := group.Close(); err != nil {
		r.cfg.Log.Warn("kafka: leaving the group", "group", r.cfg.Group, "error", err)
	}
}
