package follow

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hamlet/stream"
)

// A placement says where a handler's position lies in a log with the offsets first to end−1.
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

// locate sets r.next to the offset at which to begin. Where the position does not fit the log,
// the handler steps back.
func (r *reading) locate(ctx context.Context) error {
	for lowest := int64(math.MaxInt64); ; {
		next, ok := r.handler.Position(r.confirm)
		unfit, err := r.begin(ctx, next, ok)
		switch {
		case err != nil || unfit == nil:
			return err
		case next >= lowest:
			return fmt.Errorf("%w; the handler has not stepped back from %d", unfit, lowest)
		}
		lowest = next
		if err := r.handler.StepBack(ctx, r.seen, unfit, r.at); err != nil {
			return fmt.Errorf("%w; %w", unfit, err)
		}
	}
}

// begin sets r.next for a position, or says why it does not fit:
//
//	unplaced    -> 0, or first if a lost beginning is accepted, else ErrNoBeginning
//	beforeFirst -> the position, or first after an accepted gap, else ErrGap
//	within      -> the position if the handler Follows, else unfit: ErrReplaced
//	beyondEnd   -> asked again during the grace period, then unfit: ErrBehind
//
// begin also asks again if the record of within is out of range. A broker that recovers its log
// shows an early end for a moment, and retention may delete the record.
func (r *reading) begin(ctx context.Context, next int64, ok bool) (unfit, err error) {
	r.next = next
	var doubt grace
	for pause := newPause(); ; wait(ctx, pause) {
		if r.seen, err = r.bounds(ctx); err != nil {
			return nil, err
		}
		first, end := r.seen.First, r.seen.End
		log := r.cfg.Logger.With("first", first, "end", end)
		at := place(next, ok, first, end)
		switch at {
		case unplaced:
			r.next = first
			switch {
			case first > 0 && !r.cfg.AcceptLostBeginning:
				return nil, fmt.Errorf("%w: the log begins at offset %d", ErrNoBeginning, first)
			case first > 0:
				log.Warn("follow: reading from what is left of the log: retention has taken its beginning")
			default:
				log.Info("follow: reading from the beginning")
			}
			return nil, nil
		case beforeFirst:
			return nil, r.acceptGap()
		case within:
			unfit, err := r.compareLast(ctx)
			if !errors.Is(err, stream.ErrGone) && !errors.Is(err, stream.ErrBeyond) {
				return unfit, err
			}
		}
		switch {
		case !doubt.over():
		case at == beyondEnd:
			return r.behind(end), nil
		default:
			log.Warn("follow: the record before the position should be in the log and is not: going on", "next", next)
			return nil, nil
		}
	}
}

// compareLast asks the handler whether the record before its position is the one that it absorbed
// last. If compaction has removed the record, or it is damaged, there is nothing to compare.
func (r *reading) compareLast(ctx context.Context) (unfit, err error) {
	last, ok, err := r.recordAt(ctx, r.next-1)
	if errors.Is(err, stream.ErrDamaged) { // the log's ID says that it is the same
		r.cfg.Logger.Warn("follow: the record before the position is damaged: going on behind it", "next", r.next, "error", err)
		return nil, nil
	}
	if err != nil || !ok {
		return nil, err
	}
	if !r.handler.Follows(last) {
		return r.replaced("the log has another record at offset %d", last.Offset), nil
	}
	r.known, r.confirmed, r.last = true, last, last
	return nil, nil
}

// at returns the log's record at an offset, and false if it has none.
func (r *reading) at(ctx context.Context, offset int64) (stream.Record, bool, error) {
	record, ok, err := r.recordAt(ctx, offset)
	if errors.Is(err, stream.ErrGone) || errors.Is(err, stream.ErrBeyond) {
		return record, false, nil
	}
	return record, ok, err
}

// acceptGap moves r.next to the log's beginning if records between them are lost and AcceptGap is
// set.
func (r *reading) acceptGap() error {
	first, next := r.seen.First, r.next
	switch {
	case first <= next:
		return nil
	case !r.cfg.AcceptGap:
		return fmt.Errorf("%w: the state has absorbed offsets below %d, the log begins at %d, so %d offsets are gone",
			ErrGap, next, first, first-next)
	}
	r.cfg.Logger.Warn("follow: going on after records lost to retention", "from", next, "to", first)
	r.next = first
	return nil
}

// behind returns ErrBehind with what was seen.
func (r *reading) behind(end int64) error {
	return fmt.Errorf("%w: the state has absorbed offsets below %d, the log ends at %d; "+
		"it has lost its end, was deleted and created again, or is another one",
		ErrBehind, r.next, end)
}

// replaced returns ErrReplaced with what was seen.
func (r *reading) replaced(format string, seen ...any) error {
	return fmt.Errorf("%w: the state has absorbed offsets below %d, and %s; "+
		"the log was deleted and created again, has lost its end, or is another one",
		ErrReplaced, r.next, fmt.Sprintf(format, seen...))
}
