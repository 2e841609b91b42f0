package sequencer

import (
	"crypto/sha256"
	"fmt"

	"hamlet/state"
	"hamlet/stream/order"
)

// A span is a part of a partition that begins at a position. It hashes records as they are
// read.
type span struct {
	Partition int
	From      int64          // the position's offset
	at        state.Position // behind the records added
}

func (s *State) from(partition int) span {
	at := s.Places[partition].Position
	return span{Partition: partition, From: at.Next, at: at}
}

// Add adds the next record of the partition. Offsets ascend. Those that hold no record, as
// transactions leave them, are passed over.
func (s *span) Add(offset int64, key, value []byte, headers ...state.Header) {
	s.at = s.at.Advance(offset, key, value, headers...)
}

// A Take is what a range of the order log still has to give: the offsets From to To−1 of
// a partition. Its records are added and then learnt, in their order.
type Take struct {
	span
	To   int64
	want order.Chain    // of the range's writer
	log  state.Position // of the order log, behind the range
}

// Add adds a record of the range. An offset outside From to To−1 panics.
func (t *Take) Add(offset int64, key, value []byte, headers ...state.Header) {
	if offset >= t.To {
		panic(fmt.Sprintf("sequencer: offset %d is not of the range %d to %d", offset, t.From, t.To-1))
	}
	t.span.Add(offset, key, value, headers...)
}

// A Proposal is what a learner has read behind the model's position in a partition. It
// becomes a record of the order log.
type Proposal struct {
	span
	gaps uint32
}

// Propose begins a proposal at the position in a partition. It holds if nobody's range of
// that partition comes before it in the log; else it is cut, or stale.
func (s *State) Propose(partition int) *Proposal {
	return &Proposal{span: s.from(partition), gaps: s.Places[partition].Gaps}
}

// Len returns how many offsets the proposal covers. At most order.MaxRange of them may hold a
// record.
func (p *Proposal) Len() int64 { return p.at.Next - p.From }

// Record returns the record to append. Without a record added it panics.
func (p *Proposal) Record(writer string, epoch int64) order.Record {
	if p.Len() == 0 {
		panic("sequencer: a proposal of no records")
	}
	return order.Record{
		Kind: order.Range, Writer: writer, Epoch: epoch, Partition: p.Partition,
		From: p.From, To: p.at.Next, Gaps: p.gaps, Chain: p.at.Chain,
	}
}

// Next returns a proposal that begins where this one ends.
func (p *Proposal) Next() *Proposal {
	return &Proposal{span: span{Partition: p.Partition, From: p.at.Next, at: p.at}, gaps: p.gaps}
}

// Beginning returns the record that begins an order log. The model with this SHA-256 stands
// at these positions, one a partition. A zero SHA-256 means a new model.
func Beginning(writer string, epoch int64, at []state.Position, model [sha256.Size]byte) order.Record {
	r := order.Record{Kind: order.Beginning, Writer: writer, Epoch: epoch, Model: model}
	for _, p := range at {
		r.Places = append(r.Places, order.Place{Next: p.Next, Chain: p.Chain, Before: p.Before})
	}
	return r
}
