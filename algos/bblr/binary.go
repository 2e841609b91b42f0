package bblr

import (
	"errors"

	"hamlet/algos/internal/codec"
)

// The bytes of a fitted classifier, version 1. Integers and float64 bits are
// little-endian. No bytes follow.
//
//	offset  size   field
//	0       4      "hbbl"
//	4       1      version, 1
//	5       1      0 linear, 1 kernel, 2 kernel with standardised rows
//	6       2      zero
//	8       4      D, the numbers of a row
//	12      4      K, the number of support rows; 0 if linear
//	16      8      w of the mixture
//	24      8      θ
//	32      8      γ
//	40      8      linear: bias; kernel: s²
//
//	linear, then
//	48      8·D    weights
//
//	kernel, then
//	48      8·D    only kind 2: centres of the columns
//	…       8·D    only kind 2: inverses of their standard deviations
//	…       4·K    sample indices of the support rows, ascending
//	…       8·K    coefficients
//	…       8·K·D  support rows
const (
	magic      = "hbbl"
	version    = 1
	headerSize = 48

	kindLinear, kindKernel, kindScaledKernel = 0, 1, 2
)

// ErrFormat is wrapped by every error of UnmarshalBinary: the bytes are not a
// classifier of this kind in a known version. Use another copy, or fit again.
var ErrFormat = errors.New("not the bytes of a bblr classifier")

// A header is the fixed start of every classifier's bytes.
type header struct {
	kind       byte
	dim, rows  uint32
	likelihood Likelihood
	last       float64 // bias or bandwidth
}

func (h *header) write(w *codec.Writer) {
	w.Header(magic, version)
	w.Uint8(h.kind)
	w.Zeros(2)
	w.Uint32(h.dim, h.rows)
	w.Float64(h.likelihood.Mix, h.likelihood.Theta, h.likelihood.Gamma, h.last)
}

func (h *header) read(r *codec.Reader) {
	r.Header(magic, version)
	h.kind = r.Uint8()
	r.Zeros(2)
	h.dim, h.rows = r.Uint32(), r.Uint32()
	l := &h.likelihood
	r.FiniteTo(&l.Mix, &l.Theta, &l.Gamma, &h.last)
	if h.kind > kindScaledKernel || h.dim < 1 || h.dim > MaxColumns || h.rows > MaxKernelRows {
		r.Fail("kind %d for %d numbers and %d rows", h.kind, h.dim, h.rows)
	}
	if !(l.Mix >= 0 && l.Mix <= 1 && l.Theta >= 0 && l.Theta <= 1 && l.Gamma > 0) {
		r.Fail("the likelihood %v, %v, %v", l.Mix, l.Theta, l.Gamma)
	}
}

// AppendBinary appends the bytes of m. The error is always nil.
func (m *Linear) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	h := header{kind: kindLinear, dim: uint32(len(m.weights)), likelihood: m.likelihood, last: m.bias}
	h.write(w)
	w.Float64(m.weights...)
	return w.Finish()
}

// UnmarshalBinary replaces m, which may be the zero value, by the classifier in b.
// It keeps no reference to b. An error wraps ErrFormat and leaves m unchanged.
func (m *Linear) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	var h header
	h.read(r)
	if h.kind != kindLinear || h.rows != 0 {
		r.Fail("kind %d with %d rows for a linear classifier", h.kind, h.rows)
	}
	n := Linear{weights: r.Finites(uint64(h.dim)), bias: h.last, likelihood: h.likelihood}
	if err := r.Close(); err != nil {
		return err
	}
	*m = n
	return nil
}
