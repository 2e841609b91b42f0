package bench

import (
	"fmt"
	"math"

	"hamlet/algos/model"
	"hamlet/cmd/internal/interleave"
)

// readAhead is how many records of a partition a learner reads ahead.
const readAhead = 1024

// A backlog is a stream that stands in the partitions of a topic as ingest writes it, and
// one model that learns all of them in the order that its learner would write.
type backlog struct {
	model   *model.Model
	outcome outcome // by place in the stream
	runs    int     // records of the order log

	queues []interleave.Queue
	waits  [][]waiting // by partition
	held   int         // of all of waits
}

// A waiting is an event that is not learnt yet.
type waiting struct {
	example model.Example
	place   int // in the stream
}

func newBacklog(cfg model.Config, partitions int) (*backlog, error) {
	m, err := model.New(cfg)
	return &backlog{
		model: m, outcome: outcome{name: orderOutcome, proper: true},
		queues: make([]interleave.Queue, partitions), waits: make([][]waiting, partitions),
	}, err
}

// add appends an event to a partition. The model learns when the learner would have read as
// much as it holds.
func (b *backlog) add(partition int, ex *model.Example) error {
	place := len(b.outcome.logOdds)
	b.outcome.add(false, math.NaN())
	q := &b.queues[partition]
	q.Times = append(q.Times, int64(place))
	b.waits[partition] = append(b.waits[partition], waiting{*ex, place})
	for b.held++; b.held >= readAhead*len(b.queues); {
		if err := b.round(); err != nil {
			return err
		}
	}
	return nil
}

// end learns what is left.
func (b *backlog) end() error {
	for b.held > 0 {
		if err := b.round(); err != nil {
			return err
		}
	}
	return nil
}

// round learns one round. A partition without an event among those that are held is taken
// for an idle one.
func (b *backlog) round() error {
	for _, run := range interleave.Round(b.queues, len(b.outcome.logOdds)-b.held) {
		b.runs++
		q, waits := &b.queues[run.Partition], b.waits[run.Partition]
		for i := range waits[:run.Records] {
			w := &waits[i]
			effect, err := b.model.Apply(&w.example)
			if err != nil {
				return fmt.Errorf("event %s: %w", w.example.ID, err)
			}
			z := effect.Prediction.LogOdds
			b.outcome.logOdds[w.place], b.outcome.spam[w.place] = z, z >= 0
		}
		clear(waits[:run.Records]) // their bodies
		q.Times, b.waits[run.Partition] = q.Times[run.Records:], waits[run.Records:]
		b.held -= run.Records
	}
	return nil
}
