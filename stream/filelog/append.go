package filelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"hamlet/stream"
)

// Append implements [stream.Appender]. Records that are appended while others are being written
// share the next write and its fsync. When ctx ends it returns at once; what is being written then
// may be in the log all the same. It returns [stream.ErrFull] if there was no room for all, and
// [stream.ErrTooLarge] for a record of more than 1 MiB − 1 KiB.
func (l *Log) Append(ctx context.Context, records ...stream.Record) error {
	for i := range records {
		if n := records[i].Size(); n > MaxRecord {
			return fmt.Errorf("append to %s: %w: record %d of %d has %d bytes, more than %d",
				l.Name(), stream.ErrTooLarge, i+1, len(records), n, MaxRecord)
		}
	}
	for in := 0; in < len(records); {
		size := framesSize(records[in:])
		memory := frameMemory.Get().(*[]byte)
		if cap(*memory) < size {
			*memory = make([]byte, 0, size)
		}
		r := &request{done: make(chan struct{}), frames: (*memory)[:0]}
		for ; in+r.n < len(records) && len(r.frames) < groupBytes; r.n++ {
			before := len(r.frames)
			r.frames = appendRecord(r.frames, &records[in+r.n])
			if n := len(r.frames) - before - frameSize; n > maxBody {
				return fmt.Errorf("append to %s: %w: record %d of %d takes %d bytes, more than %d; %d are in",
					l.Name(), stream.ErrTooLarge, in+r.n+1, len(records), n, maxBody, in)
			}
		}
		if err := l.put(ctx, r); err != nil { // it may still be written
			return fmt.Errorf("append to %s: %d of %d records are in: %w", l.Name(), in, len(records), err)
		}
		*memory = r.frames
		frameMemory.Put(memory)
		in += r.n
	}
	return nil
}

// frameMemory has the memory of requests that are durable.
var frameMemory = sync.Pool{New: func() any { return new([]byte) }}

// framesSize returns at least how many bytes the frames of the next request take, and a little more.
func framesSize(records []stream.Record) (n int) {
	const length = 3 // of a part that a record may have, at most
	for i := range records {
		parts := 2 + 2*len(records[i].Headers) // the key, the number of headers, their keys and values
		if n += frameSize + 8 + length*parts + records[i].Size(); n >= groupBytes {
			break
		}
	}
	return n
}

// put waits until a request is durable.
func (l *Log) put(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.queue = append(l.queue, r)
	l.mu.Unlock()
	l.nudge()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = slices.DeleteFunc(l.queue, func(q *request) bool { return q == r }) // not begun
	return context.Cause(ctx)
}

func (l *Log) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run is the appender: it writes what is in the queue, until Close.
func (l *Log) run() {
	defer close(l.done)
	idle := time.NewTimer(l.opt.markAfter)
	defer idle.Stop()
	for {
		select {
		case <-l.wake:
		case <-idle.C:
			if !l.mark() {
				idle.Reset(l.opt.markAfter)
			}
			continue
		}
		for {
			group, closed := l.take()
			if len(group) > 0 {
				l.commit(group)
				idle.Reset(l.opt.markAfter)
				continue
			}
			l.rollOnRequest(closed)
			if closed {
				l.mark()
				return
			}
			break
		}
	}
}

// rollOnRequest does what Roll asks for.
func (l *Log) rollOnRequest(closed bool) {
	l.mu.Lock()
	rolled, empty := l.rolling, l.end == l.segments[len(l.segments)-1].base
	l.rolling = nil
	l.mu.Unlock()
	switch {
	case rolled == nil:
	case closed:
		rolled <- ErrClosed
	case l.broken != nil:
		rolled <- l.broken
	case empty:
		rolled <- nil
	default:
		l.mark() // nothing is written behind it any more
		rolled <- l.roll()
	}
}

// take takes the next group from the queue. After Close it refuses what is there.
func (l *Log) take() (group []*request, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		for _, r := range l.queue {
			r.err = ErrClosed
			close(r.done)
		}
		l.queue = nil
		return nil, true
	}
	n, bytes := 0, 0
	for ; n < len(l.queue) && (n == 0 || bytes+len(l.queue[n].frames) <= groupBytes); n++ {
		bytes += len(l.queue[n].frames)
	}
	group = l.queue[:n:n]
	l.queue = l.queue[n:]
	return group, false
}

// commit makes a group durable, and says so.
func (l *Log) commit(group []*request) {
	l.mu.Lock()
	last, end := l.segments[len(l.segments)-1], l.end
	l.mu.Unlock()
	at := last.size
	err := l.broken
	if err == nil && at >= l.opt.SegmentBytes && end > last.base {
		if err = l.roll(); err == nil {
			at = headerSize
		}
	}
	if err == nil {
		b, next := group[0].frames, end
		if len(group) > 1 {
			b = l.bytes[:0]
		}
		for _, r := range group {
			for rest := r.frames; len(rest) > 0; next++ {
				rest = l.seed.seal(rest, next, end)
			}
			if len(group) > 1 {
				b = append(b, r.frames...)
				l.bytes = b
			}
		}
		if err = l.write(b, at); err == nil {
			l.marked = false
			l.advance(at+int64(len(b)), next)
		}
	}
	for _, r := range group {
		r.err = err
		close(r.done)
	}
}

// advance makes what was written visible.
func (l *Log) advance(size, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments[len(l.segments)-1].size, l.end = size, end
	if !l.closed {
		close(l.moved)
		l.moved = make(chan struct{})
	}
}

// write makes bytes durable at a place of the last segment, or leaves that as it was.
func (l *Log) write(b []byte, at int64) error {
	if _, err := l.tail.WriteAt(b, at); err != nil {
		if cut := l.tail.Truncate(at); cut != nil {
			l.broken = fmt.Errorf("a write failed, and so did cutting off what is there of it: %w", errors.Join(err, cut))
			return l.broken
		}
		return noRoom(err)
	}
	err := l.tail.Sync()
	if err == nil {
		return nil
	}
	// Another fsync over this descriptor could succeed without having written anything.
	if again := l.reopen(at); again != nil {
		l.broken = fmt.Errorf("nothing can be appended until the log is opened again: "+
			"an fsync failed, and so did what follows on it: %w", errors.Join(err, again))
		l.opt.Log.Error("the log takes no more records", "error", l.broken)
		return l.broken
	}
	return noRoom(err)
}

// noRoom returns err, as [stream.ErrFull] if there was no room.
func noRoom(err error) error {
	if full(err) {
		return fmt.Errorf("%w: %w", stream.ErrFull, err)
	}
	return err
}

// reopen opens the last segment again, and cuts off what was not acknowledged.
func (l *Log) reopen(size int64) error {
	l.mu.Lock()
	name := segmentName(l.segments[len(l.segments)-1].base)
	l.mu.Unlock()
	f, err := l.folder.Open(name)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Sync()); err != nil {
		return errors.Join(err, f.Close())
	}
	_ = l.tail.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = f
	return nil
}

// roll begins a segment. All that is in the one before is durable.
func (l *Log) roll() error {
	name := segmentName(l.end)
	f, err := l.folder.Create(name)
	if errors.Is(err, fs.ErrExist) { // of an attempt that failed
		if err := l.folder.Remove(name); err != nil {
			return err
		}
		f, err = l.folder.Create(name)
	}
	if err != nil {
		return noRoom(err)
	}
	_, err = f.WriteAt(appendHeader(nil, l.id, l.end), 0)
	if err := errors.Join(err, f.Sync(), l.folder.Sync()); err != nil {
		return noRoom(errors.Join(err, f.Close(), l.folder.Remove(name)))
	}
	if l.tail != nil {
		if err := l.tail.Close(); err != nil {
			l.opt.Log.Warn("closing a segment", "error", err) // it is durable
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = f
	l.segments = append(l.segments, segment{l.end, headerSize})
	return nil
}

// mark writes a mark if something was written since the last one. It reports whether none is wanting.
func (l *Log) mark() bool {
	if l.marked || l.broken != nil {
		return true
	}
	l.mu.Lock()
	at, end := l.segments[len(l.segments)-1].size, l.end
	l.mu.Unlock()
	b := make([]byte, frameSize)
	l.seed.seal(b, end, end)
	if err := l.write(b, at); err != nil {
		return false // there will be room, or a group says the same
	}
	l.marked = true
	l.advance(at+frameSize, end)
	return true
}
