package withdraw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/algos/model"
	"hamlet/algos/sites"
	"hamlet/state"
	"hamlet/state/redis"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A Request says what to withdraw, and what to compare.
type Request struct {
	Model         string
	Source        string
	Since         Bound
	Until         Bound   // zero: the end of the log
	Recent        int     // compare the answers to so many last events of other sources
	SpamAt, HamAt float64 // thresholds of the verdicts that are compared
}

// Servers are those of the model.
type Servers struct {
	Kafka kafka.Config
	Store *redis.Store
}

// Progress says how far the log of a partition has been read.
type Progress struct {
	Doing     string // reading, writing, checking
	Partition int
	Offset    int64 // of the last record
	End       int64 // of the log, when it was asked
}

// reporting returns what calls progress for each record.
func reporting(progress func(Progress), doing string) func(p *part, offset int64) {
	return func(p *part, offset int64) {
		progress(Progress{Doing: doing, Partition: p.number, Offset: offset, End: p.end})
	}
}

// A Plan says what a withdrawal would do. [Plan.Write] does it. It holds no mail, and of
// each label its offset and the id of its withdrawal. It is for one goroutine at a time.
type Plan struct {
	Model, Source string
	Partitions    []*PartitionPlan
	Traces        []string // parts of a model where an event that is withdrawn leaves a trace
}

// traces are what model.Receipt says of a withdrawal.
var traces = append(stream.ReceiptTraces, "flip rates and standing of sources", "alarms", "ensembles until they are rebuilt")

// Withdrawable returns how many labels can be withdrawn.
func (p *Plan) Withdrawable() int { return withdrawable(p.Partitions) }

func withdrawable(of []*PartitionPlan) (n int) {
	for _, p := range of {
		n += p.Withdrawable
	}
	return n
}

// Make reads the saved models and the logs, and plans the withdrawal that r asks for. It
// writes nothing. It may read whole logs, and ends when ctx does. It calls progress for
// each record.
func Make(ctx context.Context, servers Servers, r *Request, progress func(Progress)) (*Plan, error) {
	parts, err := servers.parts(ctx, r.Model)
	if err != nil {
		return nil, err
	}
	if err := r.Since.resolve(ctx, parts, 0, func(p *part, offset int64) { p.from = offset }); err != nil {
		return nil, err
	}
	if err := r.Until.resolve(ctx, parts, 1, func(p *part, offset int64) { p.to = offset }); err != nil {
		return nil, err
	}
	plan := &Plan{Model: r.Model, Source: r.Source, Traces: traces}
	pl := planner{source: r.Source, recent: r.Recent, spamAt: r.SpamAt, hamAt: r.HamAt, progress: reporting(progress, "reading")}
	for _, p := range parts {
		of, err := pl.ofPart(ctx, p)
		if err != nil {
			return nil, err
		}
		p.head.Model = nil // the next partition needs the memory
		plan.Partitions = append(plan.Partitions, of)
	}
	return plan, nil
}

// Recheck returns an error unless all labels of the plan can still be withdrawn: the log
// has each where the plan found it, and no later events have pushed it out of the model's
// window. A label that was withdrawn in the meantime is no error. It writes nothing.
func (p *Plan) Recheck(ctx context.Context, servers Servers, progress func(Progress)) error {
	parts, err := servers.parts(ctx, p.Model)
	if err != nil {
		return err
	}
	report := reporting(progress, "checking")
	now := map[int]*part{}
	for _, p := range parts {
		now[p.number] = p
	}
	gone := 0
	for _, of := range p.Partitions {
		if len(of.offsets) == 0 {
			continue
		}
		p := now[of.Partition]
		if p == nil {
			return fmt.Errorf("redis no longer keeps a model of partition %d", of.Partition)
		}
		n, err := of.recheck(ctx, p, report)
		if err != nil {
			return fmt.Errorf("partition %d: %w", of.Partition, err)
		}
		p.head.Model = nil // the next partition needs the memory
		gone += n
	}
	if gone > 0 {
		return fmt.Errorf("%d of %d labels have left the window of withdrawals since: plan again", gone, p.Withdrawable())
	}
	return nil
}

// recheck returns how many labels of the plan p's model can no longer withdraw once it has
// learnt the log to its end.
func (pl *PartitionPlan) recheck(ctx context.Context, p *part, progress func(p *part, offset int64)) (gone int, err error) {
	m, err := model.Restore(p.head.Model)
	if err != nil {
		return 0, fmt.Errorf("the saved model: %w", err)
	}
	next := p.position.Next
	err = p.read(ctx, next-1, p.end, func(r *record) error {
		progress(p, r.Offset)
		if r.Offset < next {
			return p.follows(r)
		}
		return r.applyTo(m)
	})
	if err != nil {
		return 0, err
	}
	return pl.gone(ctx, m, progress)
}

// gone returns how many labels of the plan m can no longer withdraw.
func (pl *PartitionPlan) gone(ctx context.Context, m *model.Model, progress func(p *part, offset int64)) (gone int, err error) {
	err = pl.labels(ctx, func(r *record, _ *stream.Event) error {
		progress(pl.part, r.Offset)
		if err := r.withdrawable(m); err != nil && !errors.Is(err, sites.ErrWithdrawn) {
			gone++
		}
		return nil
	})
	return gone, err
}

// patience bounds a question to Redis.
const patience = 20 * time.Second

// parts loads the saved model, and asks where its log begins and ends.
func (s Servers) parts(ctx context.Context, name string) (parts []*part, err error) {
	ask, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	numbers, err := s.Store.Partitions(ask)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("redis keeps no version of model %s: the learner has saved none yet, or --model or --redis-db names another", name)
	}
	if err := kafka.Ping(ask, s.Kafka); err != nil {
		return nil, err
	}
	topic := stream.EventsTopic(name)
	first, end, err := kafka.Offsets(ctx, s.Kafka, topic)
	if err != nil {
		return nil, err
	}
	for _, number := range numbers {
		head, _, err := s.Store.Load(ctx, state.Head)
		if errors.Is(err, state.ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, there := end[number]; !there {
			return nil, fmt.Errorf("the model has a partition %d, and topic %s has none: is this the Kafka of its learner?", number, topic)
		}
		p := &part{number: number, kafka: s.Kafka, topic: topic, head: head, position: head.Position, first: first[number], end: end[number], to: end[number]}
		if err := p.check(); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}
