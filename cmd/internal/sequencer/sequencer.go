// Package sequencer decides which records of several partitions a model takes, and in
// which order. It is a state machine over the order log of package order: no I/O, no clock.
// Everybody who applies the same order log takes the same records, each once.
//
//	Kafka ─ order record ─> State.Apply ─> Take: offsets to read, with their hash
//	Kafka ─ events ───────> Take.Add ... ─> State.Finish ─> the model learns them
//
// The order log is written at least once, by several learners. An append may come late,
// twice, or after that of a successor. A learner that lost its place may append as well.
// So a record holds or not by these rules, which look at nothing but the log before it:
//
//	record     holds if                                        else
//	──────────┼───────────────────────────────────────────────┼─────────────────────────
//	beginning  it is the first one                             Stale
//	range      its writer knew all gaps of the partition, it   Stale, or Beyond if it
//	           begins at the position or below and ends above  begins above
//	join       it names the next number of a partition         Stale, or Beyond
//	gap        it begins at the position                       Stale, or Beyond
//
// A record before the beginning is Beyond. A range that begins below the position is cut:
// its rest is taken. What is Stale is never needed. What is Beyond came too early: the
// active learner appends what is missing again.
//
// A range carries the chain of the partition's records up to its end, from the partition's
// beginning on. So the rest of a cut range is enough to check it. Another chain than the
// one of the records that were read is [ErrForeign]: the partition was created again, or
// somebody else wrote the range. The model stops there, because no later record can help.
//
// # What the order cannot see
//
// A partition that was deleted, created again and filled beyond the position has new
// records from the position on, and whoever proposes them hashes the new ones. So before
// a learner reads on in a partition, it compares the record before the position, by
// state.Position.Follows, as with a model of one partition.
package sequencer

import (
	"errors"
	"fmt"
	"slices"

	"hamlet/state"
	"hamlet/stream/order"
)

// ErrForeign: the records of a range are not those that its writer read. Name the right
// cluster, or begin a new model: one of the two logs was created again.
var ErrForeign = errors.New("the partition holds other records than the order log says")

// ErrLong: a range holds more than order.MaxRange records. No learner writes one.
var ErrLong = fmt.Errorf("the order log has a range of more than %d records", order.MaxRange)

// A Place is where a model stands in a partition.
type Place struct {
	state.Position
	Gaps uint32 // accepted in this partition
}

// A State is what an order log says up to Log.Next. The zero State is before the first
// record. States that have applied the same log are equal. It is not safe for concurrent
// use.
type State struct {
	Log state.Position // of the order log: the records applied

	// Places are the positions in the partitions 0, 1, …; empty before the beginning.
	// Only Apply and Finish write them. None moves back.
	Places []Place

	// Lineage names what was done to the model beside its logs, such as the adoption of another
	// configuration; zero: nothing. No rule reads it. Models with one lineage that stand at one
	// place are the same.
	Lineage [32]byte

	taking *Take // returned by Apply and not finished; nil: none
}

// An Outcome says what became of a record of the order log.
type Outcome uint8

const (
	Stale  Outcome = iota // it changes nothing: what it says is done, or is void
	Beyond                // it changes nothing: what comes before it is missing
	Began                 // the model stands at the record's places
	Taken                 // records are to be taken
	Joined                // a partition was added
	Jumped                // a gap was accepted
)

// String returns the outcome's name.
func (o Outcome) String() string {
	return [...]string{"stale", "beyond", "began", "taken", "joined", "jumped"}[o]
}

// A Decision is what a record of the order log means.
type Decision struct {
	Outcome Outcome
	Record  order.Record
	Take    *Take // if Taken: what to read; State.Finish ends it
}

// Apply applies the record at an offset of the order log. After Taken the caller reads the
// records, gives them to the Take and calls Finish, before the next Apply. An error of
// Apply is final: nobody can follow this record. Then the state is unchanged.
//
// An offset before Log.Next panics, and so does an unfinished Take.
func (s *State) Apply(offset int64, key, value []byte, headers ...state.Header) (Decision, error) {
	if s.taking != nil {
		panic("sequencer: a take is not finished")
	}
	after := s.Log.Advance(offset, key, value, headers...)
	r, err := order.Decode(value)
	if err != nil {
		return Decision{}, fmt.Errorf("order log, offset %d: %w", offset, err)
	}
	d := Decision{Outcome: s.decide(&r), Record: r}
	switch d.Outcome {
	case Stale, Beyond:
	case Began:
		for _, p := range r.Places {
			s.Places = append(s.Places, Place{Position: state.Position{Next: p.Next, Chain: p.Chain, Before: p.Before}})
		}
	case Joined:
		s.Places = append(s.Places, Place{})
	case Jumped:
		p := &s.Places[r.Partition]
		// Nobody has the record before the new position, so Before says that it is unknown.
		p.Position = state.Position{Next: r.To, Chain: p.Chain, Before: p.Chain}
		p.Gaps++
	case Taken:
		d.Take = &Take{span: s.from(r.Partition), To: r.To, want: r.Chain, log: after}
		s.taking = d.Take
		return d, nil // Finish moves Log
	default:
		panic("sequencer: unknown outcome")
	}
	s.Log = after
	return d, nil
}

// decide is the table of rules.
func (s *State) decide(r *order.Record) Outcome {
	n := len(s.Places)
	switch {
	case r.Kind == order.Beginning && n == 0:
		return Began
	case r.Kind == order.Beginning:
		return Stale
	case n == 0:
		return Beyond
	case r.Kind == order.Join && r.Partition == n:
		return Joined
	case r.Kind == order.Join && r.Partition < n:
		return Stale
	case r.Partition >= n:
		return Beyond
	}
	p := &s.Places[r.Partition]
	switch r.Kind {
	case order.Range:
		switch {
		case r.Gaps < p.Gaps, r.To <= p.Next:
			return Stale
		case r.Gaps > p.Gaps, r.From > p.Next:
			return Beyond
		}
		return Taken
	case order.Gap:
		switch {
		case r.From < p.Next:
			return Stale
		case r.From > p.Next:
			return Beyond
		}
		return Jumped
	}
	panic("sequencer: unknown kind of record")
}

// Finish ends a take whose records have been added, and moves the positions. After an
// error the state stays where it is, and the take is over.
func (s *State) Finish(t *Take) error {
	if t == nil || t != s.taking {
		panic("sequencer: Finish of a take that Apply did not return last")
	}
	s.taking = nil
	if t.at.Next != t.To || t.at.Chain != t.want {
		return fmt.Errorf("partition %d, offsets %d to %d: %w: the chain behind offset %d is %x, the order log's record at offset %d says %x at %d",
			t.Partition, t.From, t.To-1, ErrForeign, t.at.Next-1, t.at.Chain[:6], t.log.Next-1, t.want[:6], t.To-1)
	}
	s.Places[t.Partition].Position = t.at
	s.Log = t.log
	return nil
}

// FinishAt is Finish for a caller that has hashed the partition's records itself, without
// Add. at is the position behind the last of them that is in the range.
func (s *State) FinishAt(t *Take, at state.Position) error {
	t.at = at
	return s.Finish(t)
}

// Clone returns a copy. Nothing may be in the course of being taken.
func (s *State) Clone() *State {
	if s.taking != nil {
		panic("sequencer: a take is not finished")
	}
	return &State{Log: s.Log, Places: slices.Clone(s.Places), Lineage: s.Lineage}
}
