package codec

import (
	"encoding"
	"encoding/binary"
	"math"
	"slices"
)

// A Writer appends fields to a slice of bytes. Its methods do nothing after the
// first error.
type Writer struct {
	b   []byte
	err error
}

// NewWriter returns a Writer that appends to dst.
func NewWriter(dst []byte) *Writer { return &Writer{b: dst} }

// Finish returns dst and all that was appended to it. After an error the bytes
// are of no use.
func (w *Writer) Finish() ([]byte, error) { return w.b, w.err }

// Header appends the magic, without a length, and a byte with the version.
func (w *Writer) Header(magic string, version uint8) {
	w.Bytes([]byte(magic))
	w.Uint8(version)
}

// Bytes appends b without a length.
func (w *Writer) Bytes(b []byte) {
	if w.err == nil {
		w.b = append(w.b, b...)
	}
}

// Zeros appends n zero bytes.
func (w *Writer) Zeros(n int) { clear(w.grow(n)) }

// Uint8 appends a byte for each value.
func (w *Writer) Uint8(vs ...uint8) { w.Bytes(vs) }

// Bool appends a byte: 1 for true, 0 for false.
func (w *Writer) Bool(v bool) {
	if v {
		w.Uint8(1)
	} else {
		w.Uint8(0)
	}
}

// Uint16 appends two bytes for each value.
func (w *Writer) Uint16(vs ...uint16) {
	to := w.grow(2 * len(vs))
	for i, v := range vs[:len(to)/2] {
		binary.LittleEndian.PutUint16(to[2*i:], v)
	}
}

// Uint32 appends four bytes for each value.
func (w *Writer) Uint32(vs ...uint32) {
	to := w.grow(4 * len(vs))
	for i, v := range vs[:len(to)/4] {
		binary.LittleEndian.PutUint32(to[4*i:], v)
	}
}

// Uint64 appends eight bytes for each value.
func (w *Writer) Uint64(vs ...uint64) {
	to := w.grow(8 * len(vs))
	for i, v := range vs[:len(to)/8] {
		binary.LittleEndian.PutUint64(to[8*i:], v)
	}
}

// Float32 appends the bits of each value, four bytes.
func (w *Writer) Float32(vs ...float32) {
	to := w.grow(4 * len(vs))
	for i, v := range vs[:len(to)/4] {
		binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(v))
	}
}

// Float64 appends the bits of each value, eight bytes.
func (w *Writer) Float64(vs ...float64) {
	to := w.grow(8 * len(vs))
	for i, v := range vs[:len(to)/8] {
		binary.LittleEndian.PutUint64(to[8*i:], math.Float64bits(v))
	}
}

// Text appends s behind its length, a uint32.
func (w *Writer) Text(s string) {
	w.Uint32(uint32(len(s)))
	copy(w.grow(len(s)), s)
}

// Append appends the bytes of part without a length.
func (w *Writer) Append(part encoding.BinaryAppender) {
	if w.err != nil {
		return
	}
	b, err := part.AppendBinary(w.b)
	if err != nil {
		w.err = err
		return
	}
	w.b = b
}

// Part32 appends the bytes of part behind their length, a uint32.
func (w *Writer) Part32(part encoding.BinaryAppender) {
	at := len(w.b)
	w.Uint32(0)
	w.Append(part)
	if w.err == nil {
		binary.LittleEndian.PutUint32(w.b[at:], uint32(len(w.b)-at-4))
	}
}

// Part64 appends the bytes of part behind their length, a uint64.
func (w *Writer) Part64(part encoding.BinaryAppender) {
	at := len(w.b)
	w.Uint64(0)
	w.Append(part)
	if w.err == nil {
		binary.LittleEndian.PutUint64(w.b[at:], uint64(len(w.b)-at-8))
	}
}

// grow appends n bytes of any value and returns them; none after an error.
func (w *Writer) grow(n int) []byte {
	if w.err != nil {
		return nil
	}
	at := len(w.b)
	w.b = slices.Grow(w.b, n)[:at+n]
	return w.b[at:]
}
