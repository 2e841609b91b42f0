package promise

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/codec"
)

// Cells are 1/32 nat wide, from −8 to 24: cell 0 also holds what is lower, the last what is higher. An
// edge is a multiple of 1/32: what lies at or above an edge is never counted below it. The next edge above
// a threshold costs at most 1.8 % of the spam that is caught on mail and texts (MEASURED.md).
const (
	perNat  = 32
	lowest  = -8
	highest = 24
	cells   = (highest - lowest) * perNat
)

// MostWeight and LeastWeight bound the weight of a ham.
const (
	MostWeight  = 64
	LeastWeight = 1.0 / 1024
)

const (
	unit = 1 << 32 // of weights: they are kept as integers, and sums have no order

	// Forget is the sum of weights at which a table halves all of its cells. From there to the next
	// halving a budget of .1 % has 65 to 131 ham to lose, where Threshold needs 3, and one of .01 % has 6.5
	// to 13.
	Forget = 1 << 17
)

// A Table counts judged ham by log-odds. The zero value is empty. It takes 8 KiB. Observe must
// not be called concurrently with any method.
//
// Invariant: the sum of cells is below Forget.
type Table struct {
	cells   [cells]uint64 // sums of weights, in units
	total   uint64        // sum of cells; only Observe, halve and UnmarshalBinary write it
	largest uint64        // of all weights, in units; 0 of an empty table
	floor   int           // thresholds lie at the lower edge of this cell or above it
	era     uint64        // halvings
}

// cell returns the cell of a log-odds. ±Inf is fine, NaN panics.
func cell(logOdds float64) int {
	if math.IsNaN(logOdds) {
		panic("promise: log-odds is NaN")
	}
	return min(int((min(max(logOdds, lowest), highest)-lowest)*perNat), cells-1)
}

// edge returns the lower edge of cell c.
func edge(c int) float64 { return lowest + float64(float64(c)/perNat) }

// Observe counts a ham that was judged with this log-odds before it was learnt. weight is
// least/probability: the probability is that with which its label was asked for, least the smallest
// one with which the policy in force asks for mail that lies above a threshold. So it is 1 if each
// label is asked for with the same probability, or all are given. Ham that is asked for with less than
// least has a weight above 1, and thresholds stay above it. Observe panics unless LeastWeight ≤ weight ≤
// MostWeight, or if logOdds is NaN: a caller that refuses a label by its weight must refuse the policy. It costs O(1),
// and once in [Forget] O(cells). A weight is rounded to a multiple of 2⁻³², by less than a 2²²th part.
func (t *Table) Observe(logOdds, weight float64) {
	if !(weight >= LeastWeight && weight <= MostWeight) {
		panic(fmt.Sprintf("promise: weight %v is not in %v to %v", weight, LeastWeight, MostWeight))
	}
	c, w := cell(logOdds), uint64(math.Round(weight*unit))
	t.cells[c] += w
	t.total += w
	t.largest = max(t.largest, w)
	if w > unit {
		t.floor = max(t.floor, c+1)
	}
	if t.total >= Forget*unit {
		t.halve()
	}
}

// halve begins an era.
func (t *Table) halve() {
	t.total = 0
	for c := range t.cells {
		t.cells[c] /= 2
		t.total += t.cells[c]
	}
	t.era++
}

// Ham returns the sum of weights: the number of ham, if all weights are 1. Halving halves it.
func (t *Table) Ham() float64 { return float64(float64(t.total) / unit) }

// Era returns how often the table was halved.
func (t *Table) Era() uint64 { return t.era }

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not a table of a
// version that this program reads. Take another copy.
var ErrFormat = errors.New("not the bytes of a table of ham")

const (
	magic   = "hprm"
	version = 1
)

// AppendBinary appends the table, little endian. It returns no error.
//
//	"hprm" | uint8 1 | uint64 era | uint64 largest | uint16 floor | uint16 cells that are not 0 |
//	for each of them, ascending: uint16 cell | uint64 sum of weights
//
// Weights are in units of 2⁻³². Only cells that hold ham take bytes, 10 each.
func (t *Table) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Header(magic, version)
	w.Uint64(t.era, t.largest)
	w.Uint16(uint16(t.floor))
	n := uint16(0)
	for _, sum := range t.cells {
		if sum > 0 {
			n++
		}
	}
	w.Uint16(n)
	for c, sum := range t.cells {
		if sum > 0 {
			w.Uint16(uint16(c))
			w.Uint64(sum)
		}
	}
	return w.Finish()
}

// MarshalBinary returns the bytes of AppendBinary.
func (t *Table) MarshalBinary() ([]byte, error) { return t.AppendBinary(nil) }

// UnmarshalBinary replaces the table by the one that AppendBinary wrote. Bytes that no table can have
// written are an error, and leave t unchanged.
func (t *Table) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	r.Header(magic, version)
	var read Table
	r.Uint64To(&read.era, &read.largest)
	read.floor = int(r.Uint16())
	last := -1
	for range r.Uint16() {
		c, sum := int(r.Uint16()), r.Uint64()
		if c <= last || c >= cells || sum == 0 || sum >= Forget*unit-read.total {
			r.Fail("cell %d after %d with %d", c, last, sum)
		}
		if r.Err() != nil {
			break
		}
		read.cells[c], last = sum, c
		read.total += sum
	}
	if err := r.Close(); err != nil {
		return err
	}
	least := uint64(math.Round(LeastWeight * unit))
	if fits := read.largest >= least && read.largest <= MostWeight*unit; !fits && (read.total > 0 || read.largest > 0) {
		r.Fail("the largest weight is %d", read.largest)
	}
	if read.floor > cells || (read.floor > 0) != (read.largest > unit) {
		r.Fail("no threshold below cell %d with a largest weight of %d", read.floor, read.largest)
	}
	if read.largest == 0 && read.era > 0 {
		r.Fail("%d halvings of an empty table", read.era)
	}
	if r.Err() != nil {
		return r.Err()
	}
	*t = read
	return nil
}
