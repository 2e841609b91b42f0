package filelog

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
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
