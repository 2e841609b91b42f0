package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	lone     target = "machine" // a hamlet up with a disk of its own
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
	power    action = "power"    // the power fails: memory is lost, and what was not written to the disk
	full     action = "full"     // the disk is full for the hold
	setClock action = "clock"    // the wall clock is set
)

// A fault is one step of a plan.
type fault struct {
	Action action
	Target target
	After  time.Duration // since the fault before it was injected
	Hold   time.Duration // see the actions
	Rate   int           // slow: bytes a second

	Skew    time.Duration // clock: by how much it is wrong then
	File    string        // flip machine: the kind of file, of rots
	Running bool          // flip machine, full, clock: while it runs, and not between two starts
	Draw    uint64        // flip machine: which file and bit
}

// kind names the fault's row in the table. The two learners share theirs.
func (f fault) kind() string {
	t := f.Target
	if t == learnerA || t == learnerB {
		t = "learner"
	}
	if f.File != "" {
		return fmt.Sprintf("%s %s: %s", f.Action, t, f.File)
	}
	return fmt.Sprintf("%s %s", f.Action, t)
}

func (f fault) String() string {
	s := fmt.Sprintf("%s %s", f.Action, f.Target)
	if f.File != "" {
		s += ": " + f.File
	}
	if f.Action == setClock {
		s += fmt.Sprintf(" by %v", f.Skew)
	}
	if f.Running {
		s += " while it runs"
	}
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

	{action: setClock, target: ingest, weight: 1, minHold: time.Second, hold: 4 * time.Second},
	{action: setClock, target: learnerA, weight: 1, minHold: time.Second, hold: 4 * time.Second},
	{action: setClock, target: learnerB, weight: 1, minHold: time.Second, hold: 4 * time.Second},
	{action: setClock, target: scorer, weight: 1, minHold: time.Second, hold: 4 * time.Second},
	{action: setClock, target: upAll, weight: 1, minHold: time.Second, hold: 4 * time.Second},
}

// machineChoices are the faults of the one machine.
var machineChoices = []choice{
	{action: kill, target: lone, weight: 1, hold: time.Second},
	{action: power, target: lone, weight: 4, hold: time.Second},
	{action: flipByte, target: lone, weight: 8, minHold: time.Second, hold: 3 * time.Second},
	{action: full, target: lone, weight: 2, minHold: time.Second, hold: 4 * time.Second},
	{action: setClock, target: lone, weight: 4, minHold: time.Second, hold: 3 * time.Second},
}

// words are what --only may name, but for pairs: actions and targets.
func words() (words []string) {
	for _, c := range slices.Concat(choices, machineChoices) {
		words = append(words, c.words()[:2]...)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// words are what --only may call the fault: what is done, to what, and both.
func (c choice) words() []string {
	action, target := strings.ReplaceAll(string(c.action), " ", "-"), string(c.target)
	return []string{action, target, action + ":" + target}
}

// chosen returns those of choices that only has a word of; all if that is empty.
func chosen(choices []choice, only []string) []choice {
	if len(only) == 0 {
		return choices
	}
	return slices.DeleteFunc(slices.Clone(choices), func(c choice) bool {
		return !slices.ContainsFunc(c.words(), func(word string) bool { return slices.Contains(only, word) })
	})
}

// maxGap is the longest time between two faults of a round; the mean is half of it.
const maxGap = 1500 * time.Millisecond

// A plan draws faults. Equal seeds and choices give equal plans.
type plan struct {
	random  *rand.Rand
	choices []choice
	total   int
}

func newPlan(seed uint64, choices []choice) *plan {
	p := &plan{random: rand.New(rand.NewPCG(seed, 0x66617531)), choices: choices}
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
	for _, c := range p.choices {
		if at -= c.weight; at >= 0 {
			continue
		}
		f := fault{Action: c.action, Target: c.target, After: p.duration(0, maxGap),
			Hold: p.duration(c.minHold, c.hold)}
		if c.rates[1] > 0 {
			f.Rate = c.rates[0] + p.random.IntN(c.rates[1]-c.rates[0])
		}
		switch {
		case c.action == full:
			f.Running = p.random.IntN(2) == 0
		case c.action == setClock:
			f.Skew, f.Running = drawSkew(p.random), p.random.IntN(2) == 0
		case c.action == flipByte && c.target == lone:
			f.File = rots[p.random.IntN(len(rots))].name
			f.Running, f.Draw = p.random.IntN(2) == 0, p.random.Uint64()
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
