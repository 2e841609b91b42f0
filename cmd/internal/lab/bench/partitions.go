package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/model"
	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/example"
	"hamlet/cmd/internal/ingest"
	"hamlet/cmd/internal/progress"
	"hamlet/cmd/internal/report"
	"hamlet/cmd/internal/settings"
	"hamlet/cmd/internal/source"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// Partitions holds the flags of `hamlet bench partitions`.
type Partitions struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Files, directories, or - for standard input; .gz and .zst are unpacked."`
	source.Flags
	settings.ResearchModel

	Partitions int    `help:"Into how many partitions the stream is split." default:"4" placeholder:"N"`
	By         string `help:"What an event's partition depends on: message (its Kafka key, as ingest makes it), recipient, or random (its id and the seed)." enum:"message,recipient,random" default:"message"`
	Seed       uint64 `help:"Seed of the random split." default:"1" placeholder:"S"`

	Resamples     int    `help:"Bootstrap resamples behind the 95 % intervals." default:"1000" placeholder:"N"`
	BootstrapSeed uint64 `help:"Seed of the resamples." default:"1" placeholder:"S"`
	JSON          bool   `name:"json" help:"Print one object in JSON instead of a table."`
}

// Help is shown by kong below the flags.
func (Partitions) Help() string {
	return `Examples:
  hamlet bench partitions --spam Junk/ --ham INBOX/
  hamlet bench partitions --index index.csv corpus.tar.gz --by random --seed 2

What does a model lose if its topic has several partitions, and how do the models of the partitions
best answer as one? Each event is scored by every pooling of these models, by its own partition's
model alone, and by one model of the whole stream. Then its own partition's model and the one model
learn it. The poolings:

  mean      the mean of the models' log-odds, with the mean of their variances
  experts   the experts are pooled; the heads' answers are averaged, weighted by the events that
            each has learnt: what a scorer does
  head      the heads are merged by natural parameters, and see the mean of the experts' answers
  model     the experts are pooled, and the heads merged

Pooled experts average AdaGrad's weights by their accumulators and add up naive Bayes' counts.
Intervals are 95 % bootstrap intervals over events; ratios are paired, on the same resamples.`
}

// A partitionReplay is the replay of one stream through the models of its partitions
// and through one model.
type partitionReplay struct {
	parts    []*model.Model
	pool     *model.Pool
	single   *model.Model
	of       func(*stream.Event) int // an event's partition
	truth    []bool
	learnt   []int // events, by partition
	outcomes []*outcome
	rejected func(error)
	rejects  int
	progress func(scored int)
}

// Names of outcomes. The mean is the first pooling; ratios compare it with the others.
const (
	singleOutcome = "one partition"
	ownOutcome    = "own partition alone"
)

func newPartitionReplay(cfg model.Config, partitions int, of func(*stream.Event) int) (*partitionReplay, error) {
	s := &partitionReplay{of: of, learnt: make([]int, partitions)}
	for range partitions {
		m, err := model.New(cfg)
		if err != nil {
			return nil, fmt.Errorf("configuration of the model: %w", err)
		}
		s.parts = append(s.parts, m)
	}
	s.pool = model.NewPool(s.parts...)
	var err error
	if s.single, err = model.New(cfg); err != nil {
		return nil, fmt.Errorf("configuration of the model: %w", err)
	}
	for _, pooling := range model.Poolings {
		s.outcomes = append(s.outcomes, &outcome{name: string(pooling), proper: true})
	}
	s.outcomes = append(s.outcomes, &outcome{name: singleOutcome, proper: true}, &outcome{name: ownOutcome, proper: true})
	return s, nil
}

// run replays items.
func (s *partitionReplay) run(ctx context.Context, items iter.Seq2[source.Item, error]) error {
	for item, err := range items {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var rejection *source.Rejection
		if err != nil && !errors.As(err, &rejection) {
			return err
		}
		if err == nil {
			err = s.step(&item)
		}
		if err != nil {
			s.rejects++
			s.rejected(err)
		}
		s.progress(len(s.truth))
	}
	return nil
}

// step scores an item, then teaches it. After an error the models are unchanged.
func (s *partitionReplay) step(item *source.Item) error {
	if item.Event.Action != stream.Learn {
		return fmt.Errorf("event %d: only labelled events can be replayed, and this one withdraws another: remove it", item.Ordinal+1)
	}
	ex, _, err := example.Of(&item.Event)
	if err != nil {
		return err
	}
	var answers []model.Prediction
	for _, pooling := range model.Poolings {
		answer, err := s.pool.PredictBy(pooling, &ex.Body)
		if err != nil {
			return fmt.Errorf("event %s: %w", ex.ID, err)
		}
		answers = append(answers, answer)
	}
	effect, err := s.single.Apply(&ex)
	if err != nil {
		return fmt.Errorf("event %s: %w", ex.ID, err)
	}
	p := s.of(&item.Event)
	own, err := s.parts[p].Apply(&ex)
	if err != nil {
		return fmt.Errorf("event %s: %w", ex.ID, err)
	}
	if effect.Duplicate || own.Duplicate {
		return nil
	}
	s.learnt[p]++
	s.truth = append(s.truth, item.Truth == stream.Spam)
	for i, answer := range append(answers, effect.Prediction, own.Prediction) {
		s.outcomes[i].add(answer.LogOdds >= 0, answer.LogOdds)
	}
	return nil
}

// Run replays the source and prints the comparison.
func (c *Partitions) Run(ctx context.Context, stdio cli.IO) error {
	if c.Partitions < 1 {
		return cli.Usagef("--partitions: %d is below 1", c.Partitions)
	}
	if c.Resamples < 1 {
		return cli.Usagef("--resamples: %d is below 1", c.Resamples)
	}
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	cfg.Stdin = stdio.In
	src, err := source.Open(cfg)
	if err != nil {
		return err
	}
	defer src.Close()
	modelConfig, err := c.ResearchModel.Config(src.Dense())
	if err != nil {
		return err
	}
	s, err := newPartitionReplay(modelConfig, c.Partitions, c.partition)
	if err != nil {
		return err
	}
	rejections := report.Rejections{W: stdio.Err}
	progress := progress.NewCounter(stdio.Err)
	s.rejected = rejections.Add
	s.progress = func(n int) { total, _ := src.Total(); progress.Set(n, total) }
	err = s.run(ctx, src.Events())
	progress.Close()
	rejections.Close()
	if err != nil {
		return err
	}
	if len(s.truth) == 0 {
		return errors.New("the source holds no event that can be learnt")
	}
	result, err := c.measure(ctx, s)
	if err != nil {
		return err
	}
	if c.JSON {
		return result.writeJSON(stdio.Out)
	}
	return result.writeTable(stdio.Out)
}

// partition returns the partition of an event.
func (c *Partitions) partition(e *stream.Event) int {
	switch c.By {
	case "message":
		return kafka.PartitionOf(ingest.Key(e), c.Partitions)
	case "recipient":
		return kafka.PartitionOf(recipientKey(e), c.Partitions)
	}
	b := binary.LittleEndian.AppendUint64(nil, c.Seed)
	return int(xxhash.Sum64(append(b, e.ID...)) % uint64(c.Partitions))
}
