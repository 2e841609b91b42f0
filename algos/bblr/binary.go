package bblr

import (
	"errors"

	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/sla"
)

// The bytes of a Linear, version 1. Integers and float64 bits are little-endian. No bytes
// follow.
//
//	offset  size  field
//	0       4     "hbbl"
//	4       1     version, 1
//	5       3     zero
//	8       4     D, the numbers of a row
//	12      4     zero
//	16      8     w of the mixture
//	24      8     θ
//	32      8     γ
//	40      8     bias
//	48      8·D   weights
const (
	magic   = "hbbl"
	version = 1
)

// ErrFormat is wrapped by every error of UnmarshalBinary: the bytes are not a
// classifier in a known version. Use another copy, or fit again.
var ErrFormat = errors.New("not the bytes of a bblr classifier")

// AppendBinary appends the bytes of m. The error is always nil.
func (m *Linear) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Header(magic, version)
	w.Zeros(3)
	w.Uint32(uint32(len(m.weights)))
	w.Zeros(4)
	w.Float64(m.likelihood.Mix, m.likelihood.Theta, m.likelihood.Gamma, m.bias)
	w.Float64(m.weights...)
	return w.Finish()
}

// UnmarshalBinary replaces m, which may be the zero value, by the classifier in b.
// It keeps no reference to b. An error wraps ErrFormat and leaves m unchanged.
func (m *Linear) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	r.Header(magic, version)
	r.Zeros(3)
	dim := r.Uint32()
	r.Zeros(4)
	var n Linear
	l := &n.likelihood
	r.FiniteTo(&l.Mix, &l.Theta, &l.Gamma, &n.bias)
	if dim < 1 || dim > sla.MaxColumns {
		r.Fail("%d numbers", dim)
	}
	if !(l.Mix >= 0 && l.Mix <= 1 && l.Theta >= 0 && l.Theta <= 1 && l.Gamma > 0) {
		r.Fail("the likelihood %v, %v, %v", l.Mix, l.Theta, l.Gamma)
	}
	n.weights = r.Finites(uint64(dim))
	if err := r.Close(); err != nil {
		return err
	}
	*m = n
	return nil
}
