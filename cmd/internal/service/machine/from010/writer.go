package from010

import (
	"context"

	"hamlet/stream"
	"hamlet/stream/filelog"
)

// A writer writes a log. Offsets that are missing are left out of it.
type writer struct {
	path       string
	first, end int64
	log        *filelog.Log // nil: not opened yet
	waiting    []stream.Record
	bytes      int
}

// groupBytes and groupRecords bound what is written at once.
const groupBytes, groupRecords = 4 << 20, 10_000

func (w *writer) add(ctx context.Context, r stream.Record) error {
	if err := w.reach(ctx, r.Offset); err != nil {
		return err
	}
	w.waiting, w.bytes, w.end = append(w.waiting, r), w.bytes+r.Size(), r.Offset+1
	if w.bytes >= groupBytes || len(w.waiting) >= groupRecords {
		return w.flush(ctx)
	}
	return nil
}

func (w *writer) flush(ctx context.Context) error {
	if len(w.waiting) == 0 {
		return nil
	}
	err := w.log.Append(ctx, w.waiting...)
	clear(w.waiting)
	w.waiting, w.bytes = w.waiting[:0], 0
	return err
}

// reach makes an offset the log's next one. The log is opened again behind a hole, and the hole is left
// out, or it would be damage.
func (w *writer) reach(ctx context.Context, offset int64) error {
	if w.log != nil && offset == w.end {
		return nil
	}
	if w.log != nil {
		if err := w.flush(ctx); err != nil {
			return err
		}
		if err := w.abandon(); err != nil {
			return err
		}
	}
	// The log's warnings are about offsets that are lost, which these are not.
	log, err := filelog.Open(w.path, filelog.Options{First: w.first, Next: offset})
	if err != nil {
		return err
	}
	w.log = log
	if offset == w.end {
		return nil
	}
	from := w.end
	w.end = offset
	return log.Skip(from, offset)
}

// close ends the log at an offset.
func (w *writer) close(ctx context.Context, end int64) error {
	if err := w.reach(ctx, end); err != nil {
		return err
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	return w.abandon()
}

// abandon closes the log as it is.
func (w *writer) abandon() error {
	if w.log == nil {
		return nil
	}
	log := w.log
	w.log = nil
	return log.Close()
}
