package codec

import (
	"encoding"
	"fmt"
	"math"
)

// A Reader takes fields off the front of a slice of bytes. What Bytes, Part32, Part64 and
// Rest return is part of that slice: the caller must not change it. After the first error
// its methods return zero values.
type Reader struct {
	b     []byte // Invariant: the bytes that are left. Only take shortens it.
	err   error  // the first error; only Fail sets it
	cause error
}

// NewReader returns a Reader of b. All its errors wrap cause, unless cause is nil.
func NewReader(b []byte, cause error) *Reader { return &Reader{b: b, cause: cause} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Close returns the first error, or an error if bytes are left.
func (r *Reader) Close() error {
	if len(r.b) > 0 {
		r.Fail("%d bytes too many", len(r.b))
	}
	return r.err
}

// Fail sets the Reader's error, formatted as by fmt.Errorf, unless it already has one.
func (r *Reader) Fail(format string, args ...any) {
	if r.err != nil {
		return
	}
	r.err = fmt.Errorf(format, args...)
	if r.cause != nil {
		r.err = fmt.Errorf("%w: %w", r.err, r.cause)
	}
}

// Len returns the number of bytes that are left; 0 after an error.
func (r *Reader) Len() int {
	if r.err != nil {
		return 0
	}
	return len(r.b)
}

// Fits reports whether n fields of size bytes each are left. If not, it fails. Use it
// before an allocation of n.
func (r *Reader) Fits(n uint64, size int) bool {
	if n > uint64(len(r.b)/size) {
		r.Fail("cut short: %d bytes left, want %d times %d", len(r.b), n, size)
	}
	return r.err == nil
}

// take returns the next n bytes; nil after an error.
func (r *Reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.b) {
		r.Fail("cut short: %d bytes left, want %d", len(r.b), n)
		return nil
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}

// Header reads what [Writer.Header] wrote.
func (r *Reader) Header(magic string, version uint8) {
	if m := r.take(len(magic)); m != nil && string(m) != magic {
		r.Fail("magic %q, want %q", m, magic)
	}
	if v := r.Uint8(); v != version {
		r.Fail("version %d, this program knows %d", v, version)
	}
}

// Zeros reads n bytes that must be zero.
func (r *Reader) Zeros(n int) {
	b := r.take(n)
	for _, v := range b {
		if v != 0 {
			r.Fail("%x where there must be zeros", b)
		}
	}
}

// Bytes returns the next n bytes.
func (r *Reader) Bytes(n uint64) []byte {
	if !r.Fits(n, 1) {
		return nil
	}
	return r.take(int(n))
}

// Rest returns all bytes that are left.
func (r *Reader) Rest() []byte { return r.take(r.Len()) }

// word takes n ≤ 8 bytes. After an error it returns zeros.
func (r *Reader) word(n int) []byte {
	if b := r.take(n); b != nil {
		return b
	}
	return make([]byte, 8)
}

// Uint8 reads a byte.
func (r *Reader) Uint8() uint8 { return r.word(1)[0] }

// Bool reads a byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	v := r.Uint8()
	if v > 1 {
		r.Fail("%d where there must be 0 or 1", v)
	}
	return v == 1
}

// Uint16 reads two bytes.
func (r *Reader) Uint16() uint16 { return le.Uint16(r.word(2)) }

// Uint32 reads four bytes.
func (r *Reader) Uint32() uint32 { return le.Uint32(r.word(4)) }

// Uint64 reads eight bytes.
func (r *Reader) Uint64() uint64 { return le.Uint64(r.word(8)) }

// Float64 reads a float64, which may be NaN or infinite.
func (r *Reader) Float64() float64 { return math.Float64frombits(r.Uint64()) }

// Finite reads a float64 that must be finite.
func (r *Reader) Finite() float64 {
	v := r.Float64()
	if v-v != 0 {
		r.Fail("the number %v, want a finite one", v)
		return 0
	}
	return v
}

// Uint64To reads eight bytes into each dst, in their order.
func (r *Reader) Uint64To(dst ...*uint64) {
	for _, d := range dst {
		*d = r.Uint64()
	}
}

// FiniteTo reads a float64 into each dst, in their order. Each must be finite.
func (r *Reader) FiniteTo(dst ...*float64) {
	for _, d := range dst {
		*d = r.Finite()
	}
}

// Fill reads len(dst) float64 into dst. Each must be finite. An error leaves dst undefined.
func (r *Reader) Fill(dst []float64) {
	if !r.Fits(uint64(len(dst)), 8) {
		return
	}
	b := r.take(8 * len(dst))
	finite := 0.0 // NaN after a number that is not finite
	for i := range dst {
		v := math.Float64frombits(le.Uint64(b[8*i:]))
		dst[i] = v
		finite += v - v
	}
	if finite != 0 {
		r.Fail("a number that is not finite")
	}
}

// Fill32 is Fill for float32.
func (r *Reader) Fill32(dst []float32) {
	if !r.Fits(uint64(len(dst)), 4) {
		return
	}
	b := r.take(4 * len(dst))
	var finite float32
	for i := range dst {
		v := math.Float32frombits(le.Uint32(b[4*i:]))
		dst[i] = v
		finite += v - v
	}
	if finite != 0 {
		r.Fail("a number that is not finite")
	}
}

// Finites reads n float64 into a new slice. Each must be finite. On an error it
// returns nil.
func (r *Reader) Finites(n uint64) []float64 {
	if !r.Fits(n, 8) {
		return nil
	}
	dst := make([]float64, n)
	if r.Fill(dst); r.err != nil {
		return nil
	}
	return dst
}

// Text reads what [Writer.Text] wrote.
func (r *Reader) Text() string { return string(r.Part32()) }

// Part32 reads a length, a uint32, and returns that many bytes.
func (r *Reader) Part32() []byte { return r.Bytes(uint64(r.Uint32())) }

// Part64 is Part32 with a length of type uint64.
func (r *Reader) Part64() []byte { return r.Bytes(r.Uint64()) }

// Unmarshal64 reads a part that [Writer.Part64] wrote.
func (r *Reader) Unmarshal64(part encoding.BinaryUnmarshaler) { r.Unmarshal(r.Part64(), part) }

// Unmarshal reads b, which a method of r returned, into part.
func (r *Reader) Unmarshal(b []byte, part encoding.BinaryUnmarshaler) {
	if r.err != nil {
		return
	}
	if err := part.UnmarshalBinary(b); err != nil {
		r.Fail("%w", err)
	}
}
