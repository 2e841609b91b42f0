package from010

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hamlet/state"
	"hamlet/stream"
)

// digest reads what a conversion reads of one of the two, and returns a hash of what it would write.
func digest(dir, part string, log *slog.Logger) (string, error) {
	c := &conversion{dir: dir, cfg: Config{Log: log, Progress: func(int64, int64) {},
		step: func() error { return nil }}}
	o, err := c.openPart(part)
	if err != nil {
		return "", err
	}
	defer o.close()
	sum := fnv.New128a()
	for _, p := range o.partitions {
		end, err := p.read(context.Background(), log, func(r stream.Record) error {
			_, err := fmt.Fprintf(sum, "%d %d %q %q %q\n", r.Offset, r.Time.UnixMilli(), r.Key, r.Value, r.Headers)
			return err
		}, c.progress)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, p.topic, p.first, end)
	}
	for i, m := range o.models {
		k := o.kept[i]
		fmt.Fprintln(sum, m.name, k.Epoch, k.Last, k.Head, k.Pinned, k.Promotion)
		for _, v := range k.Versions {
			fmt.Fprintln(sum, v.Number, v.Manifest, v.Day, v.Replaced, v.Lost)
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

func (c *conversion) openPart(part string) (o *old, err error) {
	o = new(old)
	if part == kafkaFolder {
		o.partitions, err = openKafka(c.path(kafkaFolder), c.cfg.Log)
	} else if o.snapshot, err = openSnapshot(c.path(redisFolder)); err == nil {
		err = o.openModels(c)
	}
	return o, err
}

// A bit flips in a file of 0.1.0. That is an error, or changes nothing, or is logged.
func TestFlippedBits(t *testing.T) {
	dir := golden(t)
	wanted := map[string]string{}
	for _, part := range []string{kafkaFolder, redisFolder} {
		var err error
		if wanted[part], err = digest(dir, part, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	names := tree(t, dir)
	counts := map[string]int{}
	for name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		part, _, _ := strings.Cut(name, "/")
		if part != kafkaFolder {
			part = redisFolder
		}
		want := wanted[part]
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		stride := 1
		if len(b) > 1000 && os.Getenv("HAMLET_NIGHTLY") == "" {
			stride = len(b) / 250
		}
		for at := 0; at < len(b); at += stride {
			if _, err := f.WriteAt([]byte{b[at] ^ 1<<(at%8)}, int64(at)); err != nil {
				t.Fatal(err)
			}
			log, text := logged(slog.LevelInfo)
			got, err := digest(dir, part, log)
			switch {
			case err != nil && !errors.As(err, new(*DamagedError)) && !errors.Is(err, state.ErrPartitions):
				t.Errorf("%s, byte %d: %v", name, at, err)
			case err != nil:
				counts["error"]++
			case got == want:
				counts["harmless"]++
			case text.Len() == 0:
				t.Errorf("%s, byte %d: another result, and not a word", name, at)
			default:
				counts["logged"]++
			}
			if _, err := f.WriteAt(b[at:at+1], int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(counts)
	if counts["error"] < 1000 {
		t.Error("hardly any flip was seen")
	}
}

// A file of 0.1.0 ends anywhere, or is missing.
func TestCutFiles(t *testing.T) {
	dir := golden(t)
	wanted := map[string]string{}
	for _, part := range []string{kafkaFolder, redisFolder} {
		var err error
		if wanted[part], err = digest(dir, part, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	for name := range tree(t, dir) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		part, _, _ := strings.Cut(name, "/")
		if part != kafkaFolder {
			part = redisFolder
		}
		want := wanted[part]
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := len(b) - 1; at >= -1; at -= 1 + len(b)/40 {
			if at < 0 {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, b[:at], 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			log, text := logged(slog.LevelWarn)
			got, err := digest(dir, part, log)
			if err == nil && got != want && text.Len() == 0 {
				t.Errorf("%s, cut at byte %d: another result, and not a word", name, at)
			}
			if err != nil && !errors.As(err, new(*DamagedError)) && !(at < 0 && errors.Is(err, fs.ErrNotExist)) {
				t.Errorf("%s, cut at byte %d: %v", name, at, err)
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// packed returns a batch of records with the values first, first+1, …
func packed(first, n int) []byte {
	b := kmsg.RecordBatch{
		FirstOffset: int64(first), Magic: 2, LastOffsetDelta: int32(n - 1), FirstTimestamp: 1_700_000_000_000,
		MaxTimestamp: 1_700_000_000_000, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(n),
	}
	for i := range n {
		r := kmsg.Record{OffsetDelta: int32(i), TimestampDelta64: int64(i), Value: fmt.Append(nil, first+i)}
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		b.Records = r.AppendTo(b.Records)
	}
	return sealed(b)
}

func sealed(b kmsg.RecordBatch) []byte {
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	raw := b.AppendTo(nil)
	b.CRC = int32(crc32.Checksum(raw[batchCRC:], castagnoli))
	return b.AppendTo(nil)
}

// A layout writes the folder of a partition.
type layout struct {
	t       *testing.T
	folder  string
	batches map[int64]int
}

func newLayout(t *testing.T) *layout {
	return &layout{t, t.TempDir(), map[int64]int{}}
}

func (l *layout) write(name string, b []byte) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.folder, name), b, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// segment writes a segment of batches of two records, and its index.
func (l *layout) segment(base, batches int) []byte {
	var b []byte
	for i := range batches {
		b = append(b, packed(base+2*i, 2)...)
	}
	l.write(fmt.Sprintf("%d.dat", base), b)
	l.write(fmt.Sprintf("%d.idx", base), make([]byte, indexSize*batches))
	return b
}

// stop writes what an orderly stop writes.
func (l *layout) stop(start, end int64, sizes map[int64]int) {
	s := stop{Version: 1, Start: start, End: end}
	for base, size := range sizes {
		s.Segments = append(s.Segments, struct {
			Base int64 `json:"base_offset"`
			Size int64 `json:"size"`
		}{base, int64(size)})
	}
	slices.SortFunc(s.Segments, func(a, b struct {
		Base int64 `json:"base_offset"`
		Size int64 `json:"size"`
	}) int {
		return int(a.Base - b.Base)
	})
	b, err := json.Marshal(s)
	if err != nil {
		l.t.Fatal(err)
	}
	l.write(stopName, b)
}

// offsets converts the log, and returns which offsets it has then.
func (l *layout) offsets(sparse bool) (got []int64, bounds stream.Bounds, warned string, err error) {
	l.t.Helper()
	log, text := logged(slog.LevelWarn)
	p, err := openPartition(l.folder, partition{topic: "t", sparse: sparse}, log)
	if err != nil {
		return nil, bounds, "", err
	}
	dir := l.t.TempDir()
	c := &conversion{dir: dir, cfg: Config{Log: log, Progress: func(int64, int64) {},
		step: func() error { return nil }}}
	if err := os.Mkdir(filepath.Join(dir, converting), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := c.writeLogs(l.t.Context(), &old{partitions: []*partition{p}}); err != nil {
		return nil, bounds, text.String(), err
	}
	all, bounds := records(l.t, filepath.Join(dir, converting), "t")
	for _, r := range all {
		if string(r.Value) != fmt.Sprint(r.Offset) {
			l.t.Errorf("offset %d has the value %s", r.Offset, r.Value)
		}
		got = append(got, r.Offset)
	}
	return got, bounds, text.String(), nil
}

// What a folder of 0.1.0 may look like, and what becomes of it.
func TestLayouts(t *testing.T) {
	for name, c := range map[string]struct {
		make        func(l *layout)
		sparse      bool
		want        []int64
		first, end  int64
		warned, err string
	}{
		"nothing": {make: func(l *layout) {}},
		"two": {make: func(l *layout) { l.segment(0, 2); l.segment(4, 1) }, want: []int64{0, 1, 2, 3, 4, 5},
			end: 6},
		"from 10 on":  {make: func(l *layout) { l.segment(10, 1) }, want: []int64{10, 11}, first: 10, end: 12},
		"all retired": {make: func(l *layout) { l.stop(7, 7, nil) }, first: 7, end: 7},
		"retired within": {make: func(l *layout) {
			b := l.segment(0, 3)
			l.stop(3, 6, map[int64]int{0: len(b)})
		}, want: []int64{3, 4, 5}, first: 3, end: 6},
		"retired, and then killed": {make: func(l *layout) {
			l.stop(0, 6, map[int64]int{0: 100, 4: 100})
			l.segment(8, 1)
		}, want: []int64{8, 9}, first: 8, end: 10, warned: "segment=4"},
		"gone since the stop": {make: func(l *layout) {
			l.stop(0, 6, map[int64]int{0: 100, 4: 100})
		}, first: 6, end: 6, warned: "segment=4"},
		"cut by 0.1.0": {make: func(l *layout) { l.segment(0, 1); l.segment(6, 1) }, want: []int64{0, 1, 6, 7},
			end: 8, warned: "from=2 to=5"},
		"emptied by 0.1.0": {make: func(l *layout) {
			l.segment(0, 0)
			l.segment(6, 1)
		}, want: []int64{6, 7}, end: 8, warned: "from=0 to=5"},
		"cut by somebody": {make: func(l *layout) {
			l.segment(0, 1)
			l.write("0.idx", make([]byte, 3*indexSize))
			l.segment(6, 1)
		}, err: "its index has 3"},
		"shorter than at the stop": {make: func(l *layout) {
			b := l.segment(0, 2)
			l.stop(0, 6, map[int64]int{0: len(b) + 1})
		}, err: "when hamlet was stopped last"},
		"file missing": {make: func(l *layout) {
			b := l.segment(0, 1)
			l.segment(4, 1)
			l.stop(0, 6, map[int64]int{0: len(b), 2: len(b), 4: len(b)})
		}, err: "the file is missing"},
		"another end": {make: func(l *layout) {
			b := l.segment(0, 1)
			l.stop(0, 3, map[int64]int{0: len(b)})
		}, err: "offset 3, and the segments end at 2"},
		"overlap": {make: func(l *layout) { l.segment(0, 2); l.segment(3, 1) }, err: "the segment before it ends at 4"},
		"jump": {make: func(l *layout) {
			l.write("0.dat", append(packed(0, 2), packed(5, 1)...))
		}, err: "begins at offset 5, not 2"},
		"compacted": {make: func(l *layout) {
			l.write("0.dat", append(packed(0, 2), packed(5, 1)...))
		}, sparse: true, want: []int64{0, 1, 5}, end: 6},
		"torn": {make: func(l *layout) {
			l.write("0.dat", append(packed(0, 2), packed(2, 2)[:70]...))
			l.write("0.idx", make([]byte, indexSize+3))
		}, want: []int64{0, 1}, end: 2, warned: "bytes=70 offset=2"},
		"zeros behind": {make: func(l *layout) {
			l.write("0.dat", append(packed(0, 2), make([]byte, 4096)...))
		}, want: []int64{0, 1}, end: 2, warned: "bytes=4096"},
		"torn in the middle": {make: func(l *layout) {
			l.write("0.dat", slices.Concat(packed(0, 2), packed(2, 2)[:70], packed(4, 2)))
		}, err: "a whole batch follows"},
		"rot at the end": {make: func(l *layout) {
			b := l.segment(0, 2)
			b[len(b)-1] ^= 1
			l.write("0.dat", b)
		}, err: "the index says that they were"},
		"not written, but indexed": {make: func(l *layout) {
			l.segment(0, 1)
			l.write("0.idx", make([]byte, 3*indexSize))
		}, want: []int64{0, 1}, end: 2, warned: "batches=2"},
		"fewer than its offsets": {make: func(l *layout) { // as compaction leaves it
			var b kmsg.RecordBatch
			if err := b.ReadFrom(packed(0, 2)); err != nil {
				t.Fatal(err)
			}
			b.LastOffsetDelta = 4
			l.write("0.dat", append(sealed(b), packed(5, 1)...))
		}, want: []int64{0, 1, 5}, end: 6},
		"fewer at the end": {make: func(l *layout) {
			var b kmsg.RecordBatch
			if err := b.ReadFrom(packed(0, 2)); err != nil {
				t.Fatal(err)
			}
			b.LastOffsetDelta = 4
			l.write("0.dat", sealed(b))
		}, want: []int64{0, 1}, end: 5},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			c.make(l)
			got, bounds, warned, err := l.offsets(c.sparse)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !errors.As(err, new(*DamagedError)) {
					t.Fatalf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := (stream.Bounds{First: c.first, End: c.end}); !slices.Equal(got, c.want) || bounds != want {
				t.Errorf("offsets %v, %+v; want %v, %+v", got, bounds, c.want, want)
			}
			if (warned != "") != (c.warned != "") || !strings.Contains(warned, c.warned) {
				t.Errorf("logged %s, want %s", warned, c.warned)
			}
		})
	}
}

// A record that no log takes is left out, however large, and its neighbours are kept.
func TestLargeRecord(t *testing.T) {
	for _, size := range []int{1 << 20, 3 << 20} {
		b := kmsg.RecordBatch{Magic: 2, LastOffsetDelta: 2, NumRecords: 3}
		for i := range 3 {
			r := kmsg.Record{OffsetDelta: int32(i), Value: fmt.Append(nil, i)}
			if i == 1 {
				r.Value = make([]byte, size)
			}
			body := r.AppendTo(nil)
			r.Length = int32(len(body) - 1)
			b.Records = r.AppendTo(b.Records)
		}
		l := newLayout(t)
		l.write("0.dat", sealed(b))
		got, bounds, warned, err := l.offsets(false)
		if err != nil || !slices.Equal(got, []int64{0, 2}) || bounds.End != 3 || !strings.Contains(warned, "offset=1") {
			t.Errorf("offsets %v, %+v, %v, logged %s", got, bounds, err, warned)
		}
	}
}

// A log of several partitions is refused before anything is written, in words that lead on.
func TestSeveralPartitions(t *testing.T) {
	for _, c := range []struct{ topics, want string }{
		{`{"name":"hamlet.events.m","partitions":4},{"name":"hamlet.order.m","partitions":1}`,
			"order export FILE --model m"},
		{`{"name":"hamlet.events.m","partitions":2}`, "hamlet log merge --from m"},
		{`{"name":"hamlet.order.m","partitions":1}`, "hamlet log import FILE --model m"},
		{`{"name":"hamlet.receipts","partitions":3}`, "this has 3"},
	} {
		dir := golden(t)
		if err := os.WriteFile(filepath.Join(dir, kafkaFolder, "topics.json"),
			[]byte(`{"version":1,"topics":[`+c.topics+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		before := tree(t, dir)
		err := Convert(t.Context(), dir, Config{})
		if !errors.Is(err, state.ErrPartitions) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.topics, err)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Errorf("%s: %s", c.topics, diff)
		}
	}
}

func FuzzBatch(f *testing.F) {
	f.Add(packed(3, 2)[batchHeader:], int16(0), int32(2), int64(1))
	f.Add([]byte("\x1f\x8b\x08\x00"), int16(1), int32(1), int64(0))
	for codec := range int16(5) {
		f.Add([]byte{0, 1, 2, 3}, codec, int32(1), int64(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, attributes int16, count int32, lastDelta int64) {
		batch := batch{first: 5, attributes: attributes, count: count & 0xfff, lastDelta: lastDelta & 0xffff}
		last := int64(4)
		err := batch.records(bytes.NewReader(b), func(r stream.Record) error {
			if r.Offset <= last || r.Offset > 5+batch.lastDelta {
				t.Fatalf("offset %d after %d", r.Offset, last)
			}
			last = r.Offset
			return nil
		})
		if err != nil && !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	dir := golden(f)
	b, err := os.ReadFile(filepath.Join(dir, redisFolder, snapshotName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:60])
	f.Add([]byte("hamletRD\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00s\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x01b"))
	f.Add([]byte("hamletRD\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00z\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x01b\x3f\xf0\x00\x00\x00\x00\x00\x00"))
	path := filepath.Join(f.TempDir(), snapshotName)
	f.Fuzz(func(t *testing.T, b []byte) {
		sum := sumOf(b)
		if err := os.WriteFile(path, append(b[:len(b):len(b)], sum[:]...), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSnapshot(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		models, err := readModels(s, 0, slog.New(slog.DiscardHandler), func(int64) error { return nil })
		if err != nil && !errors.As(err, new(*DamagedError)) && !errors.Is(err,
			state.ErrPartitions) && !strings.Contains(err.Error(), "--redis-db") {
			t.Fatal(err)
		}
		for _, m := range models {
			_, _ = m.what(slog.New(slog.DiscardHandler))
		}
	})
}

// sumOf returns what stands at the end of a snapshot.
func sumOf(b []byte) (sum [snapshotSum]byte) {
	binary.BigEndian.PutUint64(sum[:], xxhash.Sum64(b))
	return sum
}
