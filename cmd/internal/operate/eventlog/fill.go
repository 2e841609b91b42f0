package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/service/follow"
	"hamlet/stream"
)

const (
	// batchBytes is what one call publishes, a request of about the largest size. Two batches
	// are in memory: one is published while the next is read.
	batchBytes = 1 << 20

	// chunkBytes is what is read at a time of the log that is compared: a fetch.
	chunkBytes = 4 << 20

	// settle is how long a log must stand still before it is known what is in it: a request
	// of a program that was killed may still be under way.
	settle = 300 * time.Millisecond
)

// Filled says what Fill has done.
type Filled struct {
	Records int   `json:"records"` // of the source, all of them in the log
	Before  int   `json:"before"`  // of these, in the log before
	After   int64 `json:"after"`   // offsets behind them: the log went on before
}

// Fill appends records to a log, until all are in it: those that are not in it yet. It calls
// progress, which may be nil, with how many are in. A record before oldest is ErrOld. Nobody else
// may write to the log meanwhile.
//
// It may be killed at any time; the same call goes on where it stopped. An error wraps
// ErrForeign where the log holds other records at the beginning, has lost its beginning, or gets
// a record from elsewhere. Nothing is appended again before the log says what has come of it. A
// log that stores a request only later is not seen until the end, and is ErrForeign too.
func (l *Log) Fill(ctx context.Context, records Records, oldest time.Time, progress func(n int)) (Filled, error) {
	f := filler{log: l, oldest: oldest, most: batchBytes, progress: progress}
	return f.run(ctx, records)
}

// A filler fills one log.
//
//	records ─> compare, with the log to its end, ─the others, in batches─> publish
type filler struct {
	log      *Log
	batches  chan []stream.Record
	most     int // bytes of a batch
	oldest   time.Time
	progress func(n int)

	// Until it sends a batch compare writes these, then publish.
	end int64 // the log has records of the source up to it, and then ends
	in  int   // how many these are
}

func (f *filler) run(ctx context.Context, records Records) (done Filled, err error) {
	f.batches = make(chan []stream.Record)
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(f.batches)
		var err error
		done, err = f.compare(within, records)
		return err
	})
	group.Go(func() error { return f.publish(within) })
	err = group.Wait()
	done.Records = f.in
	if err != nil || done.After > 0 {
		return done, err
	}
	b, err := follow.Bounds(ctx, f.log.Config)
	switch {
	case err != nil:
		return done, err
	case b.First > 0:
		return done, f.lostBeginning(b.First)
	case b.End != f.end:
		return done, fmt.Errorf("%w: %s ends at offset %d, and the copy at %d: "+
			"somebody else has written to it, or a request was stored twice", ErrForeign, f.log.Name, b.End, f.end)
	}
	return done, nil
}

func (f *filler) lostBeginning(first int64) error {
	return fmt.Errorf("%w: %s begins at offset %d", ErrForeign, f.log.Name, first)
}

// compare compares the records with those that are in the log, and sends the others to publish.
func (f *filler) compare(ctx context.Context, records Records) (done Filled, err error) {
	there := cursor{log: f.log.Config, most: chunkBytes}
	var batch []stream.Record
	n, size, comparing := 0, 0, true
	send := func() error {
		select {
		case f.batches <- batch:
			batch, size = nil, 0
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for r, err := range records {
		if err != nil {
			return done, err
		}
		if comparing {
			in, err := f.next(ctx, &there)
			switch {
			case err != nil:
				return done, err
			case in == nil:
				f.end, done.Before, comparing = there.end, n, false
			case !same(in, r):
				return done, f.foreign(in.Offset, n)
			default:
				there.take()
				n++
				f.isIn(1)
				continue
			}
		}
		if err := fresh(r, n, f.oldest); err != nil {
			return done, err
		}
		batch, size, n = append(batch, *r), size+sizeOf(r), n+1
		if size >= f.most {
			if err := send(); err != nil {
				return done, err
			}
		}
	}
	if comparing {
		in, err := f.next(ctx, &there)
		f.end, done.Before = there.end, n
		if in != nil {
			done.After = there.end - in.Offset
		}
		return done, err
	}
	if len(batch) == 0 {
		return done, nil
	}
	return done, send()
}

// next returns the next record of the log, and nil at its end, if it stands still.
func (f *filler) next(ctx context.Context, there *cursor) (*stream.Record, error) {
	for {
		r, err := there.peek(ctx)
		if r != nil || err != nil {
			return r, err
		}
		if err := sleep(ctx, settle); err != nil {
			return nil, err
		}
		b, err := follow.Bounds(ctx, f.log.Config)
		switch {
		case err != nil:
			return nil, err
		case b.First > 0:
			return nil, f.lostBeginning(b.First)
		case b.End < there.end:
			return nil, fmt.Errorf("%w: %s ended at offset %d, and now at %d", ErrForeign, f.log.Name, there.end, b.End)
		case b.End == there.end:
			return nil, nil
		}
		there.end = b.End
	}
}

func (f *filler) publish(ctx context.Context) error {
	for batch := range f.batches {
		if err := f.put(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// put appends a batch. Of a request that failed it is not known whether its records are in the
// log. So it reads the log, and sends what is not in it.
func (f *filler) put(ctx context.Context, batch []stream.Record) error {
	failing := time.Time{}
	for {
		err := f.log.to.Append(ctx, batch...)
		if err == nil {
			f.end += int64(len(batch))
			f.isIn(len(batch))
			return nil
		}
		most := f.log.MaxOutage
		switch {
		case !errors.Is(err, stream.ErrAway):
			return err
		case failing.IsZero():
			failing = time.Now()
		case most > 0 && time.Since(failing) > most:
			return fmt.Errorf("%w: nothing could be appended for %v (last failure: %v)", follow.ErrOutage, most, err)
		}
		there := cursor{log: f.log.Config, most: chunkBytes, next: f.end, end: f.end}
		for ; ; there.take() {
			r, err := f.next(ctx, &there)
			if err != nil {
				return err
			}
			if r == nil {
				break
			}
			if len(batch) == 0 || !same(r, &batch[0]) {
				return f.foreign(r.Offset, f.in)
			}
			batch, failing = batch[1:], time.Time{}
			f.isIn(1)
		}
		if f.end = there.end; len(batch) == 0 {
			return nil
		}
	}
}

// isIn counts records of the source that are in the log.
func (f *filler) isIn(n int) {
	if f.in += n; f.progress != nil {
		f.progress(f.in)
	}
}

func (f *filler) foreign(offset int64, n int) error {
	return fmt.Errorf("%w: offset %d of %s has another record than record %d of the source",
		ErrForeign, offset, f.log.Name, n+1)
}

// sizeOf returns about how many bytes a record has in memory.
func sizeOf(r *stream.Record) int { return 128 + r.Size() + 40*len(r.Headers) }

func same(a, b *stream.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(a, b stream.Header) bool {
			return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
		})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
