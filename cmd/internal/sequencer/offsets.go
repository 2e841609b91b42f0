package sequencer

import (
	"fmt"
	"strconv"
	"strings"
)

// Offsets are those that a model of several partitions reads next, by partition. A model
// of one partition has none: its position says all.
type Offsets []int64

// OffsetsIn returns the offsets in a checkpoint's Order.
func OffsetsIn(checkpoint []byte) (Offsets, error) {
	if len(checkpoint) == 0 {
		return nil, nil
	}
	var s State
	if err := s.UnmarshalBinary(checkpoint); err != nil {
		return nil, fmt.Errorf("the place in the order log: %w", err)
	}
	return s.Offsets(), nil
}

// Offsets returns those that s reads next; never nil.
func (s *State) Offsets() Offsets {
	all := make(Offsets, len(s.Places))
	for i := range s.Places {
		all[i] = s.Places[i].Next
	}
	return all
}

// Partitions names the partitions of a model for people, such as "0–3". own is the number
// under which the model is stored: a model without offsets is that partition's.
func (o Offsets) Partitions(own int) string {
	if len(o) < 2 {
		return strconv.Itoa(own)
	}
	return fmt.Sprintf("0–%d", len(o)-1)
}

// Position says where a model stands: next is the next offset of its log. Of a model with
// offsets that log is the order log.
func (o Offsets) Position(next int64) string {
	if o == nil {
		return strconv.FormatInt(next, 10)
	}
	const most = 16
	var b strings.Builder
	fmt.Fprintf(&b, "%d of the order log; of the partitions", next)
	for i, offset := range o {
		if i == most {
			b.WriteString(" …")
			break
		}
		fmt.Fprintf(&b, " %d", offset)
	}
	return b.String()
}
