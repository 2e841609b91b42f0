package learner

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"hamlet/cmd/internal/interleave"
	"hamlet/stream"
	"hamlet/stream/kafka"
)

// A backlog in several partitions is learnt nearly in the order in which it was written,
// with few records in the order log.
func TestABacklogIsLearntInTimeOrder(t *testing.T) {
	before := maxAllowance
	maxAllowance = time.Minute // of a busy machine
	defer func() { maxAllowance = before }()
	for _, c := range []struct {
		partitions, off int
		perEvent        float64 // order records, at most
	}{{4, 32, .6}, {16, 32, .9}} { // a young model's rounds are short
		t.Run(fmt.Sprint(c.partitions), func(t *testing.T) {
			r := newOrderedRig(t, c.partitions)
			const n = 1500
			records, _ := texts(t, r.topic, n)
			for i := range records { // as ingest writes them
				records[i].Time = time.UnixMilli(1_700_000_000_000 + int64(i/500))
				records[i].Headers = append(records[i].Headers, kafka.Header{Key: stream.HeaderOrdinal, Value: strconv.AppendInt(nil, int64(i), 10)})
			}
			r.spread(slices.Clone(records))
			cfg := r.ordered("a")
			var mu sync.Mutex
			var learnt []string
			cfg.Observe = func(a Applied) {
				mu.Lock()
				defer mu.Unlock()
				learnt = append(learnt, a.Event.ID)
			}
			if err := r.runOrdered(cfg); err != nil {
				t.Fatal(err)
			}
			place := map[string]int{}
			for i := range records {
				e, err := stream.DecodeRecord(records[i].Headers, records[i].Value)
				if err != nil {
					t.Fatal(err)
				}
				place[e.ID] = i
			}
			for i, id := range learnt {
				if off := max(i-place[id], place[id]-i); off >= c.off {
					t.Fatalf("event %d of the stream is learnt as number %d", place[id], i)
				}
			}
			if got := float64(len(r.orderLog())) / n; len(learnt) != n || got > c.perEvent {
				t.Errorf("%d events learnt, %.3f order records for each, want at most %.2f", len(learnt), got, c.perEvent)
			}
		})
	}
}

// A partition that is read slowly is waited for, ever less; one that was read to its end
// never is.
func TestOthersWaitForASlowPartition(t *testing.T) {
	slow := fedWith(t)
	slow.want = 0
	now := time.Now()
	var q interleave.Queue
	if slow.queue(&q, now); q.Short() {
		t.Error("a partition that ends where it was read is waited for")
	}
	slow.noteEnd(1000)
	for offset, c := range []struct {
		wait  time.Duration
		waits bool
	}{{0, true}, {maxAllowance / 2, true}, {0, true}, {maxAllowance / 2, false}, {time.Hour, false}} {
		if slow.queue(&q, now.Add(c.wait)); q.Short() != c.waits {
			t.Errorf("step %d: waited for: %v, want %v", offset, q.Short(), c.waits)
		}
		now = now.Add(c.wait)
		if offset == 1 || offset == 4 {
			slow.allowance.end(now)
		}
	}
	now = now.Add(maxAllowance)
	if slow.queue(&q, now); !q.Short() {
		t.Error("not waited for any more, although its allowance comes back")
	}
	if slow.queue(&q, now.Add(maxAllowance/10)); q.Short() {
		t.Error("waited for longer than a tenth of the time")
	}
}

// A feeder that few large records fill is not waited for.
func TestFewLargeRecordsFillAFeeder(t *testing.T) {
	f := fedWith(t, 0, 1, 2)
	f.want, f.bytes = 0, maxFedBytes
	f.noteEnd(10)
	var q interleave.Queue
	if f.queue(&q, time.Now()); q.Short() || len(q.Times) != 3 {
		t.Errorf("%d records, waited for: %v", len(q.Times), q.Short())
	}
	f.propose(1)
	if f.queue(&q, time.Now()); !q.Short() {
		t.Error("not waited for, although the model takes a record")
	}
}

// A record's time is that of its partition's log, and of equal ones the ordinal decides.
// Those of absurd clocks are numbers as well.
func TestTimeOfRecords(t *testing.T) {
	at := func(ms, ordinal int64) int64 {
		return timeOf(&kafka.Record{Time: time.UnixMilli(ms), Headers: []kafka.Header{{Key: stream.HeaderOrdinal, Value: strconv.AppendInt(nil, ordinal, 10)}}})
	}
	ordered := []int64{at(-1<<60, 0), at(5, 3), at(5, 4), at(6, 1), at(1_800_000_000_000, 1<<20-1), at(1<<62, 1)}
	if !slices.IsSorted(ordered) || ordered[0] != 0 || ordered[5] < 0 {
		t.Errorf("times %v", ordered)
	}
	if got := timeOf(&kafka.Record{Time: time.UnixMilli(5)}); got <= at(4, 9) || got >= at(6, 0) {
		t.Errorf("without an ordinal: %d", got)
	}
}
