package settings

import (
	"context"
	"time"

	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// Topic are the flags for topics that do not exist yet.
type Topic struct {
	Partitions  int           `help:"Partitions of the events topic, if it is to be created. Each has a model of its own." default:"1" placeholder:"N" group:"Kafka"`
	Replication int           `help:"Replicas of topics that are to be created; -1 is the brokers' default." default:"-1" placeholder:"N" group:"Kafka"`
	Retention   time.Duration `help:"How long events are kept, if their topic is to be created." default:"2160h" placeholder:"D" group:"Kafka"`
}

// deadLetterRetention is how long dead letters are kept.
const deadLetterRetention = 14 * 24 * time.Hour

// Ensure creates the model's events topic, and the topics of receipts and dead
// letters, where they are missing.
func (f Topic) Ensure(ctx context.Context, cfg kafka.Config, model string) error {
	if err := kafka.Ping(ctx, cfg); err != nil {
		return err
	}
	if err := kafka.EnsureTopic(ctx, cfg, stream.EventsTopic(model), f.Partitions, f.Replication, f.Retention); err != nil {
		return err
	}
	if err := kafka.EnsureTopic(ctx, cfg, stream.ReceiptTopic, 1, f.Replication, f.Retention); err != nil {
		return err
	}
	return kafka.EnsureTopic(ctx, cfg, stream.DeadLetterTopic, 1, f.Replication, deadLetterRetention)
}

// Versions are the flags for how many versions of a model Redis keeps.
type Versions struct {
	KeepVersions int `help:"Versions of the model that Redis keeps: the latest so many …" default:"3" placeholder:"N" group:"Redis"`
	KeepDaily    int `help:"… and one a day for so many days." default:"30" placeholder:"DAYS" group:"Redis"`
}

// Apply puts them into a store's configuration.
func (f Versions) Apply(cfg *redis.Config) { cfg.Keep, cfg.Daily = f.KeepVersions, f.KeepDaily }
