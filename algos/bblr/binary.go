package bblr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The bytes of a fitted classifier, version 1. Integers and float64 bits are
// little-endian; there are no more and no fewer bytes than drawn.
//
//	offset  size   field
//	0       4      "hbbl"
//	4       1      version, 1
//	5       1      0 linear, 1 kernel, 2 kernel with standardised rows
//	6       2      zero
//	8       4      D, the numbers of a row
//	12      4      K, the rows kept; 0 for a linear one
//	16      8      w of the mixture
//	24      8      θ
//	32      8      γ
//	40      8      linear: bias; kernel: s²
//
//	linear, then
//	48      8·D    weights
//
//	kernel, then
//	48      8·D    kind 2 alone: centres of the columns
//	…       8·D    kind 2 alone: inverses of their standard deviations
//	…       4·K    places of the rows kept in the sample, rising
//	…       8·K    coefficients
//	…       8·K·D  rows
const (
	magic      = "hbbl"
	version    = 1
	headerSize = 48

	kindLinear, kindKernel, kindScaledKernel = 0, 1, 2
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not a
// classifier of that kind, of a version that this program reads. Take another
// copy, or fit anew.
var ErrFormat = errors.New("not the bytes of a bblr classifier")

func appendHeader(dst []byte, kind byte, d, k int, l Likelihood, last float64) []byte {
	le := binary.LittleEndian
	dst = append(dst, magic...)
	dst = append(dst, version, kind, 0, 0)
	dst = le.AppendUint32(dst, uint32(d))
	dst = le.AppendUint32(dst, uint32(k))
	return appendFloats(dst, l.Mix, l.Theta, l.Gamma, last)
}

func appendFloats(dst []byte, v ...float64) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// AppendBinary appends the bytes of m. The error is always nil.
func (m *Linear) AppendBinary(dst []byte) ([]byte, error) {
	dst = appendHeader(dst, kindLinear, len(m.weights), 0, m.likelihood, m.bias)
	return appendFloats(dst, m.weights...), nil
}

// MarshalBinary returns the bytes of m. The error is always nil.
func (m *Linear) MarshalBinary() ([]byte, error) { return m.AppendBinary(nil) }

// AppendBinary appends the bytes of k. The error is always nil.
func (k *KernelMachine) AppendBinary(dst []byte) ([]byte, error) {
	kind := byte(kindKernel)
	if k.scaling != nil {
		kind = kindScaledKernel
	}
	dst = appendHeader(dst, kind, k.dim, len(k.coef), k.likelihood, k.bandwidth)
	if k.scaling != nil {
		dst = appendFloats(dst, k.scaling.center...)
		dst = appendFloats(dst, k.scaling.inverse...)
	}
	for _, i := range k.support {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(i))
	}
	dst = appendFloats(dst, k.coef...)
	return appendFloats(dst, k.rows...), nil
}

// MarshalBinary returns the bytes of k. The error is always nil.
func (k *KernelMachine) MarshalBinary() ([]byte, error) { return k.AppendBinary(nil) }

// A reader takes a classifier's bytes apart.
type reader struct {
	kind       byte
	dim, kept  int
	likelihood Likelihood
	last       float64 // bias or bandwidth
	rest       []byte
	broken     bool // a number that is not finite was read
}

// open reads and checks the header and the length.
func open(b []byte) (*reader, error) {
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:4]) != magic {
		return nil, fmt.Errorf("read %d bytes: %w", len(b), ErrFormat)
	}
	if b[4] != version {
		return nil, fmt.Errorf("read version %d, this program knows %d: %w", b[4], version, ErrFormat)
	}
	r := &reader{kind: b[5], rest: b[16:]}
	d, k := uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:]))
	size := uint64(headerSize)
	switch r.kind {
	case kindLinear:
		size += 8 * d
	case kindKernel:
		size += 4*k + 8*k + 8*k*d
	case kindScaledKernel:
		size += 16*d + 4*k + 8*k + 8*k*d
	}
	if r.kind > kindScaledKernel || b[6] != 0 || b[7] != 0 || d < 1 || d > MaxColumns || k > MaxKernelRows ||
		r.kind == kindLinear && k != 0 || uint64(len(b)) != size {
		return nil, fmt.Errorf("read %d bytes of kind %d for %d numbers and %d rows: %w", len(b), r.kind, d, k, ErrFormat)
	}
	r.dim, r.kept = int(d), int(k)
	v := r.floats(4)
	r.likelihood, r.last = Likelihood{Mix: v[0], Theta: v[1], Gamma: v[2]}, v[3]
	if l := r.likelihood; !(l.Mix >= 0 && l.Mix <= 1 && l.Theta >= 0 && l.Theta <= 1 && l.Gamma > 0) {
		return nil, fmt.Errorf("read the likelihood %+v: %w", l, ErrFormat)
	}
	return r, nil
}

func (r *reader) floats(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(r.rest[8*i:]))
		if !(math.Abs(v[i]) <= math.MaxFloat64) {
			r.broken = true
		}
	}
	r.rest = r.rest[8*n:]
	return v
}

// close returns what is wrong with the numbers.
func (r *reader) close() error {
	if r.broken {
		return fmt.Errorf("read a number that is not finite: %w", ErrFormat)
	}
	return nil
}

// UnmarshalBinary replaces m, which may be the zero value, by what b holds; it
// keeps no reference to b. An error wraps ErrFormat and leaves m as it was.
func (m *Linear) UnmarshalBinary(b []byte) error {
	r, err := open(b)
	if err != nil {
		return err
	}
	if r.kind != kindLinear {
		return fmt.Errorf("read kind %d for a linear classifier: %w", r.kind, ErrFormat)
	}
	n := Linear{weights: r.floats(r.dim), bias: r.last, likelihood: r.likelihood}
	if err := r.close(); err != nil {
		return err
	}
	*m = n
	return nil
}

// UnmarshalBinary replaces k, which may be the zero value, by what b holds; it
// keeps no reference to b. An error wraps ErrFormat and leaves k as it was.
func (k *KernelMachine) UnmarshalBinary(b []byte) error {
	r, err := open(b)
	if err != nil {
		return err
	}
	if r.kind == kindLinear || !(r.last > 0) {
		return fmt.Errorf("read kind %d with bandwidth %v for a kernel classifier: %w", r.kind, r.last, ErrFormat)
	}
	n := KernelMachine{dim: r.dim, bandwidth: r.last, likelihood: r.likelihood}
	if r.kind == kindScaledKernel {
		n.scaling = &scaling{center: r.floats(r.dim), inverse: r.floats(r.dim)}
	}
	for range r.kept {
		i := int(binary.LittleEndian.Uint32(r.rest))
		if last := len(n.support) - 1; i >= MaxKernelRows || last >= 0 && i <= n.support[last] {
			return fmt.Errorf("read row %d out of order: %w", i, ErrFormat)
		}
		n.support = append(n.support, i)
		r.rest = r.rest[4:]
	}
	n.coef, n.rows = r.floats(r.kept), r.floats(r.kept*r.dim)
	if err := r.close(); err != nil {
		return err
	}
	if slices.Contains(n.coef, 0) || n.scaling != nil && slices.Min(n.scaling.inverse) < 0 {
		return fmt.Errorf("read a row kept for nothing or a negative standard deviation: %w", ErrFormat)
	}
	*k = n
	return nil
}
