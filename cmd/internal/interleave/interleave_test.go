package interleave

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A topic is the partitions of a stream, which are read ahead by and by.
type topic struct {
	rng    *rand.Rand
	queues []Queue
	unread [][]int64 // times, by partition
	places [][]int   // of all records that are in no round, by partition: their places in the stream
	order  []int     // the places, as the rounds take them
	stops  int       // rounds that were empty because something had to be read first
}

// newTopic spreads a stream over partitions. Some get more than others. at is the time of
// the record at a place, in a partition.
func newTopic(seed uint64, partitions, n int, at func(rng *rand.Rand, partition, place int) int64) *topic {
	tp := &topic{rng: rand.New(rand.NewPCG(seed, 1)), queues: make([]Queue, partitions), unread: make([][]int64, partitions), places: make([][]int, partitions)}
	for place := range n {
		p := min(tp.rng.IntN(partitions), tp.rng.IntN(2*partitions))
		tp.unread[p] = append(tp.unread[p], at(tp.rng, p, place))
		tp.places[p] = append(tp.places[p], place)
	}
	return tp
}

// read reads some records of a partition.
func (tp *topic) read(p int) {
	n := min(tp.rng.IntN(100), len(tp.unread[p]))
	q := &tp.queues[p]
	q.Times, tp.unread[p] = append(q.Times, tp.unread[p][:n]...), tp.unread[p][n:]
	q.More = len(tp.unread[p]) > 0
}

// run takes all records, and calls each with every round.
func (tp *topic) run(t *testing.T, each func(runs []Run)) {
	t.Helper()
	for p := range tp.queues {
		tp.read(p)
	}
	for {
		runs := Round(tp.queues, old)
		each(runs)
		if len(runs) == 0 {
			empty := slices.IndexFunc(tp.queues, func(q Queue) bool { return q.Short() })
			if empty < 0 {
				break
			}
			tp.stops++
			tp.read(empty)
		}
		for _, run := range runs {
			q := &tp.queues[run.Partition]
			if run.Records < 1 || run.Records > len(q.Times) {
				t.Fatalf("a run of %d records, %d were read", run.Records, len(q.Times))
			}
			q.Times = q.Times[run.Records:]
			tp.order = append(tp.order, tp.places[run.Partition][:run.Records]...)
			tp.places[run.Partition] = tp.places[run.Partition][run.Records:]
		}
		tp.read(tp.rng.IntN(len(tp.queues)))
	}
	left := slices.IndexFunc(tp.places, func(places []int) bool { return len(places) > 0 })
	if left >= 0 {
		t.Fatalf("partition %d: %d records are never taken", left, len(tp.places[left]))
	}
}

// displacement returns how far records are from their places in the stream: the largest
// distance, and that of 99 in a hundred.
func (tp *topic) displacement() (most, usual int) {
	var all []int
	for i, place := range tp.order {
		all = append(all, max(i-place, place-i))
	}
	slices.Sort(all)
	return all[len(all)-1], all[len(all)*99/100]
}

// old is how many events a model has learnt whose rounds are not short.
const old = 1 << 20

func size(partitions int) int { return max(minRound, perPartition*partitions) }

// With right clocks the rounds follow the stream: no record is a round away from its place.
func TestRoundsFollowTheTimes(t *testing.T) {
	stops := 0
	for seed := range uint64(50) {
		partitions := 1 << (seed % 7)
		tp := newTopic(seed, partitions, 5000, func(_ *rand.Rand, _, place int) int64 { return int64(place) })
		rounds := 0
		tp.run(t, func(runs []Run) { rounds += len(runs) })
		if most, _ := tp.displacement(); most >= size(partitions) {
			t.Errorf("seed %d, %d partitions: a record is %d from its place", seed, partitions, most)
		}
		stops += tp.stops
		if rounds > 5000*3/4 {
			t.Errorf("seed %d, %d partitions: %d runs of 5000 records", seed, partitions, rounds)
		}
	}
	if stops == 0 {
		t.Error("nothing was waited for")
	}
}

// A producer with a wrong clock, whose records are among the others' in all partitions, moves
// few of them.
func TestOneWrongClockAmongMany(t *testing.T) {
	for seed := range uint64(30) {
		partitions := 4 << (seed % 3)
		wrong := []int64{-1 << 40, -3000, 3000, 1 << 40}[seed%4]
		tp := newTopic(seed, partitions, 20_000, func(rng *rand.Rand, _, place int) int64 {
			if rng.IntN(10) == 0 {
				return int64(place) + wrong
			}
			return int64(place)
		})
		tp.run(t, func([]Run) {})
		if most, usual := tp.displacement(); usual > 64*partitions || most > 200*partitions {
			t.Errorf("seed %d, %d partitions, clock %d off: 99 %% of the records are at most %d from their places, all %d", seed, partitions, wrong, usual, most)
		}
	}
}

// Whatever the times are, everything is taken, and a partition that was read waits for a
// bounded number of others' records.
func TestNoTimesStallAPartition(t *testing.T) {
	times := []func(rng *rand.Rand, partition, place int) int64{
		func(_ *rand.Rand, p, place int) int64 { return int64(place) + int64(p)<<40 },       // one behind the other
		func(_ *rand.Rand, p, place int) int64 { return int64(place) - int64(p%2)*1e15 },    // half of them late
		func(_ *rand.Rand, p, place int) int64 { return int64(place) + int64(p/7)*1<<62 },   // far ahead
		func(rng *rand.Rand, _, _ int) int64 { return int64(rng.Uint64()) },                 // none at all
		func(_ *rand.Rand, p, place int) int64 { return int64(place) * (1 - 2*int64(p%2)) }, // backwards
		func(*rand.Rand, int, int) int64 { return 0 },
	}
	for i, at := range times {
		const partitions = 8
		tp := newTopic(uint64(i), partitions, 100_000, at)
		waits := make([]int, partitions)
		tp.run(t, func(runs []Run) {
			given := 0
			for _, run := range runs {
				given += run.Records
			}
			for p := range waits {
				if waits[p] += given; len(tp.queues[p].Times) == 0 {
					waits[p] = 0
				}
			}
			for _, run := range runs {
				waits[run.Partition] = 0
			}
			for p, wait := range waits {
				if most := maxWait + partitions*size(partitions); wait > most {
					t.Fatalf("times %d: partition %d waits for %d records, want at most %d", i, p, wait, most)
				}
			}
		})
	}
}

// What a young model learns is in the order of time to the record, and then nearly.
func TestYoungModelsGetShortRounds(t *testing.T) {
	for _, c := range []struct{ learnt, want int }{{0, 1}, {growth - 1, 1}, {growth, 2}, {10 * growth, 11}, {31 * growth, minRound}, {old, minRound}} {
		got := 0
		for _, run := range Round([]Queue{{Times: make([]int64, 100)}, {Times: make([]int64, 100)}}, c.learnt) {
			got += run.Records
		}
		if got != c.want {
			t.Errorf("a model of %d events: a round of %d records, want %d", c.learnt, got, c.want)
		}
	}
}

// Times of one instant are taken in turn.
func TestEqualTimesTakeTurns(t *testing.T) {
	queues := []Queue{{Times: make([]int64, 100)}, {Times: make([]int64, 100)}, {Times: make([]int64, 3)}, {}}
	for _, run := range Round(queues, old) {
		if want := []int{15, 14, 3}[run.Partition]; run.Records != want {
			t.Errorf("%d records of partition %d, want %d", run.Records, run.Partition, want)
		}
	}
}

// What was not read yet is waited for; a partition that was read to its end is not.
func TestOnlyTheUnreadIsWaitedFor(t *testing.T) {
	if runs := Round([]Queue{{Times: []int64{1, 2}}, {More: true}}, old); len(runs) != 0 {
		t.Errorf("without the second partition: %v", runs)
	}
	if runs := Round([]Queue{{Times: []int64{1, 2}}, {}}, old); !slices.Equal(runs, []Run{{0, 2}}) {
		t.Errorf("beside an idle one: %v", runs)
	}
	if runs := Round([]Queue{{Times: []int64{1, 2, 20, 21}}, {Times: []int64{3, 4, 5, 6, 7, 8, 9, 10, 11}, More: true}}, old); !slices.Equal(runs, []Run{{0, 2}, {1, 1}}) {
		t.Errorf("behind the third time something may come: %v", runs)
	}
}

func BenchmarkRound(b *testing.B) {
	times := make([]int64, 1024)
	for i := range times {
		times[i] = int64(i)
	}
	queues := make([]Queue, 16)
	records := 0
	for b.Loop() {
		for i := range queues {
			queues[i].Times = times
		}
		for _, run := range Round(queues, old) {
			records += run.Records
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
}
