// Laboratory: the bytes of a kernel classifier.

package bblr

import (
	"slices"

	"hamlet/algos/internal/codec"
)

// AppendBinary appends the bytes of k. The error is always nil.
func (k *KernelMachine) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	h := header{kind: kindKernel, dim: uint32(k.dim), rows: uint32(len(k.coef)), likelihood: k.likelihood, last: k.bandwidth}
	if k.scaling != nil {
		h.kind = kindScaledKernel
	}
	h.write(w)
	if k.scaling != nil {
		w.Float64(k.scaling.center...)
		w.Float64(k.scaling.inverse...)
	}
	for _, i := range k.support {
		w.Uint32(uint32(i))
	}
	w.Float64(k.coef...)
	w.Float64(k.rows...)
	return w.Finish()
}

// UnmarshalBinary replaces k, which may be the zero value, by the classifier in b.
// It keeps no reference to b. An error wraps ErrFormat and leaves k unchanged.
func (k *KernelMachine) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	var h header
	h.read(r)
	if h.kind == kindLinear || !(h.last > 0) {
		r.Fail("kind %d with bandwidth %v for a kernel classifier", h.kind, h.last)
	}
	dim, rows := uint64(h.dim), uint64(h.rows)
	n := KernelMachine{dim: int(dim), bandwidth: h.last, likelihood: h.likelihood}
	if h.kind == kindScaledKernel {
		n.scaling = &scaling{center: r.Finites(dim), inverse: r.Finites(dim)}
	}
	if r.Fits(rows, 4) {
		n.support = make([]int, rows)
	}
	for j := range n.support {
		i := int(r.Uint32())
		if n.support[j] = i; i >= MaxKernelRows || j > 0 && i <= n.support[j-1] {
			r.Fail("row %d out of order", i)
		}
	}
	n.coef, n.rows = r.Finites(rows), r.Finites(rows*dim)
	if slices.Contains(n.coef, 0) {
		r.Fail("a row with the coefficient 0")
	}
	if n.scaling != nil && len(n.scaling.inverse) > 0 && slices.Min(n.scaling.inverse) < 0 {
		r.Fail("a negative standard deviation")
	}
	if err := r.Close(); err != nil {
		return err
	}
	*k = n
	return nil
}
