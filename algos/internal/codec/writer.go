package codec

import (
	"encoding"
	"encoding/binary"
	"math"
	"slices"
)

var le = binary.LittleEndian

// A Writer appends fields to a slice of bytes.
type Writer struct {
	b   []byte
	err error // the first error of a part
}

// NewWriter returns a Writer that appends to dst.
func NewWriter(dst []byte) *Writer { return &Writer{b: dst} }

// Finish returns dst with all that was appended, and the first error.
func (w *Writer) Finish() ([]byte, error) { return w.b, w.err }

// Header appends the magic, without a length, and a byte with the version.
func (w *Writer) Header(magic string, version uint8) {
	w.b = append(append(w.b, magic...), version)
}

// Len returns how many bytes there are.
func (w *Writer) Len() int { return len(w.b) }

// Grow makes room for n more bytes, so that many small appends do not copy again and again what is there.
func (w *Writer) Grow(n int) { w.b = slices.Grow(w.b, n) }

// Bytes appends b without a length.
func (w *Writer) Bytes(b []byte) { w.b = append(w.b, b...) }

// Zeros appends n zero bytes.
func (w *Writer) Zeros(n int) { w.b = append(w.b, make([]byte, n)...) }

// Uint8 appends a byte.
func (w *Writer) Uint8(v uint8) { w.b = append(w.b, v) }

// Bool appends a byte: 1 for true, 0 for false.
func (w *Writer) Bool(v bool) {
	if v {
		w.Uint8(1)
	} else {
		w.Uint8(0)
	}
}

// Uint16 appends two bytes.
func (w *Writer) Uint16(v uint16) { w.b = le.AppendUint16(w.b, v) }

// Uint32 appends four bytes for each value.
func (w *Writer) Uint32(vs ...uint32) {
	for _, v := range vs {
		w.b = le.AppendUint32(w.b, v)
	}
}

// Uint64 appends eight bytes for each value.
func (w *Writer) Uint64(vs ...uint64) {
	for _, v := range vs {
		w.b = le.AppendUint64(w.b, v)
	}
}

// Float32 appends the bits of each value, four bytes.
func (w *Writer) Float32(vs ...float32) {
	for _, v := range vs {
		w.b = le.AppendUint32(w.b, math.Float32bits(v))
	}
}

// Float64 appends the bits of each value, eight bytes.
func (w *Writer) Float64(vs ...float64) {
	for _, v := range vs {
		w.b = le.AppendUint64(w.b, math.Float64bits(v))
	}
}

// Text appends the length of s, a uint32, and s.
func (w *Writer) Text(s string) {
	w.Uint32(uint32(len(s)))
	w.b = append(w.b, s...)
}

// Append appends the bytes of part without a length.
func (w *Writer) Append(part encoding.BinaryAppender) {
	if w.err != nil {
		return
	}
	b, err := part.AppendBinary(w.b)
	if w.err = err; err == nil {
		w.b = b
	}
}

// Part32 appends the length of part's bytes, a uint32, and the bytes.
func (w *Writer) Part32(part encoding.BinaryAppender) {
	w.Uint32(0)
	at := len(w.b)
	w.Append(part)
	le.PutUint32(w.b[at-4:], uint32(len(w.b)-at))
}

// Part64 appends the length of part's bytes, a uint64, and the bytes.
func (w *Writer) Part64(part encoding.BinaryAppender) {
	w.Uint64(0)
	at := len(w.b)
	w.Append(part)
	le.PutUint64(w.b[at-8:], uint64(len(w.b)-at))
}
