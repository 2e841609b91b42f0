package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"hamlet/stream"
	"hamlet/stream/filelog"
	"hamlet/stream/filelog/disktest"
	"hamlet/stream/logtest"
)

// A disk is a log and what is wrong with it. All nodes share it.
type disk struct {
	logtest.Memory
	full  atomic.Int64            // until then, in Unix nanoseconds, nothing is taken
	files atomic.Pointer[onFiles] // the log, where it is one in files; nil: it is in memory
}

// onFiles is a log in files, on a disk that loses power.
type onFiles struct {
	*filelog.Log
	disk *disktest.Disk
}

// open makes the log one in files, on a disk that may have one. The power may fail in the midst of it.
func (d *disk) open(on *disktest.Disk) error {
	log, err := filelog.OpenIn(on, "log", filelog.Options{SegmentBytes: 32 << 10})
	if err == nil {
		d.files.Store(&onFiles{log, on})
	}
	return err
}

// replace puts another log in files in the place of this one.
func (d *disk) replace(on *disktest.Disk, records []stream.Record) error {
	before := d.files.Load()
	other := new(disk)
	if err := other.open(on); err != nil {
		return err
	}
	if err := other.Append(context.Background(), records...); err != nil {
		return err
	}
	d.files.Store(other.files.Load())
	return before.Close()
}

// close ends a log in files.
func (d *disk) close() error {
	if f := d.files.Load(); f != nil {
		return f.Close()
	}
	return nil
}

func (f *onFiles) offAfter(operations int) {
	f.disk.Lock()
	defer f.disk.Unlock()
	f.disk.Left = operations
}

func (f *onFiles) isOff() bool {
	f.disk.Lock()
	defer f.disk.Unlock()
	return f.disk.Left == 0
}

func (f *onFiles) room(bytes int) {
	f.disk.Lock()
	defer f.disk.Unlock()
	f.disk.Room = bytes
}

// log returns where the records are.
func (d *disk) log() interface {
	stream.Log
	stream.Appender
} {
	if f := d.files.Load(); f != nil {
		return f
	}
	return &d.Memory
}

// unplugged is the error of a log whose machine is off: nobody answers.
func unplugged(err error) error {
	if errors.Is(err, disktest.ErrOff) || errors.Is(err, filelog.ErrClosed) {
		return errAway
	}
	return err
}

func (d *disk) Bounds(ctx context.Context) (stream.Bounds, error) {
	b, err := d.log().Bounds(ctx)
	return b, unplugged(err)
}

func (d *disk) Since(ctx context.Context, t time.Time) (int64, error) {
	offset, err := d.log().Since(ctx, t)
	return offset, unplugged(err)
}

func (d *disk) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) (
	[]stream.Record, int64, error) {
	records, end, err := d.log().Read(ctx, from, most, wait)
	return records, end, unplugged(err)
}

func (d *disk) Append(ctx context.Context, records ...stream.Record) error {
	return unplugged(d.log().Append(ctx, records...))
}

// A remote is a log as a node sees it. It implements [stream.Topic].
type remote struct {
	*node
	disk *disk
	name string // in the story: what is called
}

// away is what an adapter returns for a call that has got no answer.
func away(err error) error {
	if errors.Is(err, errAway) || errors.Is(err, errDead) {
		return fmt.Errorf("%w: %w", stream.ErrAway, err)
	}
	return err
}

// Name implements [stream.Topic].
func (l *remote) Name() string { return "topic " + l.name }

// Close implements [stream.Topic].
func (l *remote) Close() error { return nil }

// Bounds implements [stream.Log].
func (l *remote) Bounds(ctx context.Context) (b stream.Bounds, err error) {
	err = l.call(ctx, portLog, l.name+".Bounds", func() (err error) {
		b, err = l.disk.Bounds(ctx)
		return err
	})
	return b, away(err)
}

// Since implements [stream.Log].
func (l *remote) Since(ctx context.Context, t time.Time) (offset int64, err error) {
	err = l.call(ctx, portLog, l.name+".Since", func() (err error) {
		offset, err = l.disk.Since(ctx, t)
		return err
	})
	return offset, away(err)
}

// Read implements [stream.Log]. It waits at the node, not in the call.
func (l *remote) Read(ctx context.Context, from int64, most stream.Limit, wait time.Duration) (
	records []stream.Record, end int64, err error) {
	if wait > 0 {
		// Until there is something to read, or what was there is gone.
		if _, _, err := l.disk.Read(ctx, from, stream.Limit{Records: 1}, wait); err != nil && ctx.Err() != nil {
			return nil, 0, away(errors.Join(errAway, err))
		}
	}
	err = l.call(ctx, portLog, l.name+".Read", func() (err error) {
		if time.Now().Before(l.cutOff(string(Damaged))) {
			l.world.did(Damaged)
			return fmt.Errorf("%s at offset %d: %w", l.name, from, stream.ErrDamaged)
		}
		records, end, err = l.disk.Read(ctx, from, most, 0)
		return err
	})
	if err != nil {
		return nil, 0, away(err)
	}
	return slices.Clone(records), end, nil
}

// Append implements [stream.Appender]. As an adapter does, it tries again until ctx ends, so that
// records may be in twice.
func (l *remote) Append(ctx context.Context, records ...stream.Record) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := l.call(ctx, portLog, l.name+".Append", func() error {
			if time.Now().UnixNano() < l.disk.full.Load() {
				l.world.effect(Full)
				return fmt.Errorf("append to %s: %w", l.name, stream.ErrFull)
			}
			err := l.world.append(l.disk, l.at(records))
			if errors.Is(err, stream.ErrFull) {
				l.world.effect(Full)
			}
			return err
		})
		if !errors.Is(err, errAway) {
			return away(err)
		}
		if sleep(ctx, pause) != nil {
			return away(err)
		}
	}
}

// at returns records with the times of the node's clock.
func (l *remote) at(records []stream.Record) []stream.Record {
	l.mu.Lock()
	wrong := l.clock
	l.mu.Unlock()
	if wrong != 0 {
		l.world.effect(Clock)
	}
	records = slices.Clone(records)
	for i := range records {
		if records[i].Time.IsZero() {
			records[i].Time = time.Now().Add(wrong)
		}
	}
	return records
}
