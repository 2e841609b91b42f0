// Package order is the wire form of a model's order log. A model that learns from several
// partitions takes their records in one order. That order is a log too: the topic
// [Topic], with one partition. Its records name offsets of the events topic.
//
//	events 0   a b c d e f         order log
//	events 1   p q r s             beginning (0,0) · 0: a–c · 1: p–q · 0: d–f · 1: r–s
//
// The active learner appends a record for what it has read next. Every learner of the
// model, the active one too, learns records only as the order log names them. So all
// learners hold the same model, and any of them may append: the order in the log counts.
//
//	r := order.Record{Kind: order.Range, Writer: "learner-1", Epoch: 7,
//		Partition: 1, From: 0, To: 2, Chain: chain}
//	value, err := r.AppendProto(nil)
//	…
//	r, err = order.Decode(value)
//
// Which records hold is decided in one place, cmd/internal/sequencer.
package order

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// Topic is the topic of a model's order log.
func Topic(model string) string { return "hamlet.order." + model }

// A Kind says what a record of the order log says.
type Kind uint8

const (
	Beginning Kind = iota + 1 // where the model stands in each partition: the first record
	Range                     // which records the model takes next
	Join                      // a partition was added to the topic
	Gap                       // an operator goes on without records that retention deleted
)

var kindNames = [...]string{Beginning: "beginning", Range: "range", Join: "join", Gap: "gap"}

// String returns the kind's name.
func (k Kind) String() string {
	if k < Beginning || k > Gap {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

const (
	// MaxPartitions bounds the partitions of a model: a Beginning must fit into a record.
	MaxPartitions = 1024

	// MaxRange bounds the records of a Range. A learner holds a range in memory. A Range may
	// cover more offsets, because transactions leave offsets without a record.
	MaxRange = 4096

	// maxWriter bounds a writer's name, in bytes.
	maxWriter = 256
)

// A Chain is the hash chain of a partition's records up to an offset. It is that of
// state.Position, and covers offsets, keys, values and headers.
type Chain = [sha256.Size]byte

// A Place is a position in a partition: Next is the offset to read next, Chain the chain of
// the records before it, and Before the chain without the last of them.
type Place struct {
	Next          int64
	Chain, Before Chain
}

// A Record is a record of the order log. The comments name the kinds that use a field; for
// the others it is zero.
type Record struct {
	Kind Kind

	// Writer and Epoch say who wrote it. No rule reads them. Epoch is the one under which
	// the writer may save checkpoints; 0: an operator's command.
	Writer string
	Epoch  int64

	Places []Place           // Beginning: by partition
	Model  [sha256.Size]byte // Beginning: names the model that has absorbed Places; zero: a new model

	Partition int   // Range, Join, Gap
	From, To  int64 // Range, Gap: the offsets From to To−1

	// Range: how many gaps of the partition its writer had seen accepted. A range that was
	// written before a gap has another chain than what is read after it.
	Gaps uint32

	// Range: the partition's chain behind offset To−1. The chain goes on from the record
	// before From, so a range of which a learner has taken a part is checked by the rest.
	Chain Chain
}

// Validate returns all reasons why no learner can follow r, joined.
func (r *Record) Validate() error {
	var errs []error
	if n := len(r.Writer); n == 0 || n > maxWriter {
		errs = append(errs, fmt.Errorf("writer: a name has 1 to %d bytes, this one %d", maxWriter, n))
	}
	if r.Epoch < 0 {
		errs = append(errs, fmt.Errorf("epoch: %d is negative", r.Epoch))
	}
	if r.Partition < 0 || r.Partition >= MaxPartitions {
		errs = append(errs, fmt.Errorf("partition: %d is not within 0 and %d", r.Partition, MaxPartitions-1))
	}
	switch r.Kind {
	case Beginning:
		if n := len(r.Places); n == 0 || n > MaxPartitions {
			errs = append(errs, fmt.Errorf("beginning: it has 1 to %d places, this one %d", MaxPartitions, n))
		}
		if slices.ContainsFunc(r.Places, func(p Place) bool { return p.Next < 0 }) {
			errs = append(errs, errors.New("beginning: a next offset is negative"))
		}
	case Range, Gap:
		if r.From < 0 || r.To <= r.From {
			errs = append(errs, fmt.Errorf("%s: offsets %d to %d are none", r.Kind, r.From, r.To))
		}
	case Join:
	default:
		errs = append(errs, fmt.Errorf("kind: unknown value %d", r.Kind))
	}
	return errors.Join(errs...)
}
