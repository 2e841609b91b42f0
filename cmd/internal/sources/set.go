package sources

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/settings"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

type set struct {
	Source string `arg:"" help:"Name of the source, as events have it."`
	Role   string `arg:"" enum:"anchor,ordinary,muted" help:"anchor: believed, and others are compared with it; muted: teaches nothing; ordinary: weighed by its agreement with others."`
	settings.Kafka
}

// Help is what kong prints below the flags.
func (set) Help() string {
	return `Examples:

  hamlet sources set user-reports muted          beside a running hamlet up
  hamlet sources set abuse-desk anchor --kafka kafka:9092
  hamlet sources set user-reports ordinary       as it was

It holds for labels that come after it. What a source has taught already stays: see
hamlet withdraw. Anchors are for sources that label often; while they are heard, all
others are compared with them alone. At most 256 sources have a role.

The word is a record (hamlet.standing.v1) that is written to every partition of the
events topic, so a model that is learnt again from the log follows it again. A copy
changes nothing: if this command fails, run it again. Run it again after partitions were
added too: a new one has not heard the word.`
}

// said is what `hamlet sources set --json` prints.
type said struct {
	Model      string `json:"model"`
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"`
	ID         string `json:"id"` // of the record
	Source     string `json:"source"`
	Role       string `json:"role"`
}

// set writes the operator's word to all partitions.
func (c *Command) set(ctx context.Context, log *slog.Logger, stdout io.Writer) error {
	role, err := stream.ParseRole(c.Set.Role)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	standing := stream.Standing{ID: rand.Text(), Time: time.Now().UTC(), Source: c.Set.Source, Role: role}
	if err := standing.Validate(); err != nil {
		return &cli.UsageError{Err: err}
	}
	reach, err := c.Set.Kafka.OrRunning()
	if err != nil {
		return err
	}
	cfg, err := reach.Config("hamlet-sources", log)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	topic := stream.EventsTopic(c.Model)
	partitions, err := publish(ctx, cfg, &standing, topic)
	if err != nil {
		return fmt.Errorf("set the role of %q: %w", standing.Source, err)
	}
	if c.JSON {
		return printJSON(stdout, said{c.Model, topic, partitions, standing.ID, standing.Source, role.String()})
	}
	where := fmt.Sprintf("all %d partitions", partitions)
	if partitions == 1 {
		where = "the one partition"
	}
	_, err = fmt.Fprintf(stdout, "%s is %s for labels from now on: written to %s of %s.\n"+
		"`hamlet sources` shows it when the learners have read and saved it.\n", standing.Source, role, where, topic)
	return written(err)
}

// publish waits until all partitions have acknowledged the standing.
func publish(ctx context.Context, cfg kafka.Config, s *stream.Standing, topic string) (partitions int, err error) {
	if err := kafka.Ping(ctx, cfg); err != nil {
		return 0, err
	}
	record, err := ingest.StandingRecord(s, topic)
	if err != nil {
		return 0, err
	}
	producer, err := kafka.NewProducer(cfg)
	if err != nil {
		return 0, err
	}
	partitions, err = producer.Broadcast(ctx, record)
	return partitions, errors.Join(err, producer.Close())
}
