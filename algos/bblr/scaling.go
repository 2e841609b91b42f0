package bblr

import (
	"fmt"
	"math"
)

// A scaling standardises columns: (x − center)·inverse, with the mean and the
// inverse of the population standard deviation. A constant column has inverse 0 and
// becomes 0.
type scaling struct {
	center, inverse []float64
}

// newScaling measures the columns of x. An error means that their squares overflow.
func newScaling(x [][]float64) (*scaling, error) {
	n, d := float64(len(x)), len(x[0])
	s := &scaling{center: make([]float64, d), inverse: make([]float64, d)}
	for j := range d {
		lo, hi, sum := x[0][j], x[0][j], 0.0
		for _, row := range x {
			lo, hi = min(lo, row[j]), max(hi, row[j])
			sum += row[j] / n
		}
		s.center[j] = sum
		if lo == hi {
			s.center[j] = lo
			continue
		}
		squares := 0.0
		for _, row := range x {
			v := row[j] - sum
			squares += float64(v * v)
		}
		s.inverse[j] = math.Sqrt(n / squares)
		if !(s.inverse[j] > 0 && s.inverse[j] <= math.MaxFloat64) {
			return nil, fmt.Errorf("column %d lies between %v and %v: standardising it overflows", j, lo, hi)
		}
	}
	return s, nil
}

// to sets dst to the standardised row; x may be dst.
func (s *scaling) to(dst, x []float64) {
	for j, v := range x {
		if s.inverse[j] == 0 {
			dst[j] = 0 // even if the difference overflows
			continue
		}
		dst[j] = float64((v - s.center[j]) * s.inverse[j])
	}
}

// rows returns standardised copies of x, each followed by the numbers more.
func (s *scaling) rows(x [][]float64, more ...float64) [][]float64 {
	scaled := make([][]float64, len(x))
	for i, row := range x {
		scaled[i] = append(make([]float64, len(row), len(row)+len(more)), more...)
		s.to(scaled[i][:len(row)], row)
	}
	return scaled
}

// unfold converts weights for standardised rows, with the bias last, into weights
// and bias for rows as given.
func (s *scaling) unfold(w []float64) (weights []float64, bias float64) {
	d := len(s.center)
	weights, bias = make([]float64, d), w[d]
	for j := range weights {
		weights[j] = float64(w[j] * s.inverse[j])
		bias -= float64(weights[j] * s.center[j])
	}
	return weights, bias
}
