package information

import (
	"errors"
	"fmt"
	"math"
)

// A Joint is the joint distribution of two variables. It may be used
// concurrently.
type Joint struct {
	p    [][]float64 // p[y][x]
	x, y []float64   // the marginals
}

// NewJoint copies p: rows are values of Y, columns values of X. The error joins all faults:
// no entries, rows of different lengths, what Check reports, by row and column.
func NewJoint(p [][]float64) (*Joint, error) {
	if len(p) == 0 || len(p[0]) == 0 {
		return nil, errors.New("a joint distribution without entries")
	}
	var errs []error
	j := &Joint{x: make([]float64, len(p[0])), y: make([]float64, len(p))}
	sum := 0.0
	for y, row := range p {
		if len(row) != len(j.x) {
			errs = append(errs, fmt.Errorf("row %d has %d entries and row 0 has %d", y, len(row), len(j.x)))
			continue
		}
		for x, v := range row {
			if !(v >= 0 && v <= math.MaxFloat64) {
				errs = append(errs, fmt.Errorf("row %d, column %d is %v: want a probability", y, x, v))
			}
			j.x[x] += v
			j.y[y] += v
			sum += v
		}
		j.p = append(j.p, append([]float64(nil), row...))
	}
	if len(errs) == 0 && !(math.Abs(sum-1) <= SumTolerance) {
		errs = append(errs, fmt.Errorf("the entries sum to %v: want 1", sum))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return j, nil
}

// X returns the marginal distribution of X, the sums of the columns.
func (j *Joint) X() []float64 { return append([]float64(nil), j.x...) }

// Y returns the marginal distribution of Y, the sums of the rows.
func (j *Joint) Y() []float64 { return append([]float64(nil), j.y...) }

// EntropyX returns H(X) in bits.
func (j *Joint) EntropyX() float64 { return Entropy(j.x) }

// EntropyY returns H(Y) in bits.
func (j *Joint) EntropyY() float64 { return Entropy(j.y) }

// Entropy returns H(X,Y) in bits.
func (j *Joint) Entropy() float64 {
	h := 0.0
	for _, row := range j.p {
		h += Entropy(row)
	}
	return h
}

// EntropyXGivenY returns H(X|Y) in bits, at least 0.
func (j *Joint) EntropyXGivenY() float64 {
	h := 0.0
	for y, row := range j.p {
		for _, v := range row {
			h += surprise(v, j.y[y])
		}
	}
	return h
}

// EntropyYGivenX returns H(Y|X) in bits, at least 0.
func (j *Joint) EntropyYGivenX() float64 {
	h := 0.0
	for _, row := range j.p {
		for x, v := range row {
			h += surprise(v, j.x[x])
		}
	}
	return h
}

// MutualInformation returns I(X;Y) in bits: 0 if and only if X and Y are
// independent, at most the smaller of H(X) and H(Y).
func (j *Joint) MutualInformation() float64 {
	var d divergence
	for y, row := range j.p {
		for x, v := range row {
			q := float64(j.x[x] * j.y[y])
			if v > 0 && q < 0x1p-1000 {
				// The product leaves the range that v is in; v ≤ min(p(x), p(y)).
				d.bits += float64(v * (logRatio(v, j.x[x]) - log2(j.y[y])))
				d.nats += q - v
				continue
			}
			d.add(v, q)
		}
	}
	return d.total()
}
