package viboost

import (
	"errors"

	"hamlet/algos/boost"
	"hamlet/algos/internal/codec"
)

// The bytes of an Ensemble, version 1, little endian: exactly 48 + 20·T for T terms.
//
//	offset   size  field
//	0        4     "hvib"
//	4        1     version, 1
//	5        3     zero
//	8        4     D
//	12       4     T
//	16       16    ω₁, ω₂
//	32       16    η₁, η₂
//	48+20·t  4     feature of term t
//	52+20·t  8     threshold
//	60+20·t  8     α
const (
	magic    = "hvib"
	version  = 1
	termSize = 20
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are damaged or of
// another version.
var ErrFormat = errors.New("not the bytes of a viboost ensemble")

// AppendBinary appends the bytes of e. The error is always nil.
func (e *Ensemble) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Header(magic, version)
	w.Zeros(3)
	w.Uint32(uint32(e.dim), uint32(len(e.terms)))
	w.Float64(e.omega[0], e.omega[1], e.eta[0], e.eta[1])
	for _, t := range e.terms {
		w.Uint32(uint32(t.Stump.Feature))
		w.Float64(t.Stump.Threshold, t.Alpha)
	}
	return w.Finish()
}

// UnmarshalBinary replaces e, which may be the zero value, by the ensemble in b. It does
// not retain b. The error wraps ErrFormat, and e is unchanged, if b has another version, a
// wrong length, a feature ≥ D, an ω or η that is not positive, or a number that is not
// finite.
func (e *Ensemble) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	r.Header(magic, version)
	r.Zeros(3)
	dim, terms := r.Uint32(), r.Uint32()
	if dim == 0 || terms > boost.MaxRounds {
		r.Fail("%d inputs and %d terms", dim, terms)
	}
	q := Ensemble{dim: int(dim)}
	r.FiniteTo(&q.omega[0], &q.omega[1], &q.eta[0], &q.eta[1])
	if min(q.omega[0], q.omega[1], q.eta[0], q.eta[1]) <= 0 {
		r.Fail("ω %v and η %v, which must be positive", q.omega, q.eta)
	}
	if r.Fits(uint64(terms), termSize) {
		q.terms = make([]Term, terms)
	}
	for i := range q.terms {
		feature := r.Uint32()
		if feature >= dim {
			r.Fail("a stump of input %d of %d", feature, dim)
		}
		q.terms[i] = Term{Stump: boost.Stump{Feature: int(feature), Threshold: r.Finite(), Polarity: 1}, Alpha: r.Finite()}
	}
	if err := r.Close(); err != nil {
		return err
	}
	*e = q
	return nil
}
