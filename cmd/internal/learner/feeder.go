package learner

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/interleave"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/kafka"
	"hamlet/stream/order"
)

const (
	// maxFed and maxFedBytes bound the records that a feeder holds, to within a batch. When
	// it is full, it stops fetching until the model has taken some.
	maxFed      = 1024
	maxFedBytes = 16 << 20

	// restartPause is the time that a proposal has to come back from the order log. It is
	// shorter than lookEvery, which looks again.
	restartPause = time.Second
)

// A feeder reads one partition ahead of the order log: it fetches, decodes and hashes the
// records that the model takes later. Its methods are safe for concurrent use.
type feeder struct {
	partition int
	gaps      uint32
	identify  bool
	wake      func()              // tells that there is something to propose
	stop      func()              // ends run
	readings  chan *model.Reading // free; read fills it

	mu        sync.Mutex
	changed   chan struct{}               // closed and renewed at each change
	fed       []fed                       // not taken yet, in order
	bytes     int                         // of their keys and values
	taken     state.Position              // before the first of fed
	behind    state.Position              // behind the last of fed, or taken
	proposed  state.Position              // behind the last record that was proposed, or taken
	want      int64                       // the model waits for the offsets below
	lost      bool                        // retention took the next record
	refusal   error                       // lost, and no flag accepts that: why the learner stops
	said      bool                        // lost, and propose has said so in the order log
	early     bool                        // the order log passed over a proposal, which came too early
	end       int64                       // of the partition, as far as is known; −1: unknown
	allowance allowance                   // of the others, who wait for this one
	back      int64                       // the offset from which restart last proposed again
	backAt    time.Time                   // when; zero: never
	confirm   func(context.Context) error // the consumer's; nil before the first record
	failed    error                       // of run: the partition is another log than the one handed over
}

// A fed is a record and the position behind it.
type fed struct {
	record kafka.Record
	in     incoming
	at     state.Position
	time   int64 // its place in time: timeOf

	tried   bool           // somebody has begun to read it for the model
	reading *model.Reading // nil: nobody has read it
}

func newFeeder(partition int, at state.Position, gaps uint32, identify bool, wake func()) *feeder {
	return &feeder{
		partition: partition, gaps: gaps, identify: identify, wake: wake, changed: make(chan struct{}),
		taken: at, behind: at, proposed: at, end: -1, allowance: newAllowance(),
		readings: make(chan *model.Reading, readAhead),
	}
}

// change makes a change. It wakes who waits for one.
func (f *feeder) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.changed)
	f.changed = make(chan struct{})
}

// run reads until ctx ends. Where records are lost, it ends too. Then the order log says that
// the model goes on without them, or propose says it there if a flag accepts that, or else the
// learner stops.
func (f *feeder) run(ctx context.Context, events kafka.ConsumerConfig) error {
	acceptGap, acceptLostBeginning := events.AcceptGap, events.AcceptLostBeginning
	events.AcceptGap, events.AcceptLostBeginning = false, false
	err := kafka.Follow(ctx, events, f.partition, func(context.Context, int) (kafka.Handler, error) { return &feeding{feeder: f, ctx: ctx}, nil })
	f.change(func() { f.confirm = nil }) // Follow has asked, and has let go of the broker
	switch {
	case errors.Is(err, kafka.ErrReplaced), errors.Is(err, kafka.ErrBehind): // before a gap, which it may look like
		f.change(func() { f.failed = err })
		return err
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, kafka.ErrGap), errors.Is(err, kafka.ErrNoBeginning):
		accepted := acceptGap && errors.Is(err, kafka.ErrGap) || acceptLostBeginning && errors.Is(err, kafka.ErrNoBeginning)
		f.change(func() {
			if f.lost = true; !accepted {
				f.refusal = err
			}
		})
		f.wake()
		return nil
	}
	return err
}

// ends returns the end of the partition's log, as far as is known; −1: unknown.
func (f *feeder) ends() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// take waits for the records up to offset to−1 and returns them, with the position behind
// the last. running is the context of run.
func (f *feeder) take(ctx, running context.Context, to int64) ([]fed, state.Position, error) {
	for {
		f.mu.Lock()
		if f.behind.Next >= to {
			break
		}
		lost, changed := f.lost, f.changed
		long := len(f.fed) > order.MaxRange
		grow := f.want < to
		f.want = max(f.want, to)
		f.mu.Unlock()
		if lost {
			return nil, state.Position{}, fmt.Errorf("%w, and the order log says that the model learns them: restore a newer checkpoint, or name another model", kafka.ErrGap)
		}
		if long {
			return nil, state.Position{}, sequencer.ErrLong
		}
		if grow {
			f.change(func() {}) // a full feeder goes on
			continue
		}
		select {
		case <-changed:
		case <-running.Done():
			return nil, state.Position{}, context.Cause(running)
		case <-ctx.Done():
			return nil, state.Position{}, context.Cause(ctx)
		}
	}
	defer f.mu.Unlock()
	n := 0
	for n < len(f.fed) && f.fed[n].at.Next <= to {
		f.bytes -= f.fed[n].size()
		n++
	}
	if n > order.MaxRange {
		return nil, state.Position{}, sequencer.ErrLong
	}
	took := f.fed[:n:n]
	if n > 0 {
		f.taken = took[n-1].at
	}
	f.fed = f.fed[n:]
	if f.proposed.Next < f.taken.Next {
		f.proposed = f.taken
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return took, f.taken, nil
}

func (r *fed) size() int { return len(r.record.Key) + len(r.record.Value) }

// propose returns a record of the order log for the next n records that were read and not
// proposed, or as many as there are; false if no record is there. It does not propose them again,
// unless restart says so.
func (f *feeder) propose(n int) (r order.Record, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.fed[f.ahead():]
	if n = min(n, len(next)); n == 0 {
		return r, false
	}
	from := f.proposed.Next
	f.proposed = next[n-1].at
	return order.Record{
		Kind: order.Range, Partition: f.partition, From: from, To: f.proposed.Next, Gaps: f.gaps, Chain: f.proposed.Chain,
	}, true
}

// ahead returns how many of fed were proposed and not taken yet. The caller holds f.mu.
func (f *feeder) ahead() int {
	return sort.Search(len(f.fed), func(i int) bool { return f.fed[i].at.Next > f.proposed.Next })
}

// onTheWay returns how many records were proposed and not taken yet.
func (f *feeder) onTheWay() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ahead()
}

// queue makes q what was read and not proposed. Others wait for a partition that was not
// read to its end as long as its allowance lasts.
func (f *feeder) queue(q *interleave.Queue, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.Times = q.Times[:0]
	for i := f.ahead(); i < len(f.fed); i++ {
		q.Times = append(q.Times, f.fed[i].time)
	}
	q.More = !f.lost && f.behind.Next < f.end
	switch {
	case !q.Short():
	case f.room():
		q.More = f.allowance.lasts(now)
	case len(q.Times) == len(f.fed): // it is full, of few large records
		q.More = false
	}
}

// room reports whether more may be read. The caller holds f.mu.
func (f *feeder) room() bool {
	return len(f.fed) < maxFed && f.bytes < maxFedBytes || f.behind.Next < f.want
}

// endKnown reports whether it is known how far the partition reaches.
func (f *feeder) endKnown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end >= 0
}

// noteEnd notes that the partition ends at an offset or behind it.
func (f *feeder) noteEnd(end int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = max(f.end, end)
}

// again makes propose begin again at what the model has taken.
func (f *feeder) again() {
	f.change(func() { f.proposed, f.said, f.early = f.taken, false, false })
}

// passOver notes that the order log has passed over a proposal of this partition as too
// early. What comes before it is missing there.
func (f *feeder) passOver() {
	f.change(func() { f.early = true })
	f.wake()
}

// restart makes propose begin again at what the model has taken, if the order log passed over
// a proposal. Whatever is in the log twice is taken once. A proposal that was passed over is
// seldom alone, so this happens again at the same offset only after restartPause.
func (f *feeder) restart(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.early || f.back == f.taken.Next && now.Sub(f.backAt) < restartPause {
		return
	}
	f.early, f.back, f.backAt = false, f.taken.Next, now
	f.proposed, f.said = f.taken, false
}

// gap returns the offset at which records are lost, and false if none are, if that was
// proposed before, or if records before it are not proposed yet.
func (f *feeder) gap() (from int64, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.behind.Next, f.lost && !f.said && f.proposed == f.behind
}

// refused returns why the learner stops because of lost records; nil if it need not.
func (f *feeder) refused() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refusal
}

// noteGap notes that the gap was proposed.
func (f *feeder) noteGap() { f.change(func() { f.said = true }) }

// confirmed returns nil if all records that were handed over are of one log.
func (f *feeder) confirmed(ctx context.Context) error {
	f.mu.Lock()
	confirm, failed := f.confirm, f.failed
	f.mu.Unlock()
	if confirm == nil || failed != nil {
		return failed
	}
	return confirm(ctx)
}

// A feeding is a feeder as the handler of its partition.
type feeding struct {
	*feeder
	ctx     context.Context // of run
	confirm func(context.Context) error
}

func (f *feeding) Position(confirm func(context.Context) error) (int64, bool) {
	f.confirm = confirm
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.behind.Next, f.behind.Next > 0
}

func (f *feeding) Follows(last kafka.Record) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.behind.Follows(last.Key, last.Value, chained(last.Headers)...)
}

// Handle waits until there is room.
func (f *feeding) Handle(_ context.Context, batch []kafka.Record) error {
	in := make([]incoming, len(batch))
	decode(in, batch, f.identify)
	for {
		f.mu.Lock()
		room, changed := f.room(), f.changed
		f.mu.Unlock()
		if room {
			break
		}
		select {
		case <-changed:
		case <-f.ctx.Done():
			return nil // nobody wants them any more
		}
	}
	now := time.Now()
	f.change(func() {
		f.feeder.confirm = f.confirm
		for i := range batch {
			r := &batch[i]
			f.behind = f.behind.Advance(r.Offset, r.Key, r.Value, chained(r.Headers)...)
			f.fed = append(f.fed, fed{record: *r, in: in[i], at: f.behind, time: timeOf(r)})
			f.bytes += f.fed[len(f.fed)-1].size()
			f.end = max(f.end, r.HighWatermark)
		}
		f.allowance.end(now)
	})
	f.wake()
	return nil
}

func (f *feeding) Idle(context.Context) error { return nil }

func (f *feeding) Close(context.Context) error { return nil }
