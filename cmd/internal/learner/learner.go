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
	"sync"
	"time"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/cmd/internal/alert"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A Store keeps checkpoints, one writer a partition. Package storetest has its laws.
type Store interface {
	Take(ctx context.Context) (epoch int64, err error)
	Save(ctx context.Context, c *state.Checkpoint) (version int64, err error)
	Load(ctx context.Context, which state.Pointer) (*state.Checkpoint, int64, error)
	Manifest(ctx context.Context, which state.Pointer) (*state.Manifest, int64, error)
	Partitions(ctx context.Context) ([]int, error)
}

// A Publisher writes dead letters, receipts and predictions, and returns when they are
// acknowledged.
type Publisher interface {
	Publish(ctx context.Context, records ...kafka.Record) error
}

// Answered wants to know what label a message got.
type Answered interface {
	// Labelled takes a label of the mail with this identity ([mail.Identity]) once it is learnt;
	// at is the time of its record. It must not wait. A learner that becomes active tells the
	// labels since the last save, at most the newest 32,768.
	Labelled(identity, source string, label stream.Label, at time.Time)
}

// A Config describes a learner.
type Config struct {
	Consumer    kafka.ConsumerConfig
	DeadLetters Publisher
	Predictions Publisher      // writes what was predicted of each event before its label was learnt; nil: nobody wants it
	Alerts      AlertPublisher // nil: alarms are logged and counted only
	Runner      model.Runner   // computes a model's slow work in the background; nil: the model waits for it
	Store       Store
	Order       *Order  // one model learns all partitions; nil: each has a model of its own
	Shadow      *Shadow // learns beside another model; nil: it is the first of its log
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

	SavedEvents uint64 // Events at the last save

	// Of one model of several partitions, whose Next and End are of the order log: the next
	// offset of each partition, and the end of its log as of the last fetch.
	Offsets sequencer.Offsets
	Ends    []int64

	Alarms        []model.Alarm   // as they stand
	Reading       drift.Diagnosis // what they mean together
	Gates         []model.Gate    // of its stacks
	WindowBytes   int             // of the model's windows of past events
	PendingAlerts int             // not acknowledged yet; saves wait for them

	Order *Standing // of an ordered model; nil: the model has one partition
}

// A Standing is the role of a learner of an ordered model. Next and End of its Status are of
// the order log.
type Standing struct {
	Active bool   // it saves, publishes and orders; else it is a standby
	Writer string // the active learner, as far as the order log says: "" before its first record
	Kept   int    // what a standby keeps until a save covers it, beside predictions: alerts, dead letters, receipts, labels
}

// A Learner learns the partitions that Kafka assigns to it.
type Learner struct {
	cfg      Config
	consumer *kafka.Consumer
	fresh    *model.Model // shows this program's defaults and numerics

	running context.Context // Run's; nil before it
	savings sync.WaitGroup  // the goroutines that save
	halt    func()          // ends the goroutines of the last ordered model; nil: there was none
	seat    seat            // of an ordered model
	hearing hearing

	mu      sync.Mutex
	status  map[int]Status // of the assigned partitions
	alarmed map[int]bool   // partitions whose alarms are in the metrics
	counted map[int]counts // by partition
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
	if cfg.Shadow != nil && cfg.Order != nil && cfg.Order.Append != nil {
		return nil, fmt.Errorf("model %s: a shadow never appends to the order log", cfg.Name)
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
		cfg.Consumer.PollInterval = min(cfg.Consumer.PollInterval, rolePoll)
		consumer, err = kafka.NewConsumer(cfg.Order.consumer(cfg.Consumer))
	}
	if err != nil {
		return nil, err
	}
	l := &Learner{cfg: cfg, consumer: consumer, fresh: fresh, status: map[int]Status{}, alarmed: map[int]bool{}, counted: map[int]counts{}}
	l.hearing.silent.Store(cfg.Shadow != nil)
	return l, nil
}

// Run learns until ctx ends and then saves what it has learnt. It returns nil
// after an orderly stop.
func (l *Learner) Run(ctx context.Context) error {
	l.running = ctx
	defer l.savings.Wait()
	if l.shadow() {
		l.beginHearing(ctx)
		hearing, stop := context.WithCancel(ctx)
		var following sync.WaitGroup
		following.Go(func() { l.followPromotion(hearing) })
		defer following.Wait()
		defer stop()
	}
	if l.cfg.Order != nil {
		return l.runOrdered(ctx)
	}
	return l.consumer.Run(ctx, func(ctx context.Context, partition int) (kafka.Handler, error) {
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
	silent := l.silent()
	fell := silent && l.alarmed[partition]
	l.alarmed[partition] = !silent
	l.mu.Unlock()
	if silent {
		s.Alarms = nil
	}
	if fell {
		l.cfg.Metrics.dropAlarms(partition)
	}
	l.cfg.Metrics.status(partition, s)
}

func (l *Learner) dropStatus(partition int) {
	l.mu.Lock()
	joined := len(l.status[partition].Offsets)
	delete(l.status, partition)
	delete(l.alarmed, partition)
	l.mu.Unlock()
	for p := range joined {
		l.cfg.Metrics.drop(p)
	}
	l.cfg.Metrics.drop(partition)
}

// counts say which records of a partition this process has dealt with. They never fall, so that
// a record which is read again after a reload counts once.
type counts struct {
	handed   int64 // metrics, labels and alarms of the records below were handed on, or saved by another learner
	observed int64 // Observe was called for the records below
}

// firstTime reports whether what comes of a record is to be handed on, and whether it is to be
// observed. It notes both. A standby hands on nothing: handedOn notes that later.
func (l *Learner) firstTime(partition int, offset int64, standby bool) (hand, observe bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counted[partition]
	hand, observe = offset >= c.handed, offset >= c.observed
	if hand && !standby {
		c.handed = offset + 1
	}
	c.observed = max(c.observed, offset+1)
	l.counted[partition] = c
	return hand, observe
}

// handedOn notes that what came of the records up to these places was handed on.
func (l *Learner) handedOn(places []sequencer.Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for partition := range places {
		c := l.counted[partition]
		c.handed = max(c.handed, places[partition].Next)
		l.counted[partition] = c
	}
}

// Ready returns nil if the learner is a member of its group, also without a partition.
func (l *Learner) Ready() error {
	if !l.consumer.Joined() {
		return errors.New("not yet a member of the consumer group")
	}
	return nil
}

// Standing says of which model this learner is the shadow, and of an ordered model which role
// the learner has and how far it is behind. Where there is neither, it is "".
func (l *Learner) Standing() string {
	shadow, role := l.shadowStanding(), l.role()
	if shadow != "" && role != "" {
		shadow += "; "
	}
	return shadow + role
}

// role says, of an ordered model, which role this learner has and how far it is behind the
// order log's end as of the last fetch. Otherwise it is "".
func (l *Learner) role() string {
	s, ok := l.Status()[0]
	switch behind := max(0, s.End-s.Next); {
	case l.cfg.Order == nil:
		return ""
	case !ok || s.Order == nil:
		return "standby, without a model yet"
	case s.Order.Active:
		return fmt.Sprintf("active, %d records of the order log behind", behind)
	case s.Order.Writer == "":
		return fmt.Sprintf("standby, %d records of the order log behind", behind)
	default:
		return fmt.Sprintf("standby, %d records of the order log behind; %s was active last", behind, s.Order.Writer)
	}
}

// Active reports whether the learner is a member of its group now: see kafka.Consumer.
func (l *Learner) Active() bool { return l.consumer.Active() }
