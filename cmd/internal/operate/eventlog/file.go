package eventlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"hamlet/cmd/internal/process/wholefile"
	"hamlet/stream"
)

// An exported log is a file of JSON Lines: the records that a model has taken, in its order.
// It needs nothing else to be learnt again.
//
//	{"hamlet_order":1,"model":"default","topic":"hamlet.events.default"}
//	{"partition":0,"offset":0,"time":"2026-11-20T10:00:00Z","key":"…","headers":[{"key":"…","value":"…"}],"value":"…"}
//	…
//	{"records":5574,"order":5574}
//
// The first line has the version of the layout. Then there is a line for each record, as it
// stands in Kafka: its key, the values of its headers and its value are in base64. The last
// line counts the records; order is the offset up to which they are. A file without that line
// was cut off.
//
// hamlet order export of 0.1.0 wrote the same layout. Of a model of several partitions its
// records are of all of them, and order is that of the log that said in which order. Here a
// record's place in the file is its offset.
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

type fileEnd struct {
	Records int   `json:"records"`
	Order   int64 `json:"order"`
}

// endBegins is how the last line begins, and no other.
const endBegins = `{"records":`

const (
	fileVersion = 1
	maxLine     = 16 << 20 // a record has at most 1 MiB, so no line is as long
)

// Export writes the records of a model's log to a file that appears when it is whole, and
// returns how many there are. The file is compressed if its name ends in .gz or .zst. Only its
// owner may read it: it is mail. It replaces a file, and nothing else: no device, pipe or link.
func Export(records Records, model, path string) (n int, err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file, and would be replaced: name another file", path)
	}
	err = wholefile.Write(path, func(w io.Writer) error {
		packed, err := packer(w, path)
		if err != nil {
			return err
		}
		n, err = write(packed, records, fileHeader{fileVersion, model, stream.EventsTopic(model)})
		return errors.Join(err, packed.Close())
	})
	return n, err
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

func write(w io.Writer, records Records, header fileHeader) (n int, err error) {
	out := bufio.NewWriterSize(w, 1<<16)
	line := json.NewEncoder(out) // it ends each value with a newline
	line.SetEscapeHTML(false)
	if err := line.Encode(header); err != nil {
		return 0, err
	}
	end := fileEnd{}
	for r, err := range records {
		if err != nil {
			return end.Records, err
		}
		record := fileRecord{0, r.Offset, r.Time.UTC(), r.Key, []fileField{}, r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, fileField(h))
		}
		if err := line.Encode(record); err != nil {
			return end.Records, err
		}
		end.Records, end.Order = end.Records+1, r.Offset+1
	}
	return end.Records, errors.Join(line.Encode(end), out.Flush())
}

// File returns the records of an exported log. The error says if the file is not one, or is cut off.
func File(path string) Records {
	return func(yield func(*stream.Record, error) bool) {
		err := readFile(path, func(r *stream.Record) error {
			if !yield(r, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("%s: %w", path, err))
		}
	}
}

// CheckFile returns an error unless a file begins as an exported log.
func CheckFile(path string) error {
	for _, err := range File(path) {
		return err
	}
	return nil
}

func readFile(path string, each func(*stream.Record) error) error {
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

// read calls each with the records of an exported log.
func read(r io.Reader, each func(*stream.Record) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	var header fileHeader
	if !lines.Scan() || strict(lines.Bytes(), &header) != nil || header.Version == 0 {
		return errors.Join(lines.Err(), errors.New("this is no log that hamlet exported"))
	}
	if header.Version != fileVersion {
		return fmt.Errorf("the file has layout %d, this program reads %d: use the hamlet that wrote it or a newer one",
			header.Version, fileVersion)
	}
	n := 0
	next := map[int]int64{}
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(endBegins)) {
			var end fileEnd
			switch err := strict(lines.Bytes(), &end); {
			case err != nil:
				return fmt.Errorf("the last line: %w", err)
			case end.Records != n:
				return fmt.Errorf("the file has %d records, its last line says %d", n, end.Records)
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
			return fmt.Errorf("record %d: offset %d of partition %d does not follow those before it",
				n+1, record.Offset, record.Partition)
		}
		next[record.Partition] = record.Offset + 1
		out := stream.Record{Offset: int64(n), Key: record.Key, Value: record.Value, Time: record.Time}
		for _, h := range record.Headers {
			out.Headers = append(out.Headers, stream.Header(h))
		}
		n++
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
