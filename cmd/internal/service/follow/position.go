package follow

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hamlet/stream"
)

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
//	there is none     -> 0, or first if a lost beginning is accepted, else ErrNoBeginning
//	at first or below -> the position, or first after an accepted gap, else ErrGap
//	up to end         -> the position if the handler Follows, else unfit: ErrReplaced
//	above end         -> asked again during the grace period, then unfit: ErrBehind
//
// begin also asks again if the record before the position, which should be in the log, is not. A
// broker that recovers its log shows an early end for a moment, and retention may delete the record.
func (r *reading) begin(ctx context.Context, next int64, ok bool) (unfit, err error) {
	r.next = next
	var doubt grace
	for pause := newPause(ctx); ; wait(ctx, pause) {
		if r.seen, err = r.bounds(ctx); err != nil {
			return nil, err
		}
		first, end := r.seen.First, r.seen.End
		log := r.cfg.Logger.With("first", first, "end", end)
		switch {
		case !ok:
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
		case next <= first:
			return nil, r.acceptGap()
		case next <= end:
			if unfit, err := r.compareLast(ctx); !outside(err) {
				return unfit, err
			}
		}
		switch {
		case !doubt.over():
		case next > end:
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
		r.cfg.Logger.Warn("follow: the record before the position is damaged: going on behind it",
			"next", r.next, "error", err)
		return nil, nil
	}
	if err != nil || !ok {
		return nil, err
	}
	if !r.handler.Follows(last) {
		return r.replaced("the log has another record at offset %d", last.Offset), nil
	}
	r.known, r.confirmed, r.last = true, last.Offset, last
	return nil, nil
}

// at is a [RecordAt].
func (r *reading) at(ctx context.Context, offset int64) (stream.Record, bool, error) {
	record, ok, err := r.recordAt(ctx, offset)
	if outside(err) {
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
