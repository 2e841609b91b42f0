package filelog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"hamlet/stream"
)

const sector = 512

var errCut = errors.New("the power is off")

// A disk is a folder in memory that loses power. What was written since the last Sync of a file
// is then there in any of its sectors, in any order, and what was made, renamed and removed since
// the last sync of the folder in part, in order.
type disk struct {
	mu      sync.Mutex
	files   map[string]*inode
	durable map[string]*inode
	pending []func(map[string]*inode)
	left    int // operations until the power is off; below 0: it stays on
	room    int // bytes until the disk is full; below 0: it never is
	syncs   int // fsyncs until one fails; below 0: none does
	random  *rand.Rand

	unreadable map[string][2]int64 // of a file, bytes from one up to another
}

type inode struct {
	now, durable []byte
	dirty        map[int]bool // sectors that differ from durable
	changed      time.Time
}

func newDisk(seed uint64) *disk {
	return &disk{files: map[string]*inode{}, durable: map[string]*inode{}, left: -1, room: -1, syncs: -1, random: rand.New(rand.NewPCG(seed, 1))}
}

// step counts an operation. The caller holds mu.
func (d *disk) step() error {
	if d.left == 0 {
		return errCut
	}
	d.left--
	return nil
}

// cut is the disk as it is when the power comes back.
func (d *disk) cut() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk(d.random.Uint64())
	for name, i := range d.durable {
		after.durable[name] = i
	}
	for _, op := range d.pending[:d.random.IntN(len(d.pending)+1)] {
		op(after.durable)
	}
	made := map[*inode]*inode{}
	for name, i := range after.durable {
		if made[i] == nil {
			b := slices.Clone(i.durable)
			if grown := len(i.now) - len(b); grown > 0 && d.random.IntN(2) == 0 {
				b = append(b, make([]byte, d.random.IntN(grown+1))...)
			} else if grown < 0 && d.random.IntN(2) == 0 {
				b = b[:len(i.now)]
			}
			for s := range i.dirty {
				if d.random.IntN(2) == 0 && s*sector < len(i.now) {
					copy(b[min(s*sector, len(b)):], i.now[s*sector:min((s+1)*sector, len(i.now))])
				}
			}
			made[i] = &inode{now: b, durable: slices.Clone(b), dirty: map[int]bool{}, changed: i.changed}
		}
		after.files[name], after.durable[name] = made[i], made[i]
	}
	return after
}

func (d *disk) create(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	if d.files[name] != nil {
		return nil, fs.ErrExist
	}
	i := &inode{dirty: map[int]bool{}, changed: time.Now()}
	d.files[name] = i
	d.pending = append(d.pending, func(m map[string]*inode) { m[name] = i })
	return &handle{d, i, name}, nil
}

func (d *disk) open(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.files[name]
	if i == nil {
		return nil, fs.ErrNotExist
	}
	return &handle{d, i, name}, nil
}

func (d *disk) names() (all []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.files {
		all = append(all, name)
	}
	return all, nil
}

func (d *disk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	i := d.files[from]
	if i == nil {
		return fs.ErrNotExist
	}
	move := func(m map[string]*inode) {
		delete(m, from)
		m[to] = i
	}
	move(d.files)
	d.pending = append(d.pending, move)
	return nil
}

func (d *disk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	if d.files[name] == nil {
		return fs.ErrNotExist
	}
	if d.room >= 0 {
		d.room += len(d.files[name].now)
	}
	delete(d.files, name)
	d.pending = append(d.pending, func(m map[string]*inode) { delete(m, name) })
	return nil
}

func (d *disk) sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	for _, op := range d.pending {
		op(d.durable)
	}
	d.pending = nil
	return nil
}

// A handle is an open file.
type handle struct {
	d    *disk
	i    *inode
	name string
}

func (h *handle) ReadAt(b []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if bad, ok := h.d.unreadable[h.name]; ok && at < bad[1] && at+int64(len(b)) > bad[0] {
		return 0, syscall.EIO
	}
	if at >= int64(len(h.i.now)) {
		return 0, io.EOF
	}
	n := copy(b, h.i.now[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.step(); err != nil {
		return 0, err
	}
	grown := max(int(at)+len(b)-len(h.i.now), 0)
	if h.d.room >= 0 && grown > h.d.room {
		n := h.d.room
		h.put(b[:n], at)
		h.d.room = 0
		return n, syscall.ENOSPC
	}
	if h.d.room >= 0 {
		h.d.room -= grown
	}
	h.put(b, at)
	return len(b), nil
}

func (h *handle) put(b []byte, at int64) {
	if need := int(at) + len(b) - len(h.i.now); need > 0 {
		h.i.now = append(h.i.now, make([]byte, need)...)
	}
	copy(h.i.now[at:], b)
	for s := int(at) / sector; s*sector < int(at)+len(b); s++ {
		h.i.dirty[s] = true
	}
	h.i.changed = time.Now()
}

func (h *handle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.step(); err != nil {
		return err
	}
	if h.d.room >= 0 {
		h.d.room += max(len(h.i.now)-int(size), 0)
	}
	h.i.now = h.i.now[:min(int(size), len(h.i.now))]
	return nil
}

func (h *handle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.step(); err != nil {
		return err
	}
	if h.d.syncs == 0 {
		h.d.syncs = -1
		h.i.dirty = map[int]bool{} // the next one knows nothing of what was lost
		return syscall.EIO
	}
	h.d.syncs--
	// Only what is dirty is written: what an fsync has lost before is not.
	durable := make([]byte, len(h.i.now))
	copy(durable, h.i.durable)
	for s := range h.i.dirty {
		if at := s * sector; at < len(durable) {
			copy(durable[at:], h.i.now[at:min(at+sector, len(durable))])
		}
	}
	h.i.durable, h.i.dirty = durable, map[int]bool{}
	return nil
}

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return int64(len(h.i.now)), nil
}

func (h *handle) Changed() (time.Time, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return h.i.changed, nil
}

func (h *handle) Close() error { return nil }

// The power fails at every operation of the disk in turn, and again and again after it. What was
// acknowledged is there, under its offset, and nothing that nobody appended.
func TestPowerCuts(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 5
	}
	torn, kept := 0, 0
	marks := []time.Duration{0, time.Microsecond} // seldom, and after nearly each group
	for seed := range seeds {
		for left := 0; ; left++ {
			d := newDisk(uint64(seed))
			random := rand.New(rand.NewPCG(uint64(seed), uint64(left)))
			var acknowledged, given []string // values by offset
			d.left = left
			whole := false
			for range 3 { // cuts
				l, err := open(d, "", Options{SegmentBytes: 1500, markAfter: marks[seed%2]})
				for err == nil && !whole {
					var records []stream.Record
					for range 1 + random.IntN(4) {
						value := fmt.Sprintf("%d.%d.%d", len(acknowledged), len(given), random.IntN(1<<30))
						given = append(given, value)
						records = append(records, stream.Record{Value: append([]byte(value+" "), make([]byte, random.IntN(700))...)})
					}
					b, _ := l.Bounds(context.Background())
					if err = l.Append(context.Background(), records...); err != nil {
						break
					}
					for len(acknowledged) < int(b.End) { // what was not acknowledged, and is there
						acknowledged = append(acknowledged, "")
						kept++
					}
					for _, r := range records {
						value, _, _ := cutAtSpace(r.Value)
						acknowledged = append(acknowledged, value)
					}
					if random.IntN(4) == 0 {
						_, err = l.Retain(time.Now().Add(time.Hour), 0, int64(random.IntN(len(acknowledged))))
					}
					whole = len(given) > 60
				}
				if err != nil && !errors.Is(err, errCut) {
					t.Fatalf("seed %d, power off after %d: %v", seed, left, err)
				}
				if l != nil {
					_ = l.Close()
				}
				if whole {
					break
				}
				if random.IntN(3) > 0 { // else the program was killed, and the disk lost nothing
					d = d.cut()
				}
				d.left = random.IntN(left + 1)
			}
			d = d.cut()
			d.left = -1
			l, err := open(d, "", Options{SegmentBytes: 1500})
			if err != nil {
				t.Fatalf("seed %d, power off after %d: %v", seed, left, err)
			}
			b, _ := l.Bounds(t.Context())
			records, err := all(l, b.First)
			if err != nil {
				t.Fatalf("seed %d, power off after %d: %v", seed, left, err)
			}
			if damaged, err := l.Verify(t.Context()); err != nil || len(damaged) > 0 {
				t.Fatalf("seed %d, power off after %d: damaged %v, %v", seed, left, damaged, err)
			}
			if b.End < int64(len(acknowledged)) {
				t.Fatalf("seed %d, power off after %d: the log ends at %d, and %d were acknowledged", seed, left, b.End, len(acknowledged))
			}
			for i, r := range records {
				value, _, _ := cutAtSpace(r.Value)
				if r.Offset != b.First+int64(i) || !slices.Contains(given, value) ||
					r.Offset < int64(len(acknowledged)) && acknowledged[r.Offset] != "" && acknowledged[r.Offset] != value {
					t.Fatalf("seed %d, power off after %d: at %d is %q", seed, left, r.Offset, value)
				}
			}
			for name := range d.files {
				if len(name) > 5 && name[:5] == "torn-" {
					torn++
				}
			}
			_ = l.Close()
			if whole {
				break
			}
		}
	}
	if torn == 0 || kept == 0 {
		t.Errorf("%d writes were cut off, %d records were kept that nobody was told of: the test misses its point", torn, kept)
	}
	t.Logf("%d writes were cut off, %d records were kept that nobody was told of", torn, kept)
}

func cutAtSpace(b []byte) (before string, after []byte, found bool) {
	for i, c := range b {
		if c == ' ' {
			return string(b[:i]), b[i+1:], true
		}
	}
	return string(b), nil, false
}

// A full disk refuses records, and takes them again once there is room. Nothing is lost or there in
// part.
func TestFullDisk(t *testing.T) {
	d := newDisk(1)
	l, err := open(d, "", Options{SegmentBytes: 1500})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n, refused := 0, 0
	for i := range 300 {
		switch {
		case i%30 == 10:
			d.mu.Lock()
			d.room = i * 7 % 900
			d.mu.Unlock()
		case i%30 == 25:
			d.mu.Lock()
			d.room = -1
			d.mu.Unlock()
		}
		err := l.Append(t.Context(), numbered(n, 1, 100+i%500)...)
		switch {
		case errors.Is(err, stream.ErrFull):
			refused++
		case err != nil:
			t.Fatal(err)
		default:
			n++
		}
		records, err := all(l, 0)
		if err != nil || len(records) != n {
			t.Fatalf("after %d: %d records of %d, %v", i, len(records), n, err)
		}
	}
	if refused < 50 || n < 150 {
		t.Errorf("%d were refused and %d taken", refused, n)
	}
	d = d.cut()
	again, err := open(d, "", Options{SegmentBytes: 1500})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if records, err := all(again, 0); err != nil || len(records) != n {
		t.Errorf("opened again: %d records of %d, %v", len(records), n, err)
	}
}

// Retention makes room on a disk that has none: it needs none first. It goes on where it was if what it
// freed was taken, and after the power has failed anywhere in it.
func TestRetainOnAFullDisk(t *testing.T) {
	filled := func(t *testing.T) (*disk, *Log) {
		d := newDisk(1)
		l, err := open(d, "", Options{SegmentBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			add(t, l, numbered(10*i, 10, 30)...)
		}
		d.mu.Lock()
		d.room = 0
		d.mu.Unlock()
		return d, l
	}
	later := time.Now().Add(time.Hour)
	d, l := filled(t)
	if err := l.Append(t.Context(), numbered(50, 1, 30)...); !errors.Is(err, stream.ErrFull) {
		t.Fatal(err)
	}
	if first, err := l.Retain(later, 0, 29); first != 20 || err != nil {
		t.Fatalf("the log begins at %d, %v", first, err)
	}
	add(t, l, numbered(50, 1, 30)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = reopened(t, d)
	if records, err := all(l, 20); len(records) != 31 || err != nil {
		t.Errorf("%d records, %v", len(records), err)
	}
	if damaged, err := l.Verify(t.Context()); len(damaged) > 0 || err != nil {
		t.Errorf("%v, %v", damaged, err)
	}

	for left := range 12 { // operations until the power is off
		d, l := filled(t)
		d.mu.Lock()
		d.left = left
		d.mu.Unlock()
		_, failed := l.Retain(later, 0, 29)
		_ = l.Close()
		d = d.cut()
		l = reopened(t, d)
		first, err := l.Retain(later, 0, 29)
		if first != 20 || err != nil {
			t.Fatalf("cut after %d operations (%v): the log begins at %d, %v", left, failed, first, err)
		}
		if records, err := all(l, 20); len(records) != 30 || err != nil {
			t.Errorf("cut after %d operations: %d records, %v", left, len(records), err)
		}
	}
}

// Another program takes what a deletion frees. The log begins with what is left, and says so once it can.
func TestRetainWhereNoRoomIsLeft(t *testing.T) {
	d := newDisk(1)
	l, err := open(&greedy{disk: d}, "", Options{SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 5 {
		add(t, l, numbered(10*i, 10, 30)...)
	}
	taken := l.folder.(*greedy)
	d.mu.Lock()
	d.room = 0
	d.mu.Unlock()
	later := time.Now().Add(time.Hour)
	taken.takes = 10
	first, err := l.Retain(later, 0, 29)
	if first != 20 || !full(err) {
		t.Errorf("the log begins at %d, %v", first, err)
	}
	if records, err := all(l, first); len(records) != 30 || err != nil {
		t.Errorf("%d records, %v", len(records), err)
	}
	d.mu.Lock()
	d.room = -1
	d.mu.Unlock()
	taken.takes = 0
	if first, err := l.Retain(time.Time{}, 0, 29); first != 20 || err != nil {
		t.Errorf("with room again: the log begins at %d, %v", first, err)
	}
	again, err := open(d, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if b, err := again.Bounds(t.Context()); b.First != 20 || err != nil {
		t.Errorf("opened again: %+v, %v", b, err)
	}
}

// A greedy disk gives what is freed to somebody else, some times.
type greedy struct {
	*disk
	takes int
}

func (g *greedy) remove(name string) error {
	err := g.disk.remove(name)
	if g.takes--; g.takes >= 0 && err == nil {
		g.mu.Lock()
		g.room = 0
		g.mu.Unlock()
	}
	return err
}

// After an fsync that failed, only what was acknowledged is in the log, and appends go on over
// another descriptor.
func TestFailedSync(t *testing.T) {
	d := newDisk(2)
	l, err := open(d, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	add(t, l, numbered(0, 5, 100)...)
	d.mu.Lock()
	d.syncs = 0
	d.mu.Unlock()
	if err := l.Append(t.Context(), numbered(5, 5, 2000)...); !errors.Is(err, syscall.EIO) {
		t.Errorf("an fsync failed: %v", err)
	}
	d.mu.Lock()
	there := len(d.files[segmentName(0)].now)
	d.mu.Unlock()
	if size := l.sizeOf(0); int64(there) != size {
		t.Errorf("the file has %d bytes, and %d were acknowledged", there, size)
	}
	add(t, l, numbered(10, 5, 100)...)
	for _, l := range []*Log{l, reopened(t, d.cut())} {
		records, err := all(l, 0)
		if err != nil || len(records) != 10 || string(records[5].Value) != string(numbered(10, 1, 100)[0].Value) {
			t.Errorf("%d records, %v", len(records), err)
		}
	}
}

func reopened(t *testing.T, d *disk) *Log {
	t.Helper()
	l, err := open(d, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
