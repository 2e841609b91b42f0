package sla

import (
	"errors"
	"fmt"
	"math"
)

// Constants of SLA that all fits share, unless they are told others.
const (
	FirstRadius  = 8
	FirstSpacing = 0.2
	RateShrink   = 0.1
	RateMax      = 0.1
	RateMin      = 1e-5
)

// MaxColumns bounds the length of a row, in a fit and in a classifier's bytes.
const MaxColumns = 1 << 20

// CheckLosses returns an error if the sums of a fit have overflowed.
func CheckLosses(start, end float64) error {
	if !(math.Abs(start)+math.Abs(end) <= math.MaxFloat64) {
		return fmt.Errorf("the loss went from %v to %v: the numbers are too large to be summed", start, end)
	}
	return nil
}

// CheckFinite returns an error if a number of v is not finite.
func CheckFinite(name string, v []float64) error {
	for j, x := range v {
		if !(math.Abs(x) <= math.MaxFloat64) {
			return fmt.Errorf("%s has %v at %d: want finite numbers", name, x, j)
		}
	}
	return nil
}

// CheckRows returns an error for bad numbers in a sample, and panics for bad lengths.
func CheckRows(x [][]float64, y, weight []float64) error {
	if len(y) != len(x) || weight != nil && len(weight) != len(x) {
		panic(fmt.Sprintf("sla: %d rows, %d labels, %d weights", len(x), len(y), len(weight)))
	}
	if len(x) == 0 || len(x[0]) == 0 {
		return errors.New("no data: want at least one row of at least one number")
	}
	if len(x[0]) > MaxColumns {
		return fmt.Errorf("%d columns: a fit takes up to %d", len(x[0]), MaxColumns)
	}
	var c RowCheck
	for i, row := range x {
		if len(row) != len(x[0]) {
			panic(fmt.Sprintf("sla: row %d has %d numbers and row 0 has %d", i, len(row), len(x[0])))
		}
		c.Row(i, row, y, weight)
	}
	return c.Done()
}

// A RowCheck collects what is wrong with the rows of a sample.
type RowCheck struct {
	Errs  []error
	total float64 // Σ weight
}

// Row checks a row, its label and its weight; weight may be nil.
func (c *RowCheck) Row(i int, numbers, y, weight []float64) {
	if err := CheckFinite(fmt.Sprintf("row %d", i), numbers); err != nil {
		c.Errs = append(c.Errs, err)
	}
	if y[i] != 1 && y[i] != -1 {
		c.Errs = append(c.Errs, fmt.Errorf("label %d is %v: want 1 or -1", i, y[i]))
	}
	if weight == nil {
		c.total++
		return
	}
	if !(weight[i] >= 0 && weight[i] <= math.MaxFloat64) {
		c.Errs = append(c.Errs, fmt.Errorf("weight %d is %v: want at least 0 and finite", i, weight[i]))
	}
	c.total += weight[i]
}

// Done returns what is wrong.
func (c *RowCheck) Done() error {
	if !(c.total > 0 && c.total <= math.MaxFloat64) {
		c.Errs = append(c.Errs, fmt.Errorf("the weights sum to %v: want more than 0 and finite", c.total))
	}
	return errors.Join(c.Errs...)
}
