package faults

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A target is what a fault happens to.
type target string

const (
	ingest   target = "ingest"
	learnerA target = "learner-a"
	learnerB target = "learner-b"
	scorer   target = "scorer"
	upAll    target = "up"
	kafka    target = "kafka"
	nats     target = "nats"
	redis    target = "redis"
)

// An action is what happens.
type action string

const (
	kill     action = "kill"     // SIGKILL, and a start after the hold
	restart  action = "restart"  // SIGTERM, and a start once it has ended
	stop     action = "stop"     // SIGSTOP, and SIGCONT after the hold
	cut      action = "cut"      // connections are reset, new ones too until the hold is over
	slow     action = "slow"     // at most Rate bytes a second for the hold
	flipByte action = "flip"     // a bit of a byte that a checksum covers
	setBack  action = "set back" // Redis starts from a copy of its data
	empty    action = "empty"    // Redis loses everything
)

// A fault is one step of a plan.
type fault struct {
	Action action
	Target target
	After  time.Duration // since the fault before it was injected
	Hold   time.Duration // see the actions
	Rate   int           // slow: bytes a second
}

// kind names the fault's row in the table. The two learners share theirs.
func (f fault) kind() string {
	t := f.Target
	if t == learnerA || t == learnerB {
		t = "learner"
	}
	return fmt.Sprintf("%s %s", f.Action, t)
}

func (f fault) String() string {
	s := fmt.Sprintf("%s %s", f.Action, f.Target)
	if f.Rate > 0 {
		s += fmt.Sprintf(" to %d bytes/s", f.Rate)
	}
	if f.Hold > 0 {
		s += fmt.Sprintf(" for %v", f.Hold)
	}
	return s
}

// A choice is a fault that a plan may contain.
type choice struct {
	action  action
	target  target
	weight  int
	hold    time.Duration // the longest
	minHold time.Duration
	rates   [2]int // slow: least and most
}

// choices are all faults. A kill of Kafka takes some seconds to recover from, so it is
// rarer than that of a service. A learner's lease lapses after about a second, so that some
// stops are shorter than that and most longer.
var choices = []choice{
	{action: kill, target: ingest, weight: 6, hold: time.Second},
	{action: kill, target: learnerA, weight: 5, hold: time.Second},
	{action: kill, target: learnerB, weight: 5, hold: time.Second},
	{action: kill, target: scorer, weight: 6, hold: time.Second},
	{action: kill, target: upAll, weight: 4, hold: time.Second},
	{action: kill, target: kafka, weight: 2, hold: time.Second},
	{action: kill, target: nats, weight: 3, hold: 2 * time.Second},
	{action: kill, target: redis, weight: 4, hold: 2 * time.Second},

	{action: restart, target: ingest, weight: 2},
	{action: restart, target: learnerA, weight: 2},
	{action: restart, target: learnerB, weight: 2},
	{action: restart, target: scorer, weight: 2},
	{action: restart, target: upAll, weight: 2},
	{action: restart, target: kafka, weight: 2},
	{action: restart, target: nats, weight: 2},
	{action: restart, target: redis, weight: 2},

	{action: stop, target: ingest, weight: 2, minHold: 200 * time.Millisecond, hold: 4 * time.Second},
	{action: stop, target: learnerA, weight: 2, minHold: 200 * time.Millisecond, hold: 6 * time.Second},
	{action: stop, target: learnerB, weight: 2, minHold: 200 * time.Millisecond, hold: 6 * time.Second},
	{action: stop, target: scorer, weight: 2, minHold: 200 * time.Millisecond, hold: 4 * time.Second},
	{action: stop, target: upAll, weight: 1, minHold: 200 * time.Millisecond, hold: 4 * time.Second},
	{action: stop, target: kafka, weight: 2, minHold: 200 * time.Millisecond, hold: 4 * time.Second},
	{action: stop, target: nats, weight: 2, minHold: 200 * time.Millisecond, hold: 4 * time.Second},
	{action: stop, target: redis, weight: 2, minHold: 200 * time.Millisecond, hold: 4 * time.Second},

	{action: cut, target: kafka, weight: 3, hold: 2 * time.Second},
	{action: cut, target: nats, weight: 3, hold: 2 * time.Second},
	{action: cut, target: redis, weight: 3, hold: 2 * time.Second},
	{action: slow, target: kafka, weight: 2, minHold: time.Second, hold: 4 * time.Second,
		rates: [2]int{20_000, 500_000}},
	{action: slow, target: nats, weight: 2, minHold: time.Second, hold: 4 * time.Second, rates: [2]int{5_000, 100_000}},
	{action: slow, target: redis, weight: 2, minHold: time.Second, hold: 4 * time.Second,
		rates: [2]int{100_000, 2_000_000}},
	{action: flipByte, target: kafka, weight: 4, minHold: 2 * time.Second, hold: 2 * time.Second},
	{action: flipByte, target: redis, weight: 4, minHold: 2 * time.Second, hold: 2 * time.Second},

	{action: setBack, target: redis, weight: 2},
	{action: empty, target: redis, weight: 2},
}

// maxGap is the longest time between two faults of a round; the mean is half of it.
const maxGap = 1500 * time.Millisecond

// A plan draws faults. Equal seeds give equal plans.
type plan struct {
	random *rand.Rand
	total  int
}

func newPlan(seed uint64) *plan {
	p := &plan{random: rand.New(rand.NewPCG(seed, 0x66617531))}
	for _, c := range choices {
		p.total += c.weight
	}
	return p
}

// round returns the next n faults.
func (p *plan) round(n int) []fault {
	faults := make([]fault, n)
	for i := range faults {
		faults[i] = p.next()
	}
	return faults
}

func (p *plan) next() fault {
	at := p.random.IntN(p.total)
	for _, c := range choices {
		if at -= c.weight; at >= 0 {
			continue
		}
		f := fault{Action: c.action, Target: c.target, After: p.duration(0, maxGap),
			Hold: p.duration(c.minHold, c.hold)}
		if c.rates[1] > 0 {
			f.Rate = c.rates[0] + p.random.IntN(c.rates[1]-c.rates[0])
		}
		return f
	}
	panic("the weights of choices do not add up to their total")
}

// duration draws from least to most, in whole milliseconds.
func (p *plan) duration(least, most time.Duration) time.Duration {
	n := int64((most-least)/time.Millisecond) + 1
	return least + time.Duration(p.random.Int64N(n))*time.Millisecond
}
