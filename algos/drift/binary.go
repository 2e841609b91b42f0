package drift

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not an
// alarm of a version that this program reads. Take another copy.
var ErrFormat = errors.New("not the bytes of an alarm")

const (
	version    = 1
	headerSize = 8

	// mostSeen bounds counts of events: no stream has 2⁵³, and sums of two, or one
	// more, stay far from 2⁶⁴.
	mostSeen = 1 << 53
)

// A writer appends the fields of an alarm, little-endian, after its header: four
// bytes of magic, the version, whether it is raised, two zeros.
type writer struct{ b []byte }

func newWriter(dst []byte, magic string, raised bool) *writer {
	flag := byte(0)
	if raised {
		flag = 1
	}
	return &writer{append(append(dst, magic...), version, flag, 0, 0)}
}

func (w *writer) integers(vs ...uint64) {
	for _, v := range vs {
		w.b = binary.LittleEndian.AppendUint64(w.b, v)
	}
}

func (w *writer) floats(vs ...float64) {
	for _, v := range vs {
		w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v))
	}
}

func (w *writer) text(s string) {
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(s)))
	w.b = append(w.b, s...)
}

// A reader takes them apart again. After the first error, which it keeps, all
// reads yield zeros.
type reader struct {
	b   []byte // what is left
	err error
}

func newReader(b []byte, magic string, raised *bool) *reader {
	r := &reader{b: b}
	switch h := r.take(headerSize); {
	case r.err != nil:
	case string(h[:4]) != magic:
		r.fail("magic %q, want %q", h[:4], magic)
	case h[4] != version:
		r.fail("version %d, this program knows %d", h[4], version)
	case h[5] > 1 || h[6]|h[7] != 0:
		r.fail("%x where version 1 has a flag and zeros", h[5:8])
	default:
		*raised = h[5] == 1
	}
	return r
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrFormat)
	}
}

// take returns the next n bytes, or nil.
func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.b) {
		r.fail("cut short: %d bytes left, want %d", len(r.b), n)
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) integers(dst ...*uint64) {
	for _, d := range dst {
		if b := r.take(8); b != nil {
			*d = binary.LittleEndian.Uint64(b)
		}
	}
}

// spans reads numbers of events.
func (r *reader) spans(dst ...*int) {
	for _, d := range dst {
		var v uint64
		r.integers(&v)
		if v > mostEvents {
			r.fail("a span of %d events", v)
			return
		}
		*d = int(v)
	}
}

// floats reads finite numbers.
func (r *reader) floats(dst ...*float64) {
	for _, d := range dst {
		b := r.take(8)
		if b == nil {
			return
		}
		v := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if !(math.Abs(v) <= math.MaxFloat64) {
			r.fail("the number %v", v)
			return
		}
		*d = v
	}
}

func (r *reader) text() string {
	b := r.take(4)
	if b == nil {
		return ""
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(r.b)) {
		r.fail("cut short: %d bytes left, want %d", len(r.b), n)
		return ""
	}
	return string(r.take(int(n)))
}

// close returns the first error, or one if bytes are left.
func (r *reader) close() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	return r.err
}
