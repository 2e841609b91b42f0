package sources

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/ingest"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
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

The word is a record (hamlet.standing.v1) of the events topic, so a model that is learnt
again from the log follows it again. A copy changes nothing: if this command fails, run it
again.`
}

// said is what `hamlet sources set --json` prints.
type said struct {
	Model      string `json:"model"`
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"` // always 1
	ID         string `json:"id"`         // of the record
	Source     string `json:"source"`
	Role       string `json:"role"`
}

func (c *Command) set(ctx context.Context, log *slog.Logger, stdout io.Writer) error {
	standing, err := NewStanding(c.Set.Source, c.Set.Role, time.Now())
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	cfg, err := c.Machine.Logs(ctx, c.Set.Kafka, "hamlet-sources", log)
	if err != nil {
		return err
	}
	if err := Set(ctx, cfg, c.Model, standing); err != nil {
		return err
	}
	topic := stream.EventsTopic(c.Model)
	if c.JSON {
		return cli.PrintJSON(stdout, said{c.Model, topic, 1, standing.ID, standing.Source, standing.Role.String()})
	}
	_, err = fmt.Fprintf(stdout, "%s is %s for labels from now on: written to %s.\n"+
		"`hamlet sources` shows it when the learner has read and saved it.\n", standing.Source, standing.Role, topic)
	return cli.Written(err)
}

// NewStanding returns an operator's word that a source has a role from now on. The error
// says what is wrong with the names.
func NewStanding(source, role string, now time.Time) (*stream.Standing, error) {
	parsed, err := stream.ParseRole(role)
	if err != nil {
		return nil, err
	}
	s := &stream.Standing{ID: rand.Text(), Time: now.UTC(), Source: source, Role: parsed}
	return s, s.Validate()
}

// Set writes an operator's word to a model's events topic, and waits until it is acknowledged.
func Set(ctx context.Context, cfg stream.Logs, model string, s *stream.Standing) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("set the role of %q: %w", s.Source, err)
		}
	}()
	if err := cfg.Ping(ctx); err != nil {
		return err
	}
	record, err := ingest.StandingRecord(s)
	if err != nil {
		return err
	}
	events, err := cfg.Open(stream.EventsTopic(model))
	if err != nil {
		return err
	}
	return errors.Join(settings.ExplainLog(events.Append(ctx, record), model), events.Close())
}
