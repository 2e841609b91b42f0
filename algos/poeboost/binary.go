package poeboost

import (
	"errors"
	"math"

	"hamlet/algos/boost"
	"hamlet/algos/internal/codec"
)

// The bytes of an Ensemble, version 1, little endian: exactly 16 + 24·M bytes for M votes,
// 16 + 48·M for M opinions.
//
//	offset  size  field
//	0       4     "hpoe"
//	4       1     version, 1
//	5       1     kind of the experts: 0 votes, 1 opinions; votes if there are none
//	6       2     zero
//	8       4     number of inputs
//	12      4     M
//	16            M experts in the order of their rounds
//
//	a vote            an opinion
//	0   4  feature    0   4  feature
//	4   4  polarity   4   4  zero
//	8   8  threshold  8   8  mean
//	16  8  α          16  8  standard deviation
//	                  24  8  weight
//	                  32  8  bias
//	                  40  8  P_e
//
// A polarity is 1 or −1, as an int32.
const (
	magic       = "hpoe"
	version     = 1
	voteSize    = 24
	opinionSize = 48

	mostAlpha = 12 // ½ ln(10¹⁰) = 11.5, of a stump without errors
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are damaged or of
// another version.
var ErrFormat = errors.New("not the bytes of a poeboost ensemble")

// AppendBinary appends the bytes of e. The error is always nil.
func (e *Ensemble) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Header(magic, version)
	w.Bool(len(e.opinions) > 0)
	w.Zeros(2)
	w.Uint32(uint32(e.dim), uint32(e.Len()))
	for _, v := range e.votes {
		w.Uint32(uint32(v.Stump.Feature), uint32(int32(v.Stump.Polarity)))
		w.Float64(v.Stump.Threshold, v.Alpha)
	}
	for _, o := range e.opinions {
		w.Uint32(uint32(o.Feature), 0)
		w.Float64(o.Mean, o.SD, o.Weight, o.Bias, o.ErrorRate)
	}
	return w.Finish()
}

// UnmarshalBinary replaces e, which may be the zero value, by the ensemble in b. It does
// not retain b. The error wraps ErrFormat, and e is unchanged, if b has another version, a
// wrong length, a feature that is not an input, a number that is not finite, an α outside
// [0, 12] or a P_e outside (0, ½].
func (e *Ensemble) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	r.Header(magic, version)
	opinions := r.Bool()
	r.Zeros(2)
	dim, experts := r.Uint32(), r.Uint32()
	if dim < 1 || dim > math.MaxInt32 || experts > boost.MaxRounds || opinions && experts == 0 {
		r.Fail("%d experts on %d inputs", experts, dim)
	}
	q := Ensemble{dim: int(dim)}
	switch {
	case opinions && r.Fits(uint64(experts), opinionSize):
		q.opinions = make([]Opinion, experts)
	case !opinions && r.Fits(uint64(experts), voteSize):
		q.votes = make([]Vote, experts)
	}
	for i := range q.votes {
		q.votes[i].read(r, dim)
	}
	for i := range q.opinions {
		q.opinions[i].read(r, dim)
	}
	if err := r.Close(); err != nil {
		return err
	}
	*e = q
	return nil
}

// read reads a vote on dim inputs.
func (v *Vote) read(r *codec.Reader, dim uint32) {
	feature, polarity := r.Uint32(), int32(r.Uint32())
	v.Stump = boost.Stump{Feature: int(feature), Polarity: int(polarity), Threshold: r.Finite()}
	v.Alpha = r.Finite()
	if feature >= dim || polarity != 1 && polarity != -1 || v.Alpha < 0 || v.Alpha > mostAlpha {
		r.Fail("a vote %v of input %d of %d", *v, feature, dim)
	}
}

// read reads an opinion on dim inputs.
func (o *Opinion) read(r *codec.Reader, dim uint32) {
	feature := r.Uint32()
	r.Zeros(4)
	o.Feature = int(feature)
	r.FiniteTo(&o.Mean, &o.SD, &o.Weight, &o.Bias, &o.ErrorRate)
	if feature >= dim || o.SD < 0 || o.ErrorRate <= 0 || o.ErrorRate > 0.5 {
		r.Fail("an opinion %v of input %d of %d", *o, feature, dim)
	}
}
