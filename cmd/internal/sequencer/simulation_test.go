package sequencer_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
	"hamlet/stream/order"
)

// Whatever comes late, twice or out of order, and whoever crashes: all learners take the
// same records in the same order, each once, and in the end all of them. The seed of a
// schedule that fails is in its message.
func TestEveryScheduleTakesEachRecordOnce(t *testing.T) {
	schedules := uint64(2000)
	if testing.Short() {
		schedules = 300
	}
	seen := map[string]int{}
	for seed := range schedules {
		w := newWorld(seed)
		w.run()
		if w.failed != nil {
			t.Fatalf("seed %d: %v", seed, w.failed)
		}
		for what, n := range w.seen {
			seen[what] += n
		}
	}
	// Without these the schedules would show little.
	for _, what := range []string{
		"stale beginning", "began", "beyond range", "stale range", "cut", "late for a gap", "taken range", "joined", "stale join",
		"beyond join", "jumped", "stale gap", "beyond gap", "before the beginning", "crash", "crash in a take", "restart", "save", "save refused", "doubled", "dropped", "retention",
	} {
		if seen[what] < 20 {
			t.Errorf("%s: seen %d times", what, seen[what])
		}
	}
	t.Log(seen)
}

// A world is some learners, their events, their order log and a network that delays and
// doubles appends.
type world struct {
	rng        *rand.Rand
	partitions []*partition
	log        [][]byte // the order log
	flight     []*sent  // what was sent to it, and has not arrived for the last time
	learners   []*learner
	saved      []byte // the newest checkpoint: a State; nil: none
	savedTook  []took // and what its model has learnt
	next       int64  // the order log's position of saved

	took   []took  // the most that a learner has taken
	gaps   []int   // in took, by partition
	expect []int64 // by partition: the offset behind the last in took

	failed error          // the first failure
	seen   map[string]int // how often something happened
}

// A partition has the offsets first to end−1.
type partition struct{ first, end int64 }

// value is what the partition holds at an offset.
func value(partition int, offset int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(partition)<<32|uint64(offset))
}

// A sent is an append that is under way.
type sent struct {
	value     []byte
	partition int
	gaps      int // it arrives after so many gaps of the partition were accepted
}

// A took is a record that was learnt, or a gap that was accepted.
type took struct {
	partition int
	from, to  int64
	gap       bool
}

type learner struct {
	up, active bool
	state      *sequencer.State
	took       []took
	ahead      map[int]*sequencer.Proposal // what it sent last, if it does not wait for the answer
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 19)), seen: map[string]int{}}
	for range 1 + w.rng.IntN(3) {
		w.partitions = append(w.partitions, &partition{})
	}
	for range 2 + w.rng.IntN(3) {
		l := &learner{active: w.rng.IntN(2) == 0}
		w.learners = append(w.learners, l)
		w.restart(l)
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.failed == nil {
		w.failed = fmt.Errorf(format, args...)
	}
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

func (w *world) run() {
	steps := 50 + w.rng.IntN(200)
	for range steps {
		w.step(w.learners[w.rng.IntN(len(w.learners))])
		if w.failed != nil {
			return
		}
	}
	w.heal()
	w.compare()
}

// step does one thing that may happen at any time.
func (w *world) step(l *learner) {
	switch at := w.rng.IntN(100); {
	case at < 15:
		w.partitions[w.rng.IntN(len(w.partitions))].end += 1 + w.rng.Int64N(5)
	case at < 45:
		w.read(l)
	case at < 65:
		w.propose(l)
	case at < 82:
		w.land()
	case at < 86:
		w.save(l)
	case at < 89:
		w.crash(l)
	case at < 93:
		w.restart(l)
	case at < 96:
		l.active = !l.active
	case at < 97:
		if len(w.partitions) < 5 {
			w.partitions = append(w.partitions, &partition{})
		}
	case at < 98:
		w.retain()
	case at < 99 || w.chance(50):
		w.lose()
	default:
		w.mistake()
	}
}

func (w *world) crash(l *learner) {
	l.up, l.state, l.took, l.ahead = false, nil, nil, nil
	w.seen["crash"]++
}

// restart begins at the newest checkpoint.
func (w *world) restart(l *learner) {
	if l.up {
		return
	}
	w.seen["restart"]++
	l.up, l.state, l.took, l.ahead = true, &sequencer.State{}, slices.Clone(w.savedTook), map[int]*sequencer.Proposal{}
	if w.saved != nil {
		if err := l.state.UnmarshalBinary(w.saved); err != nil {
			w.fail("restart: %v", err)
		}
	}
}

// save saves a checkpoint, unless a newer one is there.
func (w *world) save(l *learner) {
	if !l.up {
		return
	}
	if l.state.Log.Next < w.next {
		w.seen["save refused"]++
		return
	}
	w.seen["save"]++
	b, err := l.state.AppendBinary(nil)
	if err != nil {
		w.fail("save: %v", err)
	}
	w.saved, w.savedTook, w.next = b, slices.Clone(l.took), l.state.Log.Next
}

// read applies the next record of the order log.
func (w *world) read(l *learner) {
	if !l.up || l.state.Log.Next >= int64(len(w.log)) {
		return
	}
	begun := len(l.state.Places) > 0
	d, err := l.state.Apply(l.state.Log.Next, nil, w.log[l.state.Log.Next])
	if err != nil {
		w.fail("%v", err)
		return
	}
	w.note(l, &d, begun)
	switch d.Outcome {
	case sequencer.Jumped:
		w.take(l, took{partition: d.Record.Partition, from: d.Record.From, to: d.Record.To, gap: true})
	case sequencer.Taken:
		if w.chance(3) {
			w.seen["crash in a take"]++
			w.crash(l)
			return
		}
		p := d.Take.Partition
		for offset := d.Take.From; offset < d.Take.To; offset++ {
			if offset < w.partitions[p].first || offset >= w.partitions[p].end {
				w.fail("partition %d does not hold offset %d of the range %d to %d: it has %+v", p, offset, d.Take.From, d.Take.To-1, *w.partitions[p])
				return
			}
			d.Take.Add(offset, nil, value(p, offset))
		}
		if err := l.state.Finish(d.Take); err != nil {
			w.fail("%v", err)
			return
		}
		w.take(l, took{partition: p, from: d.Take.From, to: d.Take.To})
	}
}

// note counts what the schedules have shown.
func (w *world) note(l *learner, d *sequencer.Decision, begun bool) {
	switch {
	case !begun && d.Outcome == sequencer.Beyond:
		w.seen["before the beginning"]++
	case d.Outcome == sequencer.Began, d.Outcome == sequencer.Joined, d.Outcome == sequencer.Jumped:
		w.seen[d.Outcome.String()]++
	default:
		w.seen[d.Outcome.String()+" "+d.Record.Kind.String()]++
	}
	if d.Outcome == sequencer.Taken && d.Take.From > d.Record.From {
		w.seen["cut"]++
	}
	if r := &d.Record; begun && r.Kind == order.Range && r.Partition < len(l.state.Places) && r.Gaps < l.state.Places[r.Partition].Gaps {
		w.seen["late for a gap"]++
	}
}

// take notes what a learner took and compares it with what others took.
func (w *world) take(l *learner, t took) {
	for offset := t.from; offset < t.to; offset++ { // record by record: others may cut elsewhere
		one := took{t.partition, offset, offset + 1, t.gap}
		l.took = append(l.took, one)
		n := len(l.took)
		if n <= len(w.took) {
			if w.took[n-1] != one {
				w.fail("a learner took %+v, another one %+v", one, w.took[n-1])
			}
			continue
		}
		w.took = append(w.took, one)
		for len(w.expect) <= t.partition {
			w.expect, w.gaps = append(w.expect, 0), append(w.gaps, 0)
		}
		if w.expect[t.partition] != offset {
			w.fail("partition %d: offset %d was taken, want %d", t.partition, offset, w.expect[t.partition])
		}
		w.expect[t.partition] = offset + 1
		if t.gap && offset == t.to-1 {
			w.gaps[t.partition]++
		}
	}
}

// propose sends what a learner that thinks it is active would append.
func (w *world) propose(l *learner) {
	if !l.up || !l.active {
		return
	}
	n := len(l.state.Places)
	p := w.rng.IntN(len(w.partitions))
	switch {
	case n == 0:
		w.send(sequencer.Beginning("l", 1, make([]state.Position, 1+w.rng.IntN(len(w.partitions))), [32]byte{}))
		if w.chance(20) { // it does not wait until it has begun
			w.send(order.Record{Kind: order.Join, Writer: "l", Partition: p})
		}
		return
	case p >= n:
		w.send(order.Record{Kind: order.Join, Writer: "l", Partition: p})
		return
	}
	proposal := l.state.Propose(p)
	if ahead := l.ahead[p]; ahead != nil && w.chance(50) {
		proposal = ahead.Next()
	}
	log := w.partitions[p]
	if proposal.From < log.first {
		return // the records are gone: an operator has to say so
	}
	end := min(log.end, proposal.From+1+w.rng.Int64N(6))
	for offset := proposal.From; offset < end; offset++ {
		proposal.Add(offset, nil, value(p, offset))
	}
	if proposal.Len() > 0 {
		l.ahead[p] = proposal
		w.send(proposal.Record("l", 1))
	}
}

func (w *world) send(r order.Record) {
	b, err := r.AppendProto(nil)
	if err != nil {
		w.fail("%v", err)
		return
	}
	w.flight = append(w.flight, &sent{value: b, partition: r.Partition})
}

// land lets an append arrive. It may arrive again, or have been the last attempt of a
// learner that died before it was written.
func (w *world) land() {
	if len(w.flight) == 0 {
		return
	}
	i := w.rng.IntN(len(w.flight))
	a := w.flight[i]
	if a.gaps > w.accepted(a.partition) {
		return
	}
	if w.chance(5) {
		w.seen["dropped"]++
	} else {
		w.log = append(w.log, a.value)
		if w.chance(30) {
			w.seen["doubled"]++
			return
		}
	}
	w.flight = slices.Delete(w.flight, i, i+1)
}

// accepted returns how many gaps of a partition the order log has accepted.
func (w *world) accepted(partition int) int {
	if partition >= len(w.gaps) {
		return 0
	}
	return w.gaps[partition]
}

// retain deletes records that no checkpoint needs.
func (w *world) retain() {
	var saved sequencer.State
	if w.saved == nil || saved.UnmarshalBinary(w.saved) != nil {
		return
	}
	for i := range saved.Places {
		keep := saved.Places[i].Next
		for _, l := range w.learners {
			if l.up && i < len(l.state.Places) {
				keep = min(keep, l.state.Places[i].Next)
			} else if l.up {
				keep = 0
			}
		}
		w.partitions[i].first = max(w.partitions[i].first, keep)
	}
	w.seen["retention"]++
}

// lose deletes records that nobody has taken, and an operator says so. Ranges of them that
// are under way arrive after the operator's record: before it, nobody could follow them.
func (w *world) lose() {
	for _, l := range w.learners {
		for l.up && l.state.Log.Next < int64(len(w.log)) && w.failed == nil {
			w.read(l)
		}
	}
	for _, l := range w.learners {
		if l.up {
			w.save(l)
		}
	}
	var saved sequencer.State
	if w.saved == nil || saved.UnmarshalBinary(w.saved) != nil || saved.Log.Next < int64(len(w.log)) {
		return
	}
	for i, p := range saved.Places {
		log := w.partitions[i]
		if log.end <= p.Next || p.Next < log.first {
			continue
		}
		log.first = p.Next + 1 + w.rng.Int64N(log.end-p.Next)
		for _, a := range w.flight {
			if a.partition == i {
				a.gaps = w.accepted(i) + 1
			}
		}
		w.operate(i)
		return
	}
}

// operate writes the operator's record for the records that a partition has lost.
func (w *world) operate(i int) {
	from := int64(0)
	if i < len(w.expect) {
		from = w.expect[i]
	}
	if from < w.partitions[i].first {
		w.send(order.Record{Kind: order.Gap, Writer: "operator", Partition: i, From: from, To: w.partitions[i].first})
	}
}

// mistake writes an operator's record for records that are there. It holds only if the
// position comes to its beginning.
func (w *world) mistake() {
	i := w.rng.IntN(len(w.partitions))
	from := 1 + w.rng.Int64N(10)
	if i < len(w.expect) {
		from += w.expect[i]
	}
	if from < w.partitions[i].end {
		w.send(order.Record{Kind: order.Gap, Writer: "operator", Partition: i, From: from, To: from + 1})
	}
}

// heal lets everything arrive and has one learner go on alone, as a careful one does: it
// proposes what is missing, and waits for it.
func (w *world) heal() {
	for _, l := range w.learners {
		w.restart(l)
		l.active = false
	}
	one := w.learners[0]
	for round := 0; w.failed == nil; round++ {
		if round > 400 {
			w.fail("no progress: %d of %d records of the order log read, positions %v", one.state.Log.Next, len(w.log), one.state.Places)
			return
		}
		for i := range w.partitions {
			w.operate(i)
		}
		for range 3 * len(w.flight) {
			w.land()
		}
		for _, l := range w.learners {
			for l.state != nil && l.state.Log.Next < int64(len(w.log)) && w.failed == nil {
				w.read(l)
			}
			w.restart(l)
		}
		if w.complete() {
			return
		}
		one.active = true
		for range 2 * len(w.partitions) {
			one.ahead = map[int]*sequencer.Proposal{}
			w.propose(one)
		}
	}
}

// complete reports whether all learners have all records.
func (w *world) complete() bool {
	for _, l := range w.learners {
		if l.state.Log.Next < int64(len(w.log)) || len(l.state.Places) != len(w.partitions) {
			return false
		}
		for i, p := range l.state.Places {
			if p.Next != w.partitions[i].end {
				return false
			}
		}
	}
	return len(w.flight) == 0
}

// compare compares the learners at the end.
func (w *world) compare() {
	var log state.Position
	for i, b := range w.log {
		log = log.Advance(int64(i), nil, b)
	}
	var want []byte
	for i, l := range w.learners {
		if w.failed != nil {
			return
		}
		if l.state.Log != log {
			w.fail("learner %d is at %s of the order log, want %s", i, l.state.Log, log)
		}
		got, err := l.state.AppendBinary(nil)
		if err != nil {
			w.fail("%v", err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) || !slices.Equal(l.took, w.took) {
			w.fail("learner %d differs from the first one: it took %d records, all together %d", i, len(l.took), len(w.took))
		}
	}
}
