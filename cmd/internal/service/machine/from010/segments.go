package from010

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hamlet/stream"
	"hamlet/stream/filelog"
)

// A partition is what kfake, the Kafka of 0.1.0, keeps of a topic's one partition in a folder:
//
//	BASE.dat         a segment: batches, one after the other. BASE is the offset of the first one
//	BASE.idx         15 bytes for each batch, which are written after it
//	snapshot.json    what there was at the last orderly stop
//
// Nothing was made durable with fsync. After a kill −9 or a loss of power the last segment may end within
// a batch.
//
// At its start 0.1.0 cuts a segment off where it is damaged. That is a hole in the log: what
// follows kept its offsets. The segment's .idx is cut off as well, so a hole that 0.1.0 has
// made is told from damage that it has not seen.
type partition struct {
	topic   string
	folder  string
	bases   []int64 // ascending
	stopped *stop   // nil: it was never stopped in order
	first   int64   // where the log begins: retention has taken what is below
	sparse  bool    // it is compacted: offsets may be missing within a segment
	forever bool    // it has no retention
}

// A stop is snapshot.json, as far as it is needed.
type stop struct {
	Version  int   `json:"version"`
	End      int64 `json:"high_watermark"`
	Start    int64 `json:"log_start_offset"`
	Segments []struct {
		Base int64 `json:"base_offset"`
		Size int64 `json:"size"`
	} `json:"segments"`
}

const (
	stopName  = "snapshot.json"
	indexSize = 15
)

// A DamagedError says that a file of 0.1.0 does not hold what was written.
type DamagedError struct {
	File string
	At   int64 // the byte
	Why  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s, byte %d: %v", e.File, e.At, e.Why)
}

func (e *DamagedError) Unwrap() error { return e.Why }

// openPartition looks at the folder of a partition, which may be missing.
func openPartition(folder string, of partition, log *slog.Logger) (*partition, error) {
	p := &of
	p.folder = folder
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		text, is := strings.CutSuffix(e.Name(), ".dat")
		if base, err := strconv.ParseInt(text, 10, 64); is && err == nil && base >= 0 && strconv.FormatInt(base,
			10) == text {
			p.bases = append(p.bases, base)
		} else if is {
			return nil, &DamagedError{filepath.Join(folder, e.Name()), 0, errors.New("this is no name of a segment")}
		}
	}
	slices.Sort(p.bases)
	path := filepath.Join(folder, stopName)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		p.stopped = new(stop)
		if err := json.Unmarshal(text,
			p.stopped); err != nil || p.stopped.Version != 1 || p.stopped.Start < 0 || p.stopped.Start > p.stopped.End {
			return nil, &DamagedError{path, 0, errors.Join(errBroken, err)}
		}
	}
	if len(p.bases) > 0 {
		p.first = p.bases[0]
	}
	if s := p.stopped; s != nil {
		if p.first = max(p.first, s.Start); len(p.bases) == 0 {
			p.first = s.End // retention has taken the rest
		}
		for _, segment := range s.Segments {
			if slices.Contains(p.bases, segment.Base) {
				continue
			}
			if p.forever || len(p.bases) > 0 && segment.Base > p.bases[0] {
				return nil, &DamagedError{filepath.Join(folder, fmt.Sprintf("%d.dat", segment.Base)), 0,
					errors.New("the file is missing: put it back from a copy")}
			}
			log.Warn("a segment is gone that was there when hamlet was stopped last: "+
				"the topic's retention has deleted it", "topic", p.topic, "segment", segment.Base)
		}
	}
	return p, nil
}

// size returns the bytes of all segments.
func (p *partition) size() (n int64, err error) {
	for _, base := range p.bases {
		info, err := os.Stat(p.path(base))
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}

func (p *partition) path(base int64) string {
	return filepath.Join(p.folder, fmt.Sprintf("%d.dat", base))
}

// had returns the bytes of a segment at the last orderly stop, 0 if there were none or none are known.
func (p *partition) had(base int64) int64 {
	if p.stopped != nil {
		for _, s := range p.stopped.Segments {
			if s.Base == base {
				return s.Size
			}
		}
	}
	return 0
}

// unchanged reports whether the partition is as it was at the last orderly stop.
func (p *partition) unchanged(sizes []int64) bool {
	if p.stopped == nil || len(p.stopped.Segments) != len(p.bases) {
		return false
	}
	for i, s := range p.stopped.Segments {
		if s.Base != p.bases[i] || s.Size != sizes[i] {
			return false
		}
	}
	return true
}

// read calls each with all records in order, and read with the bytes of each batch. It returns the
// log's end. What it leaves out it says in log.
func (p *partition) read(ctx context.Context, log *slog.Logger, each func(stream.Record) error,
	read func(bytes int64) error) (end int64, err error) {
	log = log.With("topic", p.topic)
	end = p.first
	if len(p.bases) > 0 {
		end = p.bases[0]
	}
	var sizes []int64
	for i, base := range p.bases {
		switch {
		case base < end:
			return 0, &DamagedError{p.path(base), 0,
				fmt.Errorf("it begins at offset %d, and the segment before it ends at %d", base, end)}
		case base > end:
			log.Warn("records are missing: hamlet 0.1.0 had cut them off as damaged. They stay a hole in the log",
				"from", end, "to", base-1)
		}
		s := segment{partition: p, base: base, next: base, last: i == len(p.bases)-1, log: log, each: each, read: read}
		if err := s.run(ctx); err != nil {
			return 0, err
		}
		end = s.next
		sizes = append(sizes, s.size)
	}
	if p.unchanged(sizes) && p.stopped.End != end && len(p.bases) > 0 {
		return 0, &DamagedError{filepath.Join(p.folder, stopName), 0,
			fmt.Errorf("it says that the log ends at offset %d, and the segments end at %d", p.stopped.End, end)}
	}
	if len(p.bases) > 0 && p.first > p.bases[0] {
		level := slog.LevelInfo
		if p.forever {
			level = slog.LevelWarn
		}
		log.Log(ctx, level, "the log begins within a segment: what is before was deleted from it", "first", p.first,
			"segment", p.bases[0])
	}
	return max(end, p.first), nil
}

// A segment is read from its beginning to its end.
type segment struct {
	*partition
	base int64
	last bool
	log  *slog.Logger
	each func(stream.Record) error
	read func(bytes int64) error

	file    *os.File
	size    int64
	next    int64 // the offset that the next batch should begin at
	batches int64 // so many were read
}

func (s *segment) run(ctx context.Context) (err error) {
	if s.file, err = os.Open(s.path(s.base)); err != nil {
		return err
	}
	defer s.file.Close()
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	s.size = info.Size()
	indexed := int64(-1) // batches that the index knows of; −1: there is none
	if info, err := os.Stat(strings.TrimSuffix(s.path(s.base), ".dat") + ".idx"); err == nil {
		indexed = info.Size() / indexSize
	}
	at := int64(0)
	for at < s.size {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		b, err := readBatch(s.file, at, s.size)
		if err == nil && (b.first < s.next || b.first > s.next && !s.sparse) {
			return s.damaged(at, fmt.Errorf("%w: a batch begins at offset %d, not %d", errBroken, b.first, s.next))
		}
		if errors.Is(err, errBroken) || errors.Is(err, errShort) {
			return s.tail(at, err, indexed)
		}
		if err != nil {
			return fmt.Errorf("%s, byte %d: %w", s.path(s.base), at, err)
		}
		if b.end() > s.first {
			err := b.records(io.NewSectionReader(s.file, at+batchHeader, b.size-batchHeader), s.pass)
			if errors.Is(err, errBroken) {
				return s.damaged(at, err)
			}
			if err != nil {
				return err
			}
		}
		at += b.size
		s.next = b.end()
		s.batches++
		if err := s.read(b.size); err != nil {
			return err
		}
	}
	switch had := s.had(s.base); {
	case s.size < had:
		return s.damaged(at, fmt.Errorf("the file ends here, and it had %d bytes when hamlet was stopped last", had))
	case indexed > s.batches && !s.last:
		return s.damaged(at, fmt.Errorf("the file ends here with %d batches, and its index has %d", s.batches, indexed))
	case indexed > s.batches:
		s.log.Warn("the last batches were not written before the power or the program went: "+
			"nobody was told that they are durable", "file", s.path(s.base), "batches", indexed-s.batches)
	}
	return nil
}

func (s *segment) pass(r stream.Record) error {
	if r.Offset < s.first {
		return nil
	}
	if r.Size() > filelog.MaxRecord {
		s.log.Warn("a record is left out, which is larger than any event may be: no model has learnt it",
			"offset", r.Offset, "bytes", r.Size())
		return nil
	}
	return s.each(r)
}

// damaged leads out: 0.1.0 itself goes on without what is damaged, and so makes it a hole.
func (s *segment) damaged(at int64, why error) error {
	return &DamagedError{s.path(s.base), at,
		fmt.Errorf("%w. Put the file back from a copy. If there is none: hamlet 0.1.0, started and stopped once, "+
			"cuts the damage off, with what follows it in the file", why)}
}

// tail decides what bytes are that are no batch. At the end of the last segment a write may have been cut
// off, of which nobody was told that it is durable. Everything else is damage.
func (s *segment) tail(at int64, why error, indexed int64) error {
	switch {
	case !s.last:
		return s.damaged(at, why)
	case s.had(s.base) > at:
		return s.damaged(at, fmt.Errorf("%w: they were whole when hamlet was stopped last", why))
	case errors.Is(why, errBroken) && indexed > s.batches:
		return s.damaged(at, fmt.Errorf("%w: the index says that they were", why))
	}
	found, err := s.follows(at + 1)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path(s.base), err)
	}
	if found >= 0 {
		return s.damaged(at, fmt.Errorf("%w: a whole batch follows at byte %d", why, found))
	}
	s.log.Warn("the last write was cut off: nobody was told that it is durable, and it is left out", "file",
		s.path(s.base), "byte", at, "bytes", s.size-at, "offset", s.next)
	return nil
}

// follows returns where a whole batch begins from a place on; −1: nowhere.
func (s *segment) follows(from int64) (at int64, err error) {
	const window = 1 << 20
	buf := make([]byte, window+batchHeader)
	for at = from; at+batchHeader <= s.size; at += window {
		n, err := s.file.ReadAt(buf[:min(int64(len(buf)), s.size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := 0; i < window && i+batchHeader <= n; i++ {
			b, _, ok := parseHeader((*[batchHeader]byte)(buf[i:]))
			if !ok || b.first < s.next || b.size > s.size-at-int64(i) {
				continue
			}
			if _, err := readBatch(s.file, at+int64(i), s.size); err == nil {
				return at + int64(i), nil
			}
		}
	}
	return -1, nil
}
