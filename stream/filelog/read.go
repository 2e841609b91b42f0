package filelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"time"

	"hamlet/stream"
	"hamlet/stream/filelog/disk"
)

// Read implements [stream.Log]. Damage is a *[DamagedError] of its first offset that is asked for; what
// was asked for before it comes first. It costs one read of a file where it goes on from an earlier
// Read, and up to a segment more elsewhere.
func (l *Log) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) (
	records []stream.Record, end int64, err error) {
	if most.Bytes <= 0 {
		most.Bytes = readBytes
	}
	waited := time.NewTimer(wait)
	defer waited.Stop()
	for over := wait <= 0; ; {
		l.mu.Lock()
		first, end, closed, moved := l.first, l.end, l.closed, l.moved
		l.mu.Unlock()
		switch {
		case closed:
			return nil, 0, ErrClosed
		case ctx.Err() != nil:
			return nil, 0, fmt.Errorf("%w: %w", stream.ErrAway, context.Cause(ctx))
		case from < first:
			return nil, 0, fmt.Errorf("%s: %w: offset %d, the log begins at %d", l.Name(), stream.ErrGone, from, first)
		case from > end:
			return nil, 0, fmt.Errorf("%s: %w: offset %d, the log ends at %d", l.Name(), stream.ErrBeyond, from, end)
		}
		records, err := l.records(ctx, from, end, most)
		switch {
		case err != nil && l.movedOn(first):
			continue // retention has taken it
		case busy(err):
			return nil, 0, fmt.Errorf("%s: %w: %w", l.Name(), stream.ErrAway, err)
		case err != nil:
			return nil, 0, fmt.Errorf("%s: %w", l.Name(), err)
		case len(records) > 0 || over:
			return records, end, nil
		}
		select {
		case <-moved:
		case <-waited.C:
			over = true
		case <-ctx.Done():
		}
	}
}

func (l *Log) movedOn(first int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first > first
}

// An extent is a segment as far as it was durable at a moment.
type extent struct {
	segment
	end int64 // the base of the next one, or the log's end
}

// extent returns the segment that has an offset.
func (l *Log) extent(of int64) (p extent, at cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].base > of }) - 1
	if i < 0 { // before the first segment, which is missing
		i = 0
	}
	p = extent{l.segments[i], l.end}
	if i+1 < len(l.segments) {
		p.end = l.segments[i+1].base
	}
	at, ok := l.cursors[of]
	if !ok || at.base != p.base {
		at = cursor{p.base, 0}
	}
	return p, at
}

// keep notes where an offset stands.
func (l *Log) keep(offset int64, at cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.cursors) >= maxCursors {
		for one := range l.cursors { // any one
			delete(l.cursors, one)
			break
		}
	}
	l.cursors[offset] = at
}

// records returns records from an offset on, at least one if there is one below end.
func (l *Log) records(ctx context.Context, from, end int64, most stream.Limit) (records []stream.Record, err error) {
	for next := from; next < end && len(records) == 0; {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", stream.ErrAway, context.Cause(ctx))
		}
		p, at := l.extent(next)
		s := scan{log: l, extent: p, next: p.base, from: next, most: most}
		if at.at > 0 {
			s.next, s.at = next, at.at
		}
		if err := s.run(); errors.Is(err, fs.ErrNotExist) {
			if err := s.damage(-1, next, p.end); err != nil {
				return nil, err
			}
			next = p.end
			continue
		} else if err != nil {
			return nil, err
		}
		if n := len(s.records); n > 0 {
			l.keep(s.next, cursor{p.base, s.at})
		}
		records, next = s.records, max(s.next, p.end)
	}
	return records, nil
}

// A scan reads a segment.
type scan struct {
	log *Log
	extent
	next int64 // the offset that the next frame should have
	at   int64 // where that begins
	from int64 // offsets below are passed over
	most stream.Limit
	all  func(*DamagedError) // gets all damage, and the scan goes on; nil: damage ends it

	file    disk.File
	buf     []byte // what was read, from bufAt on
	bufAt   int64
	records []stream.Record
	bytes   int
}

// run reads until the limit, or the segment's end. Of damage before the limit it returns the error, unless
// it has records.
func (s *scan) run() (err error) {
	s.file, err = s.log.folder.Open(segmentName(s.base))
	if err != nil {
		return err
	}
	defer s.file.Close()
	if s.from < s.base { // the first segment is missing
		if err := s.damage(-1, s.from, s.base); err != nil {
			return err
		}
	}
	if s.at < headerSize {
		s.at = headerSize
		head := make([]byte, headerSize)
		if n, _, err := readAt(s.file, head, 0); err != nil {
			return err
		} else if id, base, ok := parseHeader(head[:n]); s.all != nil && (!ok || id != s.log.id || base != s.base) {
			s.all(&DamagedError{File: segmentName(s.base), At: 0, From: s.base, To: s.base})
		}
	}
	for s.next < s.end {
		if s.all == nil && s.most.Records > 0 && len(s.records) == s.most.Records {
			return nil // the next frame need not be read
		}
		f, err := s.frame()
		switch {
		case err == nil && f.offset == s.next && len(f.body) == 0:
			s.at += f.size
			continue
		case err == nil && f.offset == s.next:
			r, bad := f.record(s.headers())
			if bad != nil { // a defect of ours: the CRC is right
				return fmt.Errorf("%s, byte %d: %w", segmentName(s.base), s.at, bad)
			}
			if s.next >= s.from && s.log.leftOut(s.next) == s.next && s.all == nil {
				if len(s.records) > 0 && s.bytes+r.Size() > s.most.Bytes {
					return nil
				}
				s.bytes += r.Size()
				s.records = append(s.records, r)
			}
			s.at += f.size
			s.next++
			continue
		case err != nil && !errors.Is(err, errBroken) && !errors.Is(err, errShort):
			return err
		}
		broken := s.at
		to, err := s.resume()
		if err != nil {
			return err
		}
		if s.at < 0 {
			broken = -1
		}
		if to == s.next && s.all != nil && s.at >= 0 { // a mark
			s.all(&DamagedError{File: segmentName(s.base), At: broken, From: to, To: to})
		}
		if err := s.damage(broken, s.next, to); err != nil {
			if len(s.records) > 0 {
				s.at = broken
				return nil
			}
			return err
		}
		s.next = to
	}
	return nil
}

// damage returns the error of offsets that cannot be read, unless nobody has asked for them, or they
// are left out.
func (s *scan) damage(at, from, to int64) error {
	from = max(from, s.from)
	for from < to {
		behind := s.log.leftOut(from)
		if behind == from {
			break
		}
		from = behind
	}
	if from >= to {
		return nil
	}
	err := &DamagedError{File: segmentName(s.base), At: at, From: from, To: to}
	if s.all != nil {
		s.all(err)
		return nil
	}
	return err
}

// headers returns those of the record that was read last.
func (s *scan) headers() []stream.Header {
	if n := len(s.records); n > 0 {
		return s.records[n-1].Headers
	}
	return nil
}

// frame returns the frame at s.at.
func (s *scan) frame() (f frame, err error) {
	for want := frameSize; ; {
		have := s.buf[min(max(s.at-s.bufAt, 0), int64(len(s.buf))):]
		if s.at < s.bufAt {
			have = nil
		}
		f, more, err := s.log.seed.frame(have)
		if !errors.Is(err, errShort) {
			return f, err
		}
		if want = more; s.at+int64(want) > s.size {
			return f, errShort // the segment ends within it
		}
		if err := s.fill(int64(max(want, s.likely()))); err != nil {
			return f, err
		}
	}
}

// likely returns how many bytes are read at a time: what is read behind the limit is read again. Where few records
// are left to read, they are likely as long as the segment's on average.
func (s *scan) likely() int {
	n := min(s.most.Bytes+64<<10, fillBytes)
	if s.most.Records > 0 && s.all == nil && s.next >= s.from && s.end > s.base {
		average := float64(s.size) / float64(s.end-s.base)
		n = min(n, int(1.25*average*float64(s.most.Records-len(s.records)))+4<<10)
	}
	return n
}

// fill reads n bytes from s.at on, or up to the end. Records refer to what was read before, so that
// is left as it is.
func (s *scan) fill(n int64) error {
	s.buf, s.bufAt = make([]byte, min(n, s.size-s.at)), s.at
	read, _, err := readAt(s.file, s.buf, s.at)
	if s.buf = s.buf[:read]; int64(read) < min(n, s.size-s.at) {
		s.size = s.at + int64(read) // it is shorter than it was
	}
	return err
}

// resume goes on to the next whole frame behind s.at, and returns its offset; without one it returns
// the segment's end, and sets s.at to −1 if the file ends at s.at.
func (s *scan) resume() (to int64, err error) {
	if s.at >= s.size {
		s.at = -1
		return s.end, nil
	}
	if err := s.fill(s.size - s.at); err != nil {
		return 0, err
	}
	if len(s.buf) == 0 {
		s.at = -1
		return s.end, nil
	}
	n, f := s.log.seed.find(s.buf[1:], s.next-1, s.end)
	if n < 0 {
		s.at = s.size
		return s.end, nil
	}
	s.at += 1 + int64(n)
	return f.offset, nil
}

// Since implements [stream.Log]. It reads the log.
func (l *Log) Since(ctx context.Context, t time.Time) (int64, error) {
	b, err := l.Bounds(ctx)
	if err != nil {
		return 0, err
	}
	for next := b.First; next < b.End; {
		records, _, err := l.Read(ctx, next, stream.Limit{}, 0)
		if err != nil {
			return 0, err
		}
		for i := range records {
			if !records[i].Time.Before(t) {
				return records[i].Offset, nil
			}
		}
		if len(records) == 0 {
			break
		}
		next = records[len(records)-1].Offset + 1
	}
	return b.End, nil
}

// Verify reads the whole log, and returns what is damaged in it and not left out.
func (l *Log) Verify(ctx context.Context) (damaged []*DamagedError, err error) {
	b, err := l.Bounds(ctx)
	if err != nil {
		return nil, err
	}
	for next := b.First; next < b.End; {
		if err := ctx.Err(); err != nil {
			return damaged, context.Cause(ctx)
		}
		p, _ := l.extent(next)
		s := scan{log: l, extent: p, next: p.base, from: next, most: stream.Limit{Bytes: readBytes},
			all: func(e *DamagedError) { damaged = append(damaged, e) }}
		switch err := s.run(); {
		case l.movedOn(next): // what was found in it is gone
			damaged = slices.DeleteFunc(damaged, func(e *DamagedError) bool { return e.File == segmentName(p.base) })
		case errors.Is(err, fs.ErrNotExist):
			damaged = append(damaged, &DamagedError{File: segmentName(p.base), At: -1, From: next, To: p.end})
		case err != nil:
			return damaged, err
		}
		next = p.end
	}
	return damaged, nil
}
