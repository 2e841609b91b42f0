package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/advice"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/predictions"
)

// Topic are the flags for topics that do not exist yet.
type Topic struct {
	Replication int           `help:"Replicas of new topics; -1: brokers' choice." default:"-1" placeholder:"N" group:"Kafka" rare:"up"`
	Retention   time.Duration `help:"Age limit of events; 0: brokers' own, -1s: none." default:"${retention}" placeholder:"D" group:"Kafka"`
}

const (
	maxReplication = math.MaxInt16 // a field of Kafka's protocol

	// minRetention keeps events for longer than a learner takes to restart.
	minRetention = time.Minute
)

// Check reports every flag outside its range.
func (f Topic) Check() (err error) {
	if f.Replication != -1 && (f.Replication < 1 || f.Replication > maxReplication) {
		err = cli.Usagef("--replication: %d is neither -1, for the brokers' default, nor in 1…%d",
			f.Replication, maxReplication)
	}
	if f.Retention > 0 && f.Retention < minRetention {
		err = errors.Join(err, cli.Usagef("--retention: %v is below %v: events would go before they are learnt; "+
			"0 is the brokers' default, below zero is for ever", f.Retention, minRetention))
	}
	return err
}

// deadLetterRetention is how long dead letters are kept.
const deadLetterRetention = 14 * 24 * time.Hour

// A newTopic is a topic that is created where it is missing.
type newTopic struct {
	name      string
	retention time.Duration
}

// Ensure creates the model's events topic, and the topics of receipts and dead
// letters, where they are missing.
func (f Topic) Ensure(ctx context.Context, cfg stream.Logs, model string) error {
	if err := f.ensure(ctx, cfg, newTopic{stream.EventsTopic(model), f.Retention}); err != nil {
		return err
	}
	return CheckLog(ctx, cfg, model)
}

// CheckLog returns an error that leads out if a model's events topic has several partitions. It
// wraps kafka.ErrPartitions. Without a topic there is none.
func CheckLog(ctx context.Context, cfg stream.Logs, model string) error {
	topic := stream.EventsTopic(model)
	n, err := cfg.Partitions(ctx, topic)
	if err != nil || n <= 1 {
		return err
	}
	return ExplainLog(fmt.Errorf("topic %s: %w, and this has %d", topic, kafka.ErrPartitions, n), model)
}

// ExplainLog adds what leads out to the error of a model's events topic that has several
// partitions. It returns every other error as it is.
func ExplainLog(err error, model string) error {
	if !errors.Is(err, kafka.ErrPartitions) {
		return err
	}
	return fmt.Errorf("%w. If one model of hamlet 0.1.0 learnt them (there is a topic hamlet.order.%[2]s): "+
		"hamlet order export FILE --model %[2]s, with 0.1.0, then hamlet log import FILE --model NEW. "+
		"If each partition has a model, or none yet: hamlet log merge --from %[2]s --to NEW. "+
		"If other programs write it: name another topic to them, and ingest --from-topic copies that",
		err, model)
}

// EnsureLetters creates the topics of receipts and dead letters where they are missing.
func (f Topic) EnsureLetters(ctx context.Context, cfg stream.Logs) error { return f.ensure(ctx, cfg) }

// EnsurePredictions creates the topic of a model's predictions where it is missing. They are
// kept as long as events.
func (f Topic) EnsurePredictions(ctx context.Context, cfg stream.Logs, model string) error {
	name := predictions.Topic(model)
	err := cfg.Ensure(ctx, name, f.Replication, f.Retention)
	if errors.Is(err, kafka.ErrAuth) {
		return fmt.Errorf("%w; %s", err, advice.NotPredicting(name))
	}
	return err
}

// ensure creates more topics beside those of receipts and dead letters.
func (f Topic) ensure(ctx context.Context, cfg stream.Logs, more ...newTopic) error {
	if err := cfg.Ping(ctx); err != nil {
		return err
	}
	for _, topic := range append(more,
		newTopic{stream.ReceiptTopic, f.Retention},
		newTopic{stream.DeadLetterTopic, deadLetterRetention},
	) {
		if err := cfg.Ensure(ctx, topic.name, f.Replication, topic.retention); errors.Is(err, kafka.ErrAuth) {
			return fmt.Errorf("%w; where only the learner's user may create topics, start the learner first", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Versions are the flags for what is kept of a model.
type Versions struct {
	KeepVersions int  `help:"Keep the newest N versions of the model." default:"3" placeholder:"N" group:"Redis"`
	KeepDaily    *int `help:"Keep one a day for N days (30; in files 7)." placeholder:"N" group:"Redis"`

	RedisEvicts bool `help:"Accept a Redis that may evict the model (maxmemory-policy allkeys-*)." group:"Redis" rare:"up"`

	RedisWait        int           `help:"A save counts once N replicas of Redis have it." default:"0" placeholder:"N" group:"Redis" rare:"up"`
	RedisWaitTimeout time.Duration `help:"How long a save waits for them; then it is tried again." default:"5s" placeholder:"D" group:"Redis" rare:"up,learner"`
}

// maxVersions is far more than a Redis holds of models of megabytes.
const maxVersions = 100_000

// maxRedisReplicas is far more than one Redis feeds.
const maxRedisReplicas = 100

// Check reports every flag outside its range.
func (f Versions) Check() error {
	return errors.Join(cli.Range("--keep-versions", f.KeepVersions, 1, maxVersions),
		cli.Range("--keep-daily", *cmp.Or(f.KeepDaily, new(0)), 0, maxVersions),
		cli.Range("--redis-wait", f.RedisWait, 0, maxRedisReplicas),
		cli.Range("--redis-wait-timeout", f.RedisWaitTimeout, time.Millisecond, time.Hour))
}

// Apply puts them into a store's configuration.
func (f Versions) Apply(cfg *redis.Config) {
	cfg.Keep, cfg.Daily = f.KeepVersions, f.KeepDaily
	cfg.Replicas, cfg.ReplicaWait = f.RedisWait, f.RedisWaitTimeout
}

// Learner are the flags of learning that hamlet up has too.
type Learner struct {
	SaveEvery   time.Duration `help:"Save this often; 3s in files: 30 MB a minute." default:"${save_every}" placeholder:"D"`
	AdoptConfig bool          `help:"Continue a model that was made with other settings."`
	AcceptGap   bool          `help:"Continue even if records not yet learnt are deleted."`

	Answered int `help:"Remember this many of the journal's answers, and show how right they were when their labels come; 0: none." default:"${answered}" placeholder:"N" group:"Journal" rare:"up,learner"`

	NoPredictions bool `help:"Do not write what was predicted of each event: hamlet model compare reads it." group:"Kafka" rare:"up,learner"`

	AcceptLostBeginning bool `help:"Begin without a model even if the oldest records are deleted." rare:"up"`
}

// Check reports every flag outside its range.
func (f Learner) Check() error {
	if f.SaveEvery <= 0 {
		return cli.Usagef("--save-every: %v is not above zero", f.SaveEvery)
	}
	return cli.Range("--answered", f.Answered, 0, 1<<24)
}

// The rates that make sense, in events a second: one in a quarter of an hour, and
// more than any machine sends.
const minRate, maxRate = 1e-3, 1e9

// CheckRate reports a value of --rate that is no number of events a second; 0 is
// without a bound.
func CheckRate(rate float64) error {
	if rate == 0 || rate >= minRate && rate <= maxRate {
		return nil
	}
	return cli.Usagef("--rate: %v is neither 0, as fast as it goes, nor in %v…%v events a second",
		rate, minRate, maxRate)
}
