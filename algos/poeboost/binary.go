package poeboost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"hamlet/algos/boost"
)

// The bytes of an Ensemble, version 1. Integers and float64 bits are
// little-endian; M votes make 16 + 24·M bytes and M opinions 16 + 48·M, no more and
// no less.
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
	headerSize  = 16
	voteSize    = 24
	opinionSize = 48

	mostAlpha = 12 // ½ ln(10¹⁰) = 11.5, of a stump without errors
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not an
// ensemble of a version that this program reads. Take another copy.
var ErrFormat = errors.New("not the bytes of a poeboost ensemble")

// AppendBinary appends the bytes of e. The error is always nil.
func (e *Ensemble) AppendBinary(dst []byte) ([]byte, error) {
	le := binary.LittleEndian
	kind := byte(0)
	if len(e.opinions) > 0 {
		kind = 1
	}
	dst = append(dst, magic...)
	dst = append(dst, version, kind, 0, 0)
	dst = le.AppendUint32(dst, uint32(e.dim))
	dst = le.AppendUint32(dst, uint32(e.Len()))
	for _, v := range e.votes {
		dst = le.AppendUint32(dst, uint32(v.Stump.Feature))
		dst = le.AppendUint32(dst, uint32(int32(v.Stump.Polarity)))
		dst = appendFloats(dst, v.Stump.Threshold, v.Alpha)
	}
	for _, o := range e.opinions {
		dst = le.AppendUint32(dst, uint32(o.Feature))
		dst = le.AppendUint32(dst, 0)
		dst = appendFloats(dst, o.Mean, o.SD, o.Weight, o.Bias, o.ErrorRate)
	}
	return dst, nil
}

func appendFloats(dst []byte, fs ...float64) []byte {
	for _, f := range fs {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
	}
	return dst
}

// MarshalBinary returns the bytes of e. The error is always nil.
func (e *Ensemble) MarshalBinary() ([]byte, error) {
	return e.AppendBinary(make([]byte, 0, headerSize+voteSize*len(e.votes)+opinionSize*len(e.opinions)))
}

// UnmarshalBinary replaces e, which may be the zero value, by what b holds; it
// keeps no reference to b. If b is of another version, cut short, too long, or
// holds what no ensemble can (a feature that is no input, a number that is not
// finite, an α outside [0, 12], a P_e outside (0, ½]), the error wraps ErrFormat and e is
// as before.
func (e *Ensemble) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:4]) != magic {
		return fmt.Errorf("read %d bytes: %w", len(b), ErrFormat)
	}
	if b[4] != version {
		return fmt.Errorf("read version %d, this program knows %d: %w", b[4], version, ErrFormat)
	}
	kind, dim, experts := b[5], le.Uint32(b[8:]), le.Uint32(b[12:])
	size := uint64(voteSize)
	if kind == 1 {
		size = opinionSize
	}
	if kind > 1 || kind == 1 && experts == 0 || b[6] != 0 || b[7] != 0 || dim < 1 || dim > math.MaxInt32 ||
		experts > boost.MaxRounds || uint64(len(b)) != headerSize+size*uint64(experts) {
		return fmt.Errorf("read %d bytes for %d experts of kind %d on %d inputs: %w", len(b), experts, kind, dim, ErrFormat)
	}
	read := &Ensemble{dim: int(dim)}
	for i, b := 0, b[headerSize:]; len(b) > 0; i, b = i+1, b[size:] {
		var ok bool
		if kind == 0 {
			var v Vote
			v, ok = readVote(b)
			read.votes = append(read.votes, v)
		} else {
			var o Opinion
			o, ok = readOpinion(b)
			read.opinions = append(read.opinions, o)
		}
		if !ok || le.Uint32(b) >= dim {
			return fmt.Errorf("read expert %d, which cannot be: %w", i, ErrFormat)
		}
	}
	*e = *read
	return nil
}

// readVote reads a vote and reports whether there can be one like it.
func readVote(b []byte) (v Vote, ok bool) {
	le := binary.LittleEndian
	f := floats(b[8:voteSize])
	v.Stump = boost.Stump{Feature: int(le.Uint32(b)), Polarity: int(int32(le.Uint32(b[4:]))), Threshold: f[0]}
	v.Alpha = f[1]
	return v, (v.Stump.Polarity == 1 || v.Stump.Polarity == -1) && finite(f[:]...) && v.Alpha >= 0 && v.Alpha <= mostAlpha
}

// readOpinion reads an opinion and reports whether there can be one like it.
func readOpinion(b []byte) (o Opinion, ok bool) {
	le := binary.LittleEndian
	f := floats(b[8:opinionSize])
	o.Univariate = Univariate{Feature: int(le.Uint32(b)), Mean: f[0], SD: f[1], Weight: f[2], Bias: f[3]}
	o.ErrorRate = f[4]
	return o, le.Uint32(b[4:]) == 0 && finite(f[:]...) && o.SD >= 0 && o.ErrorRate > 0 && o.ErrorRate <= 0.5
}

// floats reads up to five float64.
func floats(b []byte) (f [5]float64) {
	for i := 0; len(b) > 0; i, b = i+1, b[8:] {
		f[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return f
}

func finite(fs ...float64) bool {
	for _, f := range fs {
		if !(math.Abs(f) <= math.MaxFloat64) {
			return false
		}
	}
	return true
}
