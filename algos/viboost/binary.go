package viboost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"hamlet/algos/boost"
)

// The bytes of an Ensemble, version 1. Integers and float64 bits are
// little-endian; T terms make 48 + 20·T bytes, no more and no less.
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
	magic      = "hvib"
	version    = 1
	headerSize = 48
	termSize   = 20
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not an
// ensemble of a version that this program reads. Take another copy.
var ErrFormat = errors.New("not the bytes of a viboost ensemble")

// AppendBinary appends the bytes of e. The error is always nil.
func (e *Ensemble) AppendBinary(dst []byte) ([]byte, error) {
	le := binary.LittleEndian
	dst = append(dst, magic...)
	dst = append(dst, version, 0, 0, 0)
	dst = le.AppendUint32(dst, uint32(e.dim))
	dst = le.AppendUint32(dst, uint32(len(e.terms)))
	for _, v := range [...]float64{e.omega[0], e.omega[1], e.eta[0], e.eta[1]} {
		dst = le.AppendUint64(dst, math.Float64bits(v))
	}
	for _, t := range e.terms {
		dst = le.AppendUint32(dst, uint32(t.Stump.Feature))
		dst = le.AppendUint64(dst, math.Float64bits(t.Stump.Threshold))
		dst = le.AppendUint64(dst, math.Float64bits(t.Alpha))
	}
	return dst, nil
}

// MarshalBinary returns the bytes of e. The error is always nil.
func (e *Ensemble) MarshalBinary() ([]byte, error) {
	return e.AppendBinary(make([]byte, 0, headerSize+termSize*len(e.terms)))
}

// UnmarshalBinary replaces e, which may be the zero value, by what b holds; it
// keeps no reference to b. If b is of another version, cut short, too long, or
// holds what no ensemble can (a feature beyond D, an η that is not positive, a
// number that is not finite), the error wraps ErrFormat and e is as before.
func (e *Ensemble) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:4]) != magic {
		return fmt.Errorf("read %d bytes: %w", len(b), ErrFormat)
	}
	if b[4] != version {
		return fmt.Errorf("read version %d, this program knows %d: %w", b[4], version, ErrFormat)
	}
	if b[5]|b[6]|b[7] != 0 {
		return fmt.Errorf("read %x where version 1 has zeros: %w", b[5:8], ErrFormat)
	}
	dim, terms := le.Uint32(b[8:]), le.Uint32(b[12:])
	if dim == 0 || terms > boost.MaxRounds || uint64(len(b)) != headerSize+termSize*uint64(terms) {
		return fmt.Errorf("read %d bytes for %d inputs and %d terms: %w", len(b), dim, terms, ErrFormat)
	}
	float := func(at int) float64 { return math.Float64frombits(le.Uint64(b[at:])) }
	q := Ensemble{dim: int(dim), terms: make([]Term, terms)}
	q.omega, q.eta = [2]float64{float(16), float(24)}, [2]float64{float(32), float(40)}
	for _, v := range [...]float64{q.omega[0], q.omega[1], q.eta[0], q.eta[1]} {
		if !(v > 0 && v <= math.MaxFloat64) {
			return fmt.Errorf("read ω %v and η %v: %w", q.omega, q.eta, ErrFormat)
		}
	}
	for i := range q.terms {
		at := headerSize + termSize*i
		feature := le.Uint32(b[at:])
		t := Term{Stump: boost.Stump{Feature: int(feature), Threshold: float(at + 4), Polarity: 1}, Alpha: float(at + 12)}
		if feature >= dim || !(math.Abs(t.Stump.Threshold) <= math.MaxFloat64) || !(math.Abs(t.Alpha) <= math.MaxFloat64) {
			return fmt.Errorf("read term %d, %v × %v: %w", i, t.Alpha, t.Stump, ErrFormat)
		}
		q.terms[i] = t
	}
	*e = q
	return nil
}
