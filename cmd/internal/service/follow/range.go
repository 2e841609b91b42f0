package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hamlet/state"
	"hamlet/stream"
)

// rangeWait is how long Range waits for a record that must be there: a log that keeps old records
// far away needs a while.
const rangeWait = time.Second

// Bounds returns the log's bounds. It asks until the log answers, or for Config.MaxOutage.
func Bounds(ctx context.Context, cfg Config) (stream.Bounds, error) {
	f := New(cfg)
	b, err := f.bounds(ctx)
	return b, f.named(err)
}

// Since returns the first offset with a record that was written at t or later, and the log's end
// if there is none. It asks until the log answers, or for Config.MaxOutage.
func Since(ctx context.Context, cfg Config, t time.Time) (offset int64, err error) {
	f := New(cfg)
	err = retry(ctx, &f.cfg, "find the offset of "+t.Format(time.RFC3339), func(ctx context.Context) (err error) {
		offset, err = f.cfg.Log.Since(ctx, t)
		return err
	})
	return offset, f.named(err)
}

// Range calls each with the records whose offsets are in [from, end), in order, each once. It keeps
// one read in memory. After a failure it goes on behind the last record, until ctx ends or for
// Config.MaxOutage. An error of each ends it at once, and so does an offset that the log no longer
// has: [stream.ErrGone]. Holes between offsets are passed over. The log must have come to end: one
// that ends before it is waited for, see Some.
func Range(ctx context.Context, cfg Config, from, end int64, each func(*stream.Record) error) error {
	for from < end {
		records, err := Some(ctx, cfg, from, end, batchBytes)
		if err != nil || len(records) == 0 {
			return err
		}
		for i := range records {
			if err := each(&records[i]); err != nil {
				return err
			}
			from = records[i].Offset + 1
		}
	}
	return nil
}

// Some returns records whose offsets are in [from, end), as many as one read returns of so many
// bytes: none if there are none. It retries as Range does.
//
// A broker that recovers its log shows an early end for a moment. So a read that finds nothing is
// believed only if it tells an end that is not before the wanted one: then there are holes up to
// there. Else it is an outage. An offset beyond the log's end is one for the grace period, and then
// [stream.ErrBeyond].
func Some(ctx context.Context, cfg Config, from, end int64, bytes int) (records []stream.Record, err error) {
	if from >= end {
		return nil, nil
	}
	f := New(cfg)
	most := stream.Limit{Records: int(min(end-from, 1<<30)), Bytes: bytes}
	var doubt grace
	err = retry(ctx, &f.cfg, fmt.Sprintf("read offsets %d to %d", from, end), func(ctx context.Context) error {
		got, now, err := f.cfg.Log.Read(ctx, from, most, rangeWait)
		switch {
		case err == nil && len(got) == 0 && now < end:
			return fmt.Errorf("%w: it ends at offset %d, and should end at %d or later", stream.ErrAway, now, end)
		case errors.Is(err, stream.ErrBeyond) && !doubt.over():
			return fmt.Errorf("%w: %w", stream.ErrAway, err)
		}
		records = got
		return err
	})
	if i := slices.IndexFunc(records, func(r stream.Record) bool { return r.Offset >= end }); i >= 0 {
		records = records[:i]
	}
	return records, f.named(err)
}

// Last returns the newest record for which wanted returns true (nil: any), and false if there is
// none among the last limit offsets. It may call wanted more than once for a record. It passes over damage.
//
// It reads backwards in windows of 64, 256, … offsets. So it reads at most about four times the
// records that follow the result.
func Last(ctx context.Context, cfg Config, limit int64,
	wanted func(*stream.Record) bool) (last stream.Record, ok bool, err error) {
	b, err := Bounds(ctx, cfg)
	if err != nil {
		return last, false, err
	}
	first := max(b.First, b.End-max(limit, 0))
	for end, size := b.End, int64(64); !ok && end > first; size *= 4 {
		from := max(first, end-size)
		err := whole(ctx, cfg, from, end, func(r *stream.Record) error {
			if wanted == nil || wanted(r) {
				last, ok = *r, true
			}
			return nil
		})
		if errors.Is(err, stream.ErrGone) { // meanwhile
			if b, err = Bounds(ctx, cfg); err == nil && b.First > first {
				first = b.First
				continue
			}
		}
		if err != nil {
			return last, false, err
		}
		end = from
	}
	return last, ok, nil
}

// whole is Range over the records that are not damaged. Where some are, it looks for them in each half.
func whole(ctx context.Context, cfg Config, from, end int64, each func(*stream.Record) error) error {
	err := Range(ctx, cfg, from, end, each)
	switch {
	case !errors.Is(err, stream.ErrDamaged):
		return err
	case end-from == 1:
		return nil
	}
	middle := from + (end-from)/2
	if err := whole(ctx, cfg, from, middle, each); err != nil {
		return err
	}
	return whole(ctx, cfg, middle, end, each)
}

// named adds the log's name to an error.
func (f *Follower) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", f.cfg.Name, err)
}

// Advance returns the position behind a record that a model has absorbed.
func Advance(p state.Position, r *stream.Record) state.Position {
	var few [manyHeaders]state.Header
	return p.Advance(r.Offset, r.Key, r.Value, chained(few[:0], r.Headers)...)
}

// Absorbed reports whether a record is the last one of a position.
func Absorbed(p state.Position, r *stream.Record) bool {
	var few [manyHeaders]state.Header
	return r.Offset == p.Next-1 && p.Follows(r.Key, r.Value, chained(few[:0], r.Headers)...)
}

// manyHeaders: beyond so many, headers are converted in memory of their own.
const manyHeaders = 16

// chained appends headers to dst as a position takes them.
func chained(dst []state.Header, headers []stream.Header) []state.Header {
	for _, h := range headers {
		dst = append(dst, state.Header(h))
	}
	return dst
}
