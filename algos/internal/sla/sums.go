package sla

import (
	"fmt"
	"math"

	"hamlet/algos/internal/triangle"
)

// dot2 returns the bits of dot(w, a) and dot(w, b). It is faster than two calls:
// its eight sums are independent, and it reads w once.
func dot2(w, a, b []float64) (wa, wb float64) {
	a, b = a[:len(w)], b[:len(w)]
	var a0, a1, a2, a3, b0, b1, b2, b3 float64
	j := 0
	for ; j+4 <= len(w); j += 4 {
		w0, w1, w2, w3 := w[j], w[j+1], w[j+2], w[j+3]
		a0 += float64(w0 * a[j])
		a1 += float64(w1 * a[j+1])
		a2 += float64(w2 * a[j+2])
		a3 += float64(w3 * a[j+3])
		b0 += float64(w0 * b[j])
		b1 += float64(w1 * b[j+1])
		b2 += float64(w2 * b[j+2])
		b3 += float64(w3 * b[j+3])
	}
	for ; j < len(w); j++ {
		a0 += float64(w[j] * a[j])
		b0 += float64(w[j] * b[j])
	}
	return a0 + a1 + (a2 + a3), b0 + b1 + (b2 + b3)
}

// AddScaled adds s·x to dst.
func AddScaled(dst []float64, s float64, x []float64) {
	x = x[:len(dst)]
	for j := range dst {
		dst[j] += float64(s * x[j])
	}
}

// A rowSum adds scaled rows to dst with the same bits as AddScaled in the order of
// the calls. It adds four at a time, to read and write dst less often.
type rowSum struct {
	dst     []float64
	scale   [4]float64
	row     [4][]float64
	pending int
}

// add adds scale·row, at the latest in finish.
func (s *rowSum) add(scale float64, row []float64) {
	s.scale[s.pending], s.row[s.pending] = scale, row
	if s.pending++; s.pending < len(s.row) {
		return
	}
	s.pending = 0
	dst := s.dst
	s0, s1, s2, s3 := s.scale[0], s.scale[1], s.scale[2], s.scale[3]
	x0, x1, x2, x3 := s.row[0][:len(dst)], s.row[1][:len(dst)], s.row[2][:len(dst)], s.row[3][:len(dst)]
	for j, v := range dst {
		v += float64(s0 * x0[j])
		v += float64(s1 * x1[j])
		v += float64(s2 * x2[j])
		v += float64(s3 * x3[j])
		dst[j] = v
	}
}

func (s *rowSum) finish() {
	for k := range s.pending {
		AddScaled(s.dst, s.scale[k], s.row[k])
	}
	s.pending = 0
}

// Norm returns the Euclidean length of a.
func Norm(a []float64) float64 { return math.Sqrt(triangle.Dot(a, a)) }

// Product is dot with a check of the lengths.
func Product(w, x []float64) float64 {
	if len(x) != len(w) {
		panic(fmt.Sprintf("sla: a row of %d numbers for %d weights", len(x), len(w)))
	}
	return triangle.Dot(w, x)
}
