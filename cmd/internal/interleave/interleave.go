// Package interleave decides in which order a model is to take the records of several
// partitions. It is pure: the learner that proposes the order and the laboratory that
// measures it call the same function.
//
// The order is nearly that of the records' times. It comes in rounds. A [Round] takes the
// oldest records of all partitions together, and gives those of a partition as one [Run]. So
// the order log has at most one record for each partition and round:
//
//	partition 0   1 2 3 7 8 …           round      run          run
//	partition 1   4 5 6 9 …       ─>    1 to 6:    0: 1 2 3     1: 4 5 6
//
// A partition that holds records nobody has read yet ends the round when few of its records
// are left: its next ones may be older than the others'. Then the caller reads, or stops to
// expect some.
//
// # Clocks that are wrong
//
// Producers make the times, and some have a wrong clock. The times decide nothing but this
// order, and they cannot stop it:
//
//   - A record's time counts as the earliest of its own and of the next ones' in the
//     partition. So one producer among others, whose clock is ahead, holds nobody up.
//   - A partition whose times are all ahead waits until the others have given maxWait records.
//     Then it has its equal share, whatever its times are. So do those that wait for a
//     partition whose times are all behind.
package interleave

import (
	"cmp"
	"slices"
)

const (
	// minRound and perPartition bound a round: its records are perPartition for each
	// partition that has some, and not fewer than minRound. Shorter rounds are nearer to the
	// order of time, and cost more records of the order log: cmd/internal/lab/bench/MEASURED.md.
	minRound     = 32
	perPartition = 2
	maxRound     = 4096 // order.MaxRange, as one partition may have all of them

	// A round has at most 1 + n/growth records while the model has learnt n events: to a young
	// model the order matters most.
	growth = 100

	// maxWait is how many records of others a partition waits for at most: about two seconds
	// of learning.
	maxWait = 16_384

	// behind is how many records behind a record have a say in its time.
	behind = 8
)

// A Queue is what was read of a partition and is in no round yet.
type Queue struct {
	Times []int64 // of its records, in the partition's order; any unit
	More  bool    // the partition holds records behind these
	Past
}

// Short reports whether more must be read of the partition before the next round.
func (q *Queue) Short() bool { return q.short(0) }

// short is Short when so many records are given.
func (q *Queue) short(given int) bool { return q.More && len(q.Times)-given <= behind }

// A Past is what a queue remembers of the rounds before. The zero Past is that of no round.
// Round changes it.
type Past struct {
	waited int // records that others gave since this one gave its last
}

// A Run is so many records of a partition, which come next.
type Run struct {
	Partition int
	Records   int
}

// Round returns the next runs, at most one of each queue, for a model that has learnt so many
// events before them. The caller removes their records from the queues. No run means that
// nothing was read, or that a queue is short.
func Round(queues []Queue, learnt int) []Run {
	heads := make([]head, 0, len(queues))
	for i := range queues {
		q := &queues[i]
		switch {
		case q.Short():
			return nil
		case len(q.Times) > 0:
			h := head{Queue: q, partition: i}
			h.at = h.time()
			heads = append(heads, h)
		}
	}
	sharing := len(heads)
	size := min(max(minRound, perPartition*sharing), maxRound, 1+learnt/growth)
	given, left := 0, sharing
	for given < size && left > 0 {
		h := next(heads, given)
		if h.wait(given) >= maxWait {
			h.since += sharing // its share, and no more
		} else {
			h.waited, h.since = 0, given+1
		}
		h.ranks += given
		h.given++
		given++
		switch {
		case h.short(h.given):
			return runs(heads, given)
		case h.given == len(h.Times):
			h.done = true
			left--
		default:
			h.at = h.time()
		}
	}
	return runs(heads, given)
}

// A head is a queue whose first records are in the round.
type head struct {
	*Queue
	partition int
	given     int   // of its records
	at        int64 // the time of the next one
	since     int   // records of the round that waited does not count
	ranks     int   // the sum of its records' places in the round
	done      bool  // nothing is left
}

// wait returns how many records of others it has waited for when the round has so many.
func (h *head) wait(given int) int { return h.waited + given - h.since }

// next returns the head whose record comes next: one that has waited too long, else the
// oldest, and of several the one that has waited longest.
func next(heads []head, given int) (best *head) {
	for i := range heads {
		h := &heads[i]
		if h.done {
			continue
		}
		if best == nil {
			best = h
			continue
		}
		wait, least := h.wait(given), best.wait(given)
		switch {
		case wait >= maxWait || least >= maxWait:
			if wait > least {
				best = h
			}
		case h.at < best.at, h.at == best.at && wait > least:
			best = h
		}
	}
	return best
}

// time returns the earliest of the next times.
func (h *head) time() int64 {
	return slices.Min(h.Times[h.given:min(h.given+1+behind, len(h.Times))])
}

// runs ends a round: it returns what the heads gave, by the mean place in it.
func runs(heads []head, given int) []Run {
	heads = slices.DeleteFunc(heads, func(h head) bool {
		h.waited = max(h.wait(given), 0)
		return h.given == 0
	})
	slices.SortStableFunc(heads, func(a, b head) int { return cmp.Compare(a.ranks*b.given, b.ranks*a.given) })
	out := make([]Run, len(heads))
	for i := range heads {
		out[i] = Run{Partition: heads[i].partition, Records: heads[i].given}
	}
	return out
}
