package orderlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"hamlet/cmd/internal/source"
	"hamlet/stream/kafka"
)

// An exported order is a file of JSON Lines: the records that a model has taken, in its order.
// It needs nothing else to be learnt again.
//
//	{"hamlet_order":1,"model":"default","topic":"hamlet.events.default"}
//	{"partition":0,"offset":0,"time":"2026-11-20T10:00:00Z","key":"…","headers":[{"key":"ce_id","value":"…"}],"value":"…"}
//	…
//	{"records":5574,"order":212}
//
// The first line has the version of the layout. Then there is a line for each record, as it
// stands in Kafka: its key, the values of its headers and its value are in base64. The last
// line counts the records; order is the offset of the order log up to which they are. A file
// without that line was cut off.
type fileHeader struct {
	Version int    `json:"hamlet_order"`
	Model   string `json:"model"`
	Topic   string `json:"topic"`
}

type fileRecord struct {
	Partition int         `json:"partition"`
	Offset    int64       `json:"offset"`
	Time      time.Time   `json:"time"`
	Key       []byte      `json:"key,omitempty"`
	Headers   []fileField `json:"headers"`
	Value     []byte      `json:"value"`
}

type fileField struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

type fileEndLine struct {
	Records int   `json:"records"`
	Order   int64 `json:"order"`
}

const (
	fileVersion = 1
	maxLine     = 16 << 20 // a record has at most 1 MiB, so no line is as long
)

// Exported says what Export wrote.
type Exported struct {
	Records int
	Order   int64 // the offset of the order log up to which they are
}

// Export writes the order of a model, with its events, to a file that appears when it is
// whole. It is compressed if its name ends in .gz or .zst. Only its owner may read it: it is
// mail. It replaces a file, and nothing else: no device, pipe or link.
func Export(ctx context.Context, cfg Config, model, path string) (done Exported, err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return done, fmt.Errorf("%s is no regular file, and would be replaced: name another file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return done, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	packed, err := packer(f, path)
	if err == nil {
		done, err = write(ctx, packed, cfg, model)
		err = errors.Join(err, packed.Close())
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return done, err
	}
	return done, os.Rename(f.Name(), path)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func packer(w io.Writer, path string) (io.WriteCloser, error) {
	switch {
	case strings.HasSuffix(path, ".gz"):
		return gzip.NewWriter(w), nil
	case strings.HasSuffix(path, ".zst"):
		return zstd.NewWriter(w)
	}
	return nopCloser{w}, nil
}

func write(ctx context.Context, w io.Writer, cfg Config, model string) (done Exported, err error) {
	out := bufio.NewWriterSize(w, 1<<16)
	line := json.NewEncoder(out) // it ends each value with a newline
	line.SetEscapeHTML(false)
	if err := line.Encode(fileHeader{fileVersion, model, cfg.Events}); err != nil {
		return done, err
	}
	done.Order, err = readTo(ctx, cfg, func(r *kafka.Record) error {
		done.Records++
		record := fileRecord{Partition: r.Partition, Offset: r.Offset, Time: r.Time.UTC(), Key: r.Key, Headers: []fileField{}, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, fileField{h.Key, h.Value})
		}
		return line.Encode(record)
	})
	if err == nil {
		err = line.Encode(fileEndLine(done))
	}
	return done, errors.Join(err, out.Flush())
}

// FileItems returns the events of an exported order, as Items does.
func FileItems(path string) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		wanted := true
		n := 0
		err := readFile(path, func(r *kafka.Record) error {
			wanted = yield(itemAt(n, r))
			if n++; !wanted {
				return errEnough
			}
			return nil
		})
		if err != nil && wanted {
			yield(source.Item{}, fmt.Errorf("%s: %w", path, err))
		}
	}
}

// CheckFile returns an error unless a file begins as an exported order.
func CheckFile(path string) error {
	err := readFile(path, func(*kafka.Record) error { return errEnough })
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func readFile(path string, each func(*kafka.Record) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var in io.Reader = f
	switch {
	case strings.HasSuffix(path, ".gz"):
		if in, err = gzip.NewReader(f); err != nil {
			return err
		}
	case strings.HasSuffix(path, ".zst"):
		unpacked, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return err
		}
		defer unpacked.Close()
		in = unpacked
	}
	return read(in, each)
}

// read calls each with the records of an exported order.
func read(r io.Reader, each func(*kafka.Record) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	var header fileHeader
	if !lines.Scan() || strict(lines.Bytes(), &header) != nil || header.Version == 0 {
		return errors.Join(lines.Err(), errors.New("this is no file of hamlet order export"))
	}
	if header.Version != fileVersion {
		return fmt.Errorf("the file has layout %d, this program reads %d: use the hamlet that wrote it or a newer one", header.Version, fileVersion)
	}
	n := 0
	next := map[int]int64{}
	for lines.Scan() {
		var end struct {
			Records *int  `json:"records"` // nil: this is not the last line
			Order   int64 `json:"order"`
		}
		if strict(lines.Bytes(), &end) == nil && end.Records != nil {
			switch {
			case *end.Records != n:
				return fmt.Errorf("the file has %d records, its last line says %d", n, *end.Records)
			case lines.Scan():
				return errors.New("something follows the last line")
			}
			return lines.Err()
		}
		var record fileRecord
		if err := strict(lines.Bytes(), &record); err != nil {
			return fmt.Errorf("record %d: %w", n+1, err)
		}
		if record.Headers == nil { // Export writes them always
			return fmt.Errorf("record %d: the line is no record", n+1)
		}
		if record.Partition < 0 || record.Offset < next[record.Partition] {
			return fmt.Errorf("record %d: offset %d of partition %d does not follow those before it", n+1, record.Offset, record.Partition)
		}
		next[record.Partition] = record.Offset + 1
		n++
		out := kafka.Record{Topic: header.Topic, Partition: record.Partition, Offset: record.Offset, Time: record.Time, Key: record.Key, Value: record.Value}
		for _, h := range record.Headers {
			out.Headers = append(out.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		if err := each(&out); err != nil {
			return err
		}
	}
	return errors.Join(lines.Err(), errors.New("the file is cut off: its last line is missing"))
}

// strict decodes one object with no other fields, and nothing behind it.
func strict(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}
