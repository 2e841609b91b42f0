package learner

import (
	"strconv"
	"time"

	"hamlet/stream"
	"hamlet/stream/kafka"
)

// maxAllowance is how long the model waits for the records of a partition that is not read to
// its end, while others have been read. It is a variable for tests.
var maxAllowance = 500 * time.Millisecond

// An allowance is how long a partition may still keep the others waiting. What it spends
// comes back in ten times as long. So a slow broker costs the order of the records, and
// little time.
type allowance struct {
	left  time.Duration
	since time.Time // when the wait began; zero: nobody waits
	until time.Time // since which left counts
}

func newAllowance() allowance { return allowance{left: maxAllowance} }

// lasts reports whether the others wait at now. If nobody waited, the wait begins.
func (a *allowance) lasts(now time.Time) bool {
	if a.since.IsZero() {
		a.since = now
		if !a.until.IsZero() {
			a.left = min(maxAllowance, a.left+now.Sub(a.until)/10)
		}
	}
	return now.Sub(a.since) < a.left
}

// end ends the wait: records came.
func (a *allowance) end(now time.Time) {
	if !a.since.IsZero() {
		a.left = max(0, a.left-now.Sub(a.since))
		a.since, a.until = time.Time{}, now
	}
}

// timeOf returns a record's place in time: its milliseconds, and of those that ingest writes
// at once the ordinals in their source.
func timeOf(r *kafka.Record) int64 {
	const ordinals = 1 << 20
	text, _ := stream.FindHeader(r.Headers, stream.HeaderOrdinal)
	ordinal, _ := strconv.ParseInt(text, 10, 64)
	return min(max(r.Time.UnixMilli(), 0), 1<<42)*ordinals + ordinal&(ordinals-1)
}
