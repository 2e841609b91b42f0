// Package disktest has a disk that loses power, fills up, and fails, for tests of what writes files.
package disktest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"hamlet/stream/filelog/disk"
)

const sector = 512

// ErrOff is what every operation returns once the power is off.
var ErrOff = errors.New("the power is off")

// A Disk is a [disk.Folder] in memory that loses power. What was written since the last Sync of a file
// is then there in any of its sectors, in any order, and what was made, renamed and removed since
// the last sync of the folder in part, in order.
type Disk struct {
	sync.Mutex // whoever changes an exported field of a disk in use holds it

	durable map[string]*Inode
	pending []func(map[string]*Inode)
	random  *rand.Rand

	Files      map[string]*Inode
	Left       int                 // operations until the power is off; below 0: it stays on
	Room       int                 // bytes until the disk is full; below 0: it never is
	Syncs      int                 // fsyncs until one fails; below 0: none does
	Unreadable map[string][2]int64 // of a file, bytes from one up to another
}

// An Inode is a file, under whatever names.
type Inode struct {
	Now     []byte
	durable []byte
	dirty   map[int]bool // sectors that differ from durable
	Changed time.Time
}

// New returns an empty disk.
func New(seed uint64) *Disk {
	return &Disk{
		Files: map[string]*Inode{}, durable: map[string]*Inode{}, Left: -1, Room: -1, Syncs: -1,
		random: rand.New(rand.NewPCG(seed, 1)),
	}
}

// Copy returns a disk with the same files.
func (d *Disk) Copy() *Disk {
	d.Lock()
	defer d.Unlock()
	c := New(1)
	for name, i := range d.Files {
		b := slices.Clone(i.Now)
		i := &Inode{Now: b, durable: slices.Clone(b), dirty: map[int]bool{}, Changed: i.Changed}
		c.Files[name], c.durable[name] = i, i
	}
	return c
}

// step counts an operation. The caller holds the lock.
func (d *Disk) step() error {
	if d.Left == 0 {
		return ErrOff
	}
	d.Left--
	return nil
}

// Cut returns the disk as it is when the power comes back.
func (d *Disk) Cut() *Disk {
	d.Lock()
	defer d.Unlock()
	after := New(d.random.Uint64())
	for name, i := range d.durable {
		after.durable[name] = i
	}
	for _, op := range d.pending[:d.random.IntN(len(d.pending)+1)] {
		op(after.durable)
	}
	made := map[*Inode]*Inode{}
	for name, i := range after.durable {
		if made[i] == nil {
			b := slices.Clone(i.durable)
			if grown := len(i.Now) - len(b); grown > 0 && d.random.IntN(2) == 0 {
				b = append(b, make([]byte, d.random.IntN(grown+1))...)
			} else if grown < 0 && d.random.IntN(2) == 0 {
				b = b[:len(i.Now)]
			}
			for s := range i.dirty {
				if d.random.IntN(2) == 0 && s*sector < len(i.Now) {
					copy(b[min(s*sector, len(b)):], i.Now[s*sector:min((s+1)*sector, len(i.Now))])
				}
			}
			made[i] = &Inode{Now: b, durable: slices.Clone(b), dirty: map[int]bool{}, Changed: i.Changed}
		}
		after.Files[name], after.durable[name] = made[i], made[i]
	}
	return after
}

// Flip changes a bit that the medium has kept, of the first file, by name, in which bit says which: its number
// in the bytes, or −1. It reports whether there is one.
func (d *Disk) Flip(bit func(b []byte) int64) bool {
	d.Lock()
	defer d.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		i := d.Files[name]
		if at := bit(i.Now); at >= 0 && at/8 < int64(len(i.durable)) {
			i.Now[at/8] ^= 1 << (at % 8)
			i.durable[at/8] ^= 1 << (at % 8)
			return true
		}
	}
	return false
}

// Create implements [disk.Folder].
func (d *Disk) Create(name string) (disk.File, error) {
	d.Lock()
	defer d.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	if d.Files[name] != nil {
		return nil, fs.ErrExist
	}
	i := &Inode{dirty: map[int]bool{}, Changed: time.Now()}
	d.Files[name] = i
	d.pending = append(d.pending, func(m map[string]*Inode) { m[name] = i })
	return &handle{d, i, name}, nil
}

// Open implements [disk.Folder].
func (d *Disk) Open(name string) (disk.File, error) {
	d.Lock()
	defer d.Unlock()
	i := d.Files[name]
	if i == nil {
		return nil, fs.ErrNotExist
	}
	return &handle{d, i, name}, nil
}

// Names implements [disk.Folder].
func (d *Disk) Names() (all []string, err error) {
	d.Lock()
	defer d.Unlock()
	for name := range d.Files {
		all = append(all, name)
	}
	return all, nil
}

// Rename implements [disk.Folder].
func (d *Disk) Rename(from, to string) error {
	d.Lock()
	defer d.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	i := d.Files[from]
	if i == nil {
		return fs.ErrNotExist
	}
	move := func(m map[string]*Inode) {
		delete(m, from)
		m[to] = i
	}
	move(d.Files)
	d.pending = append(d.pending, move)
	return nil
}

// Remove implements [disk.Folder].
func (d *Disk) Remove(name string) error {
	d.Lock()
	defer d.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	if d.Files[name] == nil {
		return fs.ErrNotExist
	}
	if d.Room >= 0 {
		d.Room += len(d.Files[name].Now)
	}
	delete(d.Files, name)
	d.pending = append(d.pending, func(m map[string]*Inode) { delete(m, name) })
	return nil
}

// Sync implements [disk.Folder].
func (d *Disk) Sync() error {
	d.Lock()
	defer d.Unlock()
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
	d    *Disk
	i    *Inode
	name string
}

func (h *handle) ReadAt(b []byte, at int64) (int, error) {
	h.d.Lock()
	defer h.d.Unlock()
	if bad, ok := h.d.Unreadable[h.name]; ok && at < bad[1] && at+int64(len(b)) > bad[0] {
		return 0, syscall.EIO
	}
	if at >= int64(len(h.i.Now)) {
		return 0, io.EOF
	}
	n := copy(b, h.i.Now[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	h.d.Lock()
	defer h.d.Unlock()
	if err := h.d.step(); err != nil {
		return 0, err
	}
	grown := max(int(at)+len(b)-len(h.i.Now), 0)
	if h.d.Room >= 0 && grown > h.d.Room {
		n := h.d.Room
		h.put(b[:n], at)
		h.d.Room = 0
		return n, syscall.ENOSPC
	}
	if h.d.Room >= 0 {
		h.d.Room -= grown
	}
	h.put(b, at)
	return len(b), nil
}

func (h *handle) put(b []byte, at int64) {
	if need := int(at) + len(b) - len(h.i.Now); need > 0 {
		h.i.Now = append(h.i.Now, make([]byte, need)...)
	}
	copy(h.i.Now[at:], b)
	for s := int(at) / sector; s*sector < int(at)+len(b); s++ {
		h.i.dirty[s] = true
	}
	h.i.Changed = time.Now()
}

func (h *handle) Truncate(size int64) error {
	h.d.Lock()
	defer h.d.Unlock()
	if err := h.d.step(); err != nil {
		return err
	}
	if h.d.Room >= 0 {
		h.d.Room += max(len(h.i.Now)-int(size), 0)
	}
	h.i.Now = h.i.Now[:min(int(size), len(h.i.Now))]
	return nil
}

func (h *handle) Sync() error {
	h.d.Lock()
	defer h.d.Unlock()
	if err := h.d.step(); err != nil {
		return err
	}
	if h.d.Syncs == 0 {
		h.d.Syncs = -1
		h.i.dirty = map[int]bool{} // the next one knows nothing of what was lost
		return syscall.EIO
	}
	h.d.Syncs--
	// Only what is dirty is written: what an fsync has lost before is not.
	durable := make([]byte, len(h.i.Now))
	copy(durable, h.i.durable)
	for s := range h.i.dirty {
		if at := s * sector; at < len(durable) {
			copy(durable[at:], h.i.Now[at:min(at+sector, len(durable))])
		}
	}
	h.i.durable, h.i.dirty = durable, map[int]bool{}
	return nil
}

func (h *handle) Size() (int64, error) {
	h.d.Lock()
	defer h.d.Unlock()
	return int64(len(h.i.Now)), nil
}

func (h *handle) Changed() (time.Time, error) {
	h.d.Lock()
	defer h.d.Unlock()
	return h.i.Changed, nil
}

func (h *handle) Close() error { return nil }
