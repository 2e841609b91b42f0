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
	"hamlet/cmd/internal/lab/synthetic"
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

	Generate      int `help:"Replay N synthetic mails and no source." default:"0" placeholder:"N"`
	Interleavings int `help:"Into how many splits the stream is divided, each with a seed of its own. Above 1: mean and spread instead of the poolings and their intervals." default:"5" placeholder:"N"`

	Resamples     int    `help:"Bootstrap resamples behind the 95 % intervals." default:"1000" placeholder:"N"`
	BootstrapSeed uint64 `help:"Seed of the resamples." default:"1" placeholder:"S"`
	JSON          bool   `name:"json" help:"Print one object in JSON instead of a table."`
}

// Help is shown by kong below the flags.
func (Partitions) Help() string {
	return `Examples:
  hamlet bench partitions --spam Junk/ --ham INBOX/
  hamlet bench partitions --index index.csv corpus.tar.gz --by random --seed 2

What does a model lose if its topic has several partitions? Each event is scored by one model of the
whole stream, by one model of all partitions, by the models of the partitions jointly, and by that of
its own partition alone. Then they learn it. The one model of all partitions learns a backlog, in the
order that a learner would write into its order log. Of five splits, mean and spread are printed.

With --interleavings 1 each pooling of the models of the partitions is shown:

  mean      the mean of the models' log-odds, with the mean of their variances
  experts   the experts are pooled; the heads' answers are averaged, weighted by the events that
            each has learnt: what a scorer does
  head      the heads are merged by natural parameters, and see the mean of the experts' answers
  model     the experts are pooled, and the heads merged

By message and by recipient, the first split is Kafka's; the others hash the same keys with a seed.
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
	poolings []model.Pooling // asked; the first of outcomes
	backlog  *backlog        // the one model of all partitions; its outcome is the last
	rejected func(error)
	rejects  int
	progress func(scored int)
}

// Names of outcomes. The mean is the first pooling; ratios compare it with the others.
const (
	singleOutcome = "one partition"
	ownOutcome    = "own partition alone"
	orderOutcome  = "one model of all"
)

func newPartitionReplay(cfg model.Config, partitions int, poolings []model.Pooling, of func(*stream.Event) int) (*partitionReplay, error) {
	s := &partitionReplay{of: of, poolings: poolings, learnt: make([]int, partitions)}
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
	if s.backlog, err = newBacklog(cfg, partitions); err != nil {
		return nil, fmt.Errorf("configuration of the model: %w", err)
	}
	for _, pooling := range poolings {
		s.outcomes = append(s.outcomes, &outcome{name: string(pooling), proper: true})
	}
	s.outcomes = append(s.outcomes, &outcome{name: singleOutcome, proper: true}, &outcome{name: ownOutcome, proper: true}, &s.backlog.outcome)
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
	return s.backlog.end()
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
	for _, pooling := range s.poolings {
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
	return s.backlog.add(p, &ex)
}

// Run replays the source and prints the comparison.
func (c *Partitions) Run(ctx context.Context, stdio cli.IO) error {
	if c.Partitions < 1 {
		return cli.Usagef("--partitions: %d is below 1", c.Partitions)
	}
	if c.Interleavings < 1 {
		return cli.Usagef("--interleavings: %d is below 1", c.Interleavings)
	}
	if c.Resamples < 1 {
		return cli.Usagef("--resamples: %d is below 1", c.Resamples)
	}
	src, err := c.open(stdio)
	if err != nil {
		return err
	}
	defer src.Close()
	modelConfig, err := c.ResearchModel.Config(src.Dense())
	if err != nil {
		return err
	}
	if src.Once() && c.Interleavings > 1 {
		return cli.Usagef("--interleavings: standard input and pipes can be read only once: give a file, or --interleavings 1")
	}
	if c.Interleavings > 1 {
		return c.spread(ctx, stdio, src, modelConfig)
	}
	s, err := c.replay(ctx, stdio, src, modelConfig, model.Poolings, 0)
	if err != nil {
		return err
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

// A partitionSource is what is replayed: a *source.Source, or synthetic mail.
type partitionSource interface {
	Events() iter.Seq2[source.Item, error]
	Dense() []string
	Total() (n int, known bool)
	Once() bool
	Close() error
}

// A generated is synthetic mail as a partitionSource.
type generated struct {
	items iter.Seq2[source.Item, error]
	n     int
}

func (g *generated) Events() iter.Seq2[source.Item, error] { return g.items }
func (g *generated) Dense() []string                       { return nil }
func (g *generated) Total() (int, bool)                    { return g.n, true }
func (g *generated) Once() bool                            { return false }
func (g *generated) Close() error                          { return nil }

func (c *Partitions) open(stdio cli.IO) (partitionSource, error) {
	if c.Generate > 0 {
		if len(c.Sources) > 0 {
			return nil, cli.Usagef("--generate: it replays synthetic mail and no source: leave out %s", c.Sources[0])
		}
		items, err := synthetic.Items(synthetic.Config{Seed: c.Seed}, c.Generate, source.FlipConfig{})
		return &generated{items, c.Generate}, err
	}
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	cfg.Stdin = stdio.In
	return source.Open(cfg)
}

// replay replays the source once. interleaving counts the replays.
func (c *Partitions) replay(ctx context.Context, stdio cli.IO, src partitionSource, cfg model.Config, poolings []model.Pooling, interleaving int) (*partitionReplay, error) {
	s, err := newPartitionReplay(cfg, c.Partitions, poolings, func(e *stream.Event) int { return c.partition(e, interleaving) })
	if err != nil {
		return nil, err
	}
	rejections := report.Rejections{W: stdio.Err}
	progress := progress.NewCounter(stdio.Err)
	s.rejected = func(err error) {
		if interleaving == 0 {
			rejections.Add(err)
		}
	}
	s.progress = func(n int) { total, _ := src.Total(); progress.Set(n, total) }
	err = s.run(ctx, src.Events())
	progress.Close()
	rejections.Close()
	if err != nil {
		return nil, err
	}
	if len(s.truth) == 0 {
		return nil, errors.New("the source holds no event that can be learnt")
	}
	return s, nil
}

// partition returns the partition of an event in an interleaving.
func (c *Partitions) partition(e *stream.Event, interleaving int) int {
	key := []byte(e.ID)
	switch c.By {
	case "message":
		key = ingest.Key(e)
	case "recipient":
		key = recipientKey(e)
	}
	if c.By != "random" && interleaving == 0 {
		return kafka.PartitionOf(key, c.Partitions)
	}
	b := binary.LittleEndian.AppendUint64(nil, c.Seed+uint64(interleaving))
	return int(xxhash.Sum64(append(b, key...)) % uint64(c.Partitions))
}
