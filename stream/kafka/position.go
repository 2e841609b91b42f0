package kafka

import (
	"context"
	"errors"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
)

// A placement says where a handler's position lies in a log with the offsets
// first to end−1.
type placement uint8

const (
	unplaced    placement = iota // there is no position
	beforeFirst                  // at first or below: the record before it is not in the log
	within                       // the record before it is in the log
	beyondEnd                    // above end
)

func place(next int64, ok bool, first, end int64) placement {
	switch {
	case !ok:
		return unplaced
	case next <= first:
		return beforeFirst
	case next <= end:
		return within
	}
	return beyondEnd
}

// locate sets r.next to the offset at which to begin:
//
//	unplaced    -> 0, or first if a lost beginning is accepted, else ErrNoBeginning
//	beforeFirst -> the position, or first after an accepted gap, else ErrGap
//	within      -> the position if the handler Follows, else ErrReplaced
//	beyondEnd   -> asked again during the grace period, then ErrBehind
//
// locate also asks again if the record of within is out of range. A broker that
// recovers its log shows an early end for a moment, and retention may delete the
// record.
func (r *partitionReader) locate(ctx context.Context) error {
	next, ok := r.handler.Position(r.confirm)
	r.next = next
	var doubt grace
	for pause := newPause(); ; wait(ctx, pause) {
		first, end, err := offsetsOf(ctx, &r.cfg.Config, r.client, r.cfg.Topic, r.partition)
		if err != nil {
			return err
		}
		r.first, r.end = first, end
		log := r.cfg.Log.With("topic", r.cfg.Topic, "partition", r.partition, "first", first, "end", end)
		at := place(next, ok, first, end)
		switch at {
		case unplaced:
			r.next = first
			switch {
			case first > 0 && r.cfg.Whole:
				return fmt.Errorf("%w: the log begins at offset %d; restore the model's Redis from a backup; to learn what the events topics hold anew, name another model",
					ErrNoBeginning, first)
			case first > 0 && !r.cfg.AcceptLostBeginning:
				return fmt.Errorf("%w: the log begins at offset %d; if there was a model, restore its Redis from a backup; to begin a new model with what is left, start once with --accept-lost-beginning",
					ErrNoBeginning, first)
			case first > 0:
				log.Warn("kafka: reading from what is left of the log: retention has taken its beginning")
			default:
				log.Info("kafka: reading from the beginning")
			}
			return nil
		case beforeFirst:
			r.next, err = r.acceptGap(next, first)
			return err
		case within:
			if err := r.compareLast(ctx); !errors.Is(err, kafkago.OffsetOutOfRange) {
				return err
			}
		}
		switch {
		case !doubt.over():
		case at == beyondEnd:
			return r.behind(end)
		default:
			log.Warn("kafka: the record before the position should be in the log and is not: going on", "next", next)
			return nil
		}
	}
}

// compareLast asks the handler whether the record before its position is the one that
// it absorbed last. If compaction has removed the record, there is nothing to compare.
func (r *partitionReader) compareLast(ctx context.Context) error {
	last, ok, err := recordAt(ctx, &r.cfg.Config, r.client, r.cfg.Topic, r.partition, r.next-1)
	if err != nil || !ok {
		return err
	}
	if !r.handler.Follows(last) {
		return r.replaced("the log has another record at offset %d", last.Offset)
	}
	r.known, r.confirmed, r.last = true, last, last
	return nil
}

// acceptGap returns the offset at which to go on if the log begins at first: next,
// or first if records between them are lost and AcceptGap is set.
func (r *partitionReader) acceptGap(next, first int64) (int64, error) {
	if first <= next {
		return next, nil
	}
	if r.cfg.Whole {
		return next, fmt.Errorf("%w: the state has absorbed offsets below %d, the log begins at %d, so %d offsets are gone; restore a newer state from a backup; to learn what the events topics hold anew, name another model",
			ErrGap, next, first, first-next)
	}
	if !r.cfg.AcceptGap {
		return next, fmt.Errorf("%w: the state has absorbed offsets below %d, the log begins at %d, so %d offsets are gone; go on without them with --accept-gap, or start with an empty state",
			ErrGap, next, first, first-next)
	}
	r.cfg.Log.Warn("kafka: going on after records lost to retention", "topic", r.cfg.Topic, "partition", r.partition, "from", next, "to", first)
	return first, nil
}

func (r *partitionReader) behind(end int64) error {
	return fmt.Errorf("%w: the state has absorbed offsets below %d, the log ends at %d; the topic was deleted and created again or this is another cluster: name the right one, or start with an empty state",
		ErrBehind, r.next, end)
}
