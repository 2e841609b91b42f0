// Package learner is the loop that turns a topic into models: fetch, apply,
// publish, save, commit.
//
//	Kafka ─ records ─> decode, read ─> apply ─> dead letters, alerts acknowledged ─> save ─> commit
//	                   beside apply   in order
//
// Kafka assigns partitions to a [Learner]. Each has a model of its own, which one
// goroutine owns. The model and its position in the log are saved in one write. After a
// crash the log is read again from that position. The model's bytes are the same,
// because a model is a pure function of its log.
//
//	l, err := learner.New(learner.Config{
//		Consumer: kafka.ConsumerConfig{Config: brokers, Topic: stream.EventsTopic("default"), Group: "hamlet.learner.default"},
//		DeadLetters: producer, Alerts: channels, Store: store, Name: "default", Log: log,
//	})
//	if err != nil {
//		return err
//	}
//	return l.Run(ctx)
//
// # Rules
//
//   - Nothing that depends on time, or on how many records a fetch returns, reaches a
//     model.
//   - The order is apply, publish, save, commit. A record may be read again, and an
//     alert or a dead letter published again; none is lost.
//   - A save runs beside learning, from a copy of the model: one a partition, of the
//     model's size. While Redis is slow, what is saved lags. While it cannot be reached,
//     learning goes on and saving is tried again.
//   - While alerts cannot be published, learning goes on and saving waits. A copy is
//     taken only when none is pending, so a save covers no event whose alert is not out.
package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/cmd/internal/alert"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A Store keeps checkpoints, one writer a partition. Package storetest has its laws.
type Store interface {
	Take(ctx context.Context, partition int) (epoch int64, err error)
	Save(ctx context.Context, partition int, c *state.Checkpoint) (version int64, err error)
	Load(ctx context.Context, partition int, which state.Pointer) (*state.Checkpoint, int64, error)
	Manifest(ctx context.Context, partition int, which state.Pointer) (*state.Manifest, int64, error)
	Partitions(ctx context.Context) ([]int, error)
}

// A Publisher writes dead letters and receipts, and returns when they are acknowledged.
type Publisher interface {
	Publish(ctx context.Context, records ...kafka.Record) error
}

// Answered wants to know what label a message got.
type Answered interface {
	// Labelled takes a label of the mail with this identity ([mail.Identity]) once it is learnt;
	// at is the time of its record. It must not wait.
	Labelled(identity, source string, label stream.Label, at time.Time)
}

// A Config describes a learner.
type Config struct {
	Consumer    kafka.ConsumerConfig
	DeadLetters Publisher
	Alerts      AlertPublisher // nil: alarms are logged and counted only
	Runner      model.Runner   // computes a model's slow work in the background; nil: the model waits for it
	Store       Store
	Order       *Order // one model learns all partitions; nil: each has a model of its own
	Model       model.Config
	Name        string              // the model's
	SaveEvery   time.Duration       // the time between the beginnings of two saves, at least; default 3 s
	AdoptConfig bool                // continue a model that was made with another configuration
	Observe     func(Applied)       // called in order for each record of a partition; may be nil
	Answered    Answered            // told of the labels of mail; nil: nobody wants them
	Announce    func(*stream.Alert) // called once for each change of an alarm; default: log it
	Metrics     *Metrics            // may be nil
	Log         *slog.Logger
}

// An Outcome says what became of a record.
type Outcome uint8

const (
	Learned Outcome = iota
	Duplicate
	DeadLettered
	Relearned
	Unlearned
	LeftOut     // of a source that the model is without
	Corrected   // a label took the place of an earlier one
	Uncorrected // a correction changed nothing: the receipt says why
	Followed    // a standing: a source has the role that an operator said
	Assumed     // an answer that nobody contradicted was learnt as a label
	Unassumed   // an answer was not: the message has a label, or people have hardly taught
)

// String returns the outcome's name in metrics.
func (o Outcome) String() string {
	return [...]string{"learned", "duplicate", "dead-letter", "relearned", "unlearned", "left-out", "corrected", "uncorrected", "followed", "assumed", "not-assumed"}[o]
}

// Taught reports whether the model has learnt a label that somebody gave.
func (o Outcome) Taught() bool { return o == Learned || o == Relearned || o == Corrected }

// Applied is a record after the model has applied it.
type Applied struct {
	Partition int
	Offset    int64
	Outcome   Outcome
	Reason    string        // of a dead letter
	Event     *stream.Event // empty if it could not be decoded, or is a standing
	Truth     stream.Label  // the label before ingest flipped it on request
	Raw       bool          // a mail that was read as raw text
	Effect    model.Effect  // if Learned: the prediction is the one before learning
}

// A Status describes an assigned partition.
type Status struct {
	Next     int64     // next offset to read
	End      int64     // the log's end, as of the last fetch
	Events   uint64    // the model's event count
	Resumed  uint64    // events learnt before the partition was taken
	Epsilon  float64   // the model's estimate of the labels' flip rate
	Version  int64     // of the last save; 0 before it
	SHA256   [32]byte  // of the model as last saved
	SavedEnd int64     // Next at the last save
	Saved    time.Time // of the last save

	Alarms        []model.Alarm   // as they stand
	Reading       drift.Diagnosis // what they mean together
	Gates         []model.Gate    // of its stacks
	WindowBytes   int             // of the model's windows of past events
	PendingAlerts int             // not acknowledged yet; saves wait for them
}

// A Learner learns the partitions that Kafka assigns to it.
type Learner struct {
	cfg      Config
	consumer *kafka.Consumer
	fresh    *model.Model // shows this program's defaults and numerics

	running context.Context // Run's; nil before it
	savings sync.WaitGroup  // the goroutines that save
	halt    func()          // ends the goroutines of the last ordered model; nil: there was none

	mu      sync.Mutex
	status  map[int]Status // of the assigned partitions
	counted map[int]int64  // by partition: the next offset to be counted; never falls
}

// New checks the configuration.
func New(cfg Config) (*Learner, error) {
	if cfg.SaveEvery <= 0 {
		cfg.SaveEvery = 3 * time.Second
	}
	cfg.Metrics = cmp.Or(cfg.Metrics, NewMetrics(nil))
	if cfg.Announce == nil {
		cfg.Announce = func(a *stream.Alert) { alert.Log(cfg.Log.With("partition", a.Partition), a) }
	}
	if cfg.Alerts == nil {
		cfg.Alerts = alert.Channels(nil)
	}
	fresh, err := model.New(cfg.Model)
	if err != nil {
		return nil, fmt.Errorf("configuration of model %s: %w", cfg.Name, err)
	}
	cfg.Consumer.PollInterval = cmp.Or(cfg.Consumer.PollInterval, min(cfg.SaveEvery, time.Second))
	cfg.Consumer.SessionTimeout = cmp.Or(cfg.Consumer.SessionTimeout, 10*time.Second)
	cfg.Consumer.Drain = cmp.Or(cfg.Consumer.Drain, cfg.Consumer.SessionTimeout*2/5)
	var consumer *kafka.Consumer
	if cfg.Order == nil {
		consumer, err = kafka.NewConsumer(cfg.Consumer)
	} else {
		consumer, err = kafka.NewConsumer(cfg.Order.consumer(cfg.Consumer))
	}
	if err != nil {
		return nil, err
	}
	return &Learner{cfg: cfg, consumer: consumer, fresh: fresh, status: map[int]Status{}, counted: map[int]int64{}}, nil
}

// Run learns until ctx ends and then saves what it has learnt. It returns nil
// after an orderly stop.
func (l *Learner) Run(ctx context.Context) error {
	l.running = ctx
	defer l.savings.Wait()
	defer func() {
		if l.halt != nil { // after another log the consumer drops a handler without Close
			l.halt()
		}
	}()
	return l.consumer.Run(ctx, func(ctx context.Context, partition int) (kafka.Handler, error) {
		if l.cfg.Order != nil {
			p, err := l.openOrdered(ctx)
			if err != nil {
				return nil, fmt.Errorf("model %s: %w", l.cfg.Name, err)
			}
			return p, nil
		}
		p, err := l.open(ctx, partition)
		if err != nil {
			return nil, fmt.Errorf("model %s, partition %d: %w", l.cfg.Name, partition, err)
		}
		return p, nil
	})
}

// stopping reports whether Run was asked to stop.
func (l *Learner) stopping() bool { return l.running != nil && l.running.Err() != nil }

// Status describes the assigned partitions.
func (l *Learner) Status() map[int]Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.status)
}

func (l *Learner) setStatus(partition int, s Status) {
	l.mu.Lock()
	l.status[partition] = s
	l.mu.Unlock()
	l.cfg.Metrics.status(partition, s)
}

func (l *Learner) dropStatus(partition int) {
	l.mu.Lock()
	delete(l.status, partition)
	l.mu.Unlock()
	l.cfg.Metrics.drop(partition)
}

// firstTime reports whether a record is applied for the first time in this
// process, and counts it.
func (l *Learner) firstTime(partition int, offset int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset < l.counted[partition] {
		return false
	}
	l.counted[partition] = offset + 1
	return true
}

// Ready returns nil if the learner is a member of its group, also without a partition.
func (l *Learner) Ready() error {
	if !l.consumer.Joined() {
		return errors.New("not yet a member of the consumer group")
	}
	return nil
}

// Active reports whether the learner is a member of its group now: see kafka.Consumer.
func (l *Learner) Active() bool { return l.consumer.Active() }

// open takes a partition: a new epoch, the newest checkpoint, the model. What this learner
// refuses it refuses before, so that the learner that holds the partition goes on.
func (l *Learner) open(ctx context.Context, partition int) (*partitionModel, error) {
	log := l.cfg.Log.With("partition", partition)
	p := &partitionModel{l: l, partition: partition, log: log, outbox: outbox{publisher: l.cfg.Alerts, log: log}}
	p.confirm = func(context.Context) error { return nil } // until the consumer gives its own
	from, err := l.load(ctx, log, partition)
	if err != nil {
		return nil, err
	}
	err = retry(ctx, log, "take the partition", func() (err error) {
		p.epoch, err = l.cfg.Store.Take(ctx, partition)
		return err
	})
	if err != nil {
		return nil, err
	}
	same := false
	err = retry(ctx, log, "read the newest checkpoint's manifest", func() (err error) {
		same, err = l.unchanged(ctx, partition, &from)
		return err
	})
	if err == nil && !same { // it was saved before the epoch was taken
		from, err = l.load(ctx, log, partition)
	}
	if err != nil {
		return nil, err
	}
	p.begin(from)
	return p, nil
}

// An origin is what a partition's model goes on from.
type origin struct {
	model   *model.Model
	head    *state.Checkpoint // nil: the model is new
	version int64             // of head
}

// load returns the newest checkpoint of a partition, or a new model. It returns an error if
// this learner may not go on from there.
func (l *Learner) load(ctx context.Context, log *slog.Logger, partition int) (from origin, err error) {
	if err := l.checkOthers(ctx, log, partition); err != nil {
		return from, err
	}
	err = retry(ctx, log, "load the checkpoint", func() (err error) {
		from.head, from.version, err = l.cfg.Store.Load(ctx, partition, state.Head)
		return err
	})
	switch {
	case errors.Is(err, state.ErrNone):
		from = origin{}
		from.model, err = model.New(l.cfg.Model)
		return from, err
	case err != nil:
		return from, err
	}
	if err = l.checkLayout(from.head.Order); err == nil {
		from.model, err = l.restore(from.head)
	}
	if err != nil {
		return from, fmt.Errorf("checkpoint v%d: %w", from.version, err)
	}
	return from, nil
}

// unchanged reports whether the newest checkpoint of a partition is still the one that was
// loaded.
func (l *Learner) unchanged(ctx context.Context, partition int, from *origin) (bool, error) {
	m, version, err := l.cfg.Store.Manifest(ctx, partition, state.Head)
	switch {
	case errors.Is(err, state.ErrNone):
		return from.head == nil, nil
	case errors.Is(err, state.ErrCorrupt):
		return false, nil // Load finds one that is not
	case err != nil:
		return false, err
	}
	return from.head != nil && version == from.version && m.Saved.Equal(from.head.Saved), nil
}

// begin begins with a model, and shows it.
func (p *partitionModel) begin(from origin) {
	l := p.l
	p.model = from.model
	if head := from.head; head == nil {
		p.log.Info("starting with an empty model", "epoch", p.epoch)
	} else {
		p.position, p.known, p.order = head.Position, true, head.Order
		p.noteSaved(head, from.version, head.ModelSHA256())
		p.log.Info("going on from a checkpoint", "epoch", p.epoch, "version", from.version,
			"events", head.Events, "next_offset", head.Position.Next)
	}
	if l.cfg.Runner != nil {
		p.model.SetRunner(l.cfg.Runner)
	}
	l.cfg.Metrics.begin(p.partition, p.model.Config())
	l.cfg.Metrics.standings.show(p.partition, p.model.Sources())
	p.status.Resumed = p.model.Events()
	p.publishStatus()
	for _, a := range p.status.Alarms {
		if a.Status.Raised {
			p.log.Warn("an alarm stands", "kind", a.Kind, "body", a.Body, "since_event", a.Status.Since, "reading", p.status.Reading.String())
		}
	}
}

// restore returns a checkpoint's model, if this learner may continue it. A model may leave out
// more sources than this learner's configuration: hamlet model replace puts such a model in
// place of another. AdoptConfig takes sources back, if the configuration names any or none.
func (l *Learner) restore(c *state.Checkpoint) (*model.Model, error) {
	m, err := model.Restore(c.Model)
	if err != nil {
		return nil, err
	}
	cfg := l.cfg.Model
	if cfg.WithoutSources == nil || !l.cfg.AdoptConfig && !slices.ContainsFunc(cfg.WithoutSources, func(name string) bool { return !m.LeavesOut(name) }) {
		if here, there := len(cfg.WithoutSources), len(m.Config().WithoutSources); cfg.WithoutSources != nil && here < there {
			l.cfg.Log.Warn("the model leaves out more sources than the configuration says, and goes on without them: --adopt-config takes them back",
				"here", here, "in_the_model", there)
		}
		cfg.WithoutSources = m.Config().WithoutSources
	}
	differences := cfg.Differences(m.Config())
	if here := l.fresh.Numerics(); here != m.Numerics() {
		differences = append(differences, fmt.Sprintf("numerics: %s here, %s in the model", here, m.Numerics()))
	}
	if len(differences) == 0 {
		return m, nil
	}
	err = m.Adopt(cfg)
	switch {
	case err != nil && l.cfg.AdoptConfig:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("the model was made with another configuration (%s): start the learner with the model's, "+
			"or a new model under another name; --adopt-config cannot change all of that: %w", strings.Join(differences, "; "), err)
	case !l.cfg.AdoptConfig:
		return nil, fmt.Errorf("the model was made with another configuration (%s): start the learner with the model's, "+
			"or with --adopt-config to go on with this one", strings.Join(differences, "; "))
	}
	l.cfg.Log.Warn("adopted another configuration", "differences", strings.Join(differences, "; "))
	return m, nil
}

// retry repeats what fails for a transient reason until ctx ends. It logs the first
// failure.
func retry(ctx context.Context, log *slog.Logger, what string, do func() error) error {
	logged := false
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 2*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do()
		switch {
		case err != nil && !errors.Is(err, state.ErrTransient):
			err = backoff.Permanent(err)
		case err != nil && !logged:
			logged = true
			log.Warn("the state cannot be reached: trying again", "to", what, "error", err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0))
	return err
}
