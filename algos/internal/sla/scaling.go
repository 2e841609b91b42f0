package sla

import (
	"fmt"
	"math"
)

// A Scaling standardises columns: (x − center)·inverse, with the mean and the
// inverse of the population standard deviation. A constant column has inverse 0 and
// becomes 0.
type Scaling struct {
	Center, Inverse []float64
}

// NewScaling measures the columns of x. An error means that their squares overflow.
func NewScaling(x [][]float64) (*Scaling, error) {
	n, d := float64(len(x)), len(x[0])
	s := &Scaling{Center: make([]float64, d), Inverse: make([]float64, d)}
	for j := range d {
		lo, hi, sum := x[0][j], x[0][j], 0.0
		for _, row := range x {
			lo, hi = min(lo, row[j]), max(hi, row[j])
			sum += row[j] / n
		}
		s.Center[j] = sum
		if lo == hi {
			s.Center[j] = lo
			continue
		}
		squares := 0.0
		for _, row := range x {
			v := row[j] - sum
			squares += float64(v * v)
		}
		s.Inverse[j] = math.Sqrt(n / squares)
		if !(s.Inverse[j] > 0 && s.Inverse[j] <= math.MaxFloat64) {
			return nil, fmt.Errorf("column %d lies between %v and %v: standardising it overflows", j, lo, hi)
		}
	}
	return s, nil
}

// To sets dst to the standardised row; x may be dst.
func (s *Scaling) To(dst, x []float64) {
	for j, v := range x {
		if s.Inverse[j] == 0 {
			dst[j] = 0 // even if the difference overflows
			continue
		}
		dst[j] = float64((v - s.Center[j]) * s.Inverse[j])
	}
}

// Rows returns standardised copies of x, each followed by the numbers more.
func (s *Scaling) Rows(x [][]float64, more ...float64) [][]float64 {
	scaled := make([][]float64, len(x))
	for i, row := range x {
		scaled[i] = append(make([]float64, len(row), len(row)+len(more)), more...)
		s.To(scaled[i][:len(row)], row)
	}
	return scaled
}

// unfold converts weights for standardised rows, with the bias last, into weights
// and bias for rows as given. An error means that they overflow.
func (s *Scaling) Unfold(w []float64) (weights []float64, bias float64, err error) {
	d := len(s.Center)
	weights, bias = make([]float64, d), w[d]
	for j := range weights {
		weights[j] = float64(w[j] * s.Inverse[j])
		bias -= float64(weights[j] * s.Center[j])
	}
	return weights, bias, CheckFinite("the weights of the rows as given", append(weights, bias))
}
