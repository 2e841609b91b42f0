package feature

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/logistic"
)

// SignedLog returns sign(v)·ln(1+|v|). It is about v near 0 and grows with the number of
// digits for large |v|, so that heavy-tailed columns have a useful variance.
// SignedLog(−0) is −0, ±Inf stays ±Inf and NaN stays NaN.
func SignedLog(v float64) float64 {
	return math.Copysign(logistic.Log1p(math.Abs(v)), v)
}

// clipAt bounds a standardised value. Without it, a column that moves after a long
// constant run could outweigh all others. MEASURED.md compares values.
const clipAt = 3

// A Standardiser brings each of d columns to mean 0 and variance 1 by their
// running means and variances over the rows observed (Welford 1962):
//
//	n ← n+1,  δ = v − μ,  μ ← μ + δ/n,  M ← M + δ·(v − μ),  variance = M/n
//
// Standardise may be called concurrently with itself, but not with Observe.
type Standardiser struct {
	rows    uint64
	mean, m []float64 // μ and M, one element per column
}

// NewStandardiser returns a Standardiser for d columns, before any row.
func NewStandardiser(d int) *Standardiser {
	return &Standardiser{mean: make([]float64, d), m: make([]float64, d)}
}

// leastVariance is the smallest normal number. Below it M and M/n are inexact, and can be
// 0 although rows differ.
const leastVariance = 0x1p-1022

// Standardise writes (v − μ)/√variance, clipped at ±3, into dst, which may be
// v. A column with a variance below 2⁻¹⁰²² is 0. Standardise panics if dst or v does not
// have d columns; v must be finite. It does not change s.
func (s *Standardiser) Standardise(dst, v []float64) {
	if len(dst) != len(s.mean) || len(v) != len(s.mean) {
		panic(badColumns)
	}
	for j, x := range v {
		variance := s.m[j] / float64(s.rows)
		if !(variance >= leastVariance) { // 0/0 before the first row
			dst[j] = 0
			continue
		}
		z := (x - s.mean[j]) / math.Sqrt(variance)
		dst[j] = max(-clipAt, min(clipAt, z))
	}
}

// Observe adds a row. It panics if v does not have d columns. v and its differences from
// the means must be finite.
func (s *Standardiser) Observe(v []float64) {
	if len(v) != len(s.mean) {
		panic(badColumns)
	}
	s.rows++
	n := float64(s.rows)
	for j, x := range v {
		delta := x - s.mean[j]
		s.mean[j] += delta / n
		s.m[j] += float64(delta * (x - s.mean[j]))
	}
}

// Check returns an error if the given number of rows, with all values within ±most,
// cannot lead to s. Restored bytes may be corrupt or forged.
func (s *Standardiser) Check(rows uint64, most float64) error {
	if s.rows != rows {
		return fmt.Errorf("standardiser of %d rows, want %d", s.rows, rows)
	}
	for j, mean := range s.mean {
		// The variance within ±most is at most its square.
		if !(math.Abs(mean) <= most && s.m[j] <= float64(rows)*most*most) {
			return fmt.Errorf("standardiser: column %d has the mean %v and M = %v after %d rows within ±%v",
				j, mean, s.m[j], rows, most)
		}
	}
	return nil
}

var errFormat = errors.New("standardiser")

const badColumns = "feature: a row has another number of columns than its standardiser"

// Size returns the number of bytes that AppendBinary appends: 8 + 16·d.
func (s *Standardiser) Size() int { return 8 + 16*len(s.mean) }

// AppendBinary appends Size bytes, little endian:
//
//	rows uint64 | (μ, M float64) of each column
func (s *Standardiser) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Uint64(s.rows)
	for j := range s.mean {
		w.Float64(s.mean[j], s.m[j])
	}
	return w.Finish()
}

// UnmarshalBinary reads what AppendBinary wrote for the same number of columns. On an
// error s is unchanged.
func (s *Standardiser) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, errFormat)
	read := Standardiser{r.Uint64(), make([]float64, len(s.mean)), make([]float64, len(s.mean))}
	for j := range read.mean {
		r.FiniteTo(&read.mean[j], &read.m[j])
		if read.m[j] < 0 || read.m[j] > 0 && read.rows == 0 {
			r.Fail("M = %v after %d rows", read.m[j], read.rows)
		}
	}
	if err := r.Close(); err != nil {
		return err
	}
	*s = read
	return nil
}
