package detect

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/logistic"
)

// An ADWINConfig tunes an ADWIN. Zero fields mean the defaults given.
type ADWINConfig struct {
	Delta   float64 // δ, the confidence, 1e-300 to 1; 0 is .002, as in MOA
	Buckets int     // M, the buckets of each size; 0 is 5, as in the paper's experiments
}

func (cfg *ADWINConfig) fill() error {
	cfg.Delta = cmp.Or(cfg.Delta, 0.002)
	cfg.Buckets = cmp.Or(cfg.Buckets, 5)
	return errors.Join(
		check("adwin: delta", cfg.Delta, 1e-300, 1),
		check("adwin: buckets", cfg.Buckets, 1, most),
	)
}

// An ADWIN is the adaptive window of Bifet and Gavaldà (Learning from
// time-changing data with adaptive windowing, 2007), to compare the alarms
// with. It keeps the longest window W of the latest numbers in
// [0, 1] in which no two parts, the older W₀ and the newer W₁, have means that
// differ by more than
//
//	ε_cut = √(2/m · σ²_W · ln(2/δ')) + 2/(3m) · ln(2/δ'),   1/m = 1/n₀ + 1/n₁
//
// (eq. 3.1; δ' = δ/ln n corrects for looking at O(ln n) cuts), and drops its
// oldest part until that holds. The window is an exponential histogram
// (ADWIN2, section 4): buckets of 1, 2, 4, … numbers, at most M of each size. The two
// oldest of a full size become one of the next. Cuts lie between buckets. A number
// costs O(M ln n) time, the window O(M ln n) memory.
type ADWIN struct {
	cfg    ADWINConfig
	rows   [][]bucket // rows[i] holds the buckets of 2ⁱ numbers, oldest first
	window bucket     // all buckets joined
}

// A bucket is a run of numbers.
type bucket struct {
	n      int
	sum    float64
	square float64 // Σ(x − mean)²
}

// join returns two runs as one (Chan, Golub and LeVeque 1983).
func join(a, b bucket) bucket {
	if a.n == 0 {
		return b
	}
	d := a.sum/float64(a.n) - b.sum/float64(b.n)
	share := float64(a.n) * float64(b.n) / float64(a.n+b.n)
	return bucket{a.n + b.n, a.sum + b.sum, a.square + b.square + float64(d*d*share)}
}

// NewADWIN returns a detector before any number. The error names every wrong field.
func NewADWIN(cfg ADWINConfig) (*ADWIN, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	return &ADWIN{cfg: cfg}, nil
}

// A Cut is how a number changed the window of an ADWIN.
type Cut struct {
	Dropped int     // numbers that the window lost; 0: no change was found
	Rise    float64 // increase of the window's mean by the cut
}

// Observe takes the next number. It panics if x is not in [0, 1].
func (a *ADWIN) Observe(x float64) (c Cut) {
	if !(x >= 0 && x <= 1) {
		panic(fmt.Sprintf("detect: %v in a window of numbers from 0 to 1", x))
	}
	a.insert(bucket{n: 1, sum: x})
	before := a.Mean()
	for a.differs() {
		c.Dropped += a.drop()
	}
	if c.Dropped > 0 {
		c.Rise = a.Mean() - before
	}
	return c
}

// insert makes b the newest bucket of a single number.
func (a *ADWIN) insert(b bucket) {
	a.window = join(a.window, b)
	for i := 0; ; i++ {
		if i == len(a.rows) {
			a.rows = append(a.rows, nil)
		}
		a.rows[i] = append(a.rows[i], b)
		row := a.rows[i]
		if len(row) <= a.cfg.Buckets {
			return
		}
		b = join(row[0], row[1])
		a.rows[i] = row[:copy(row, row[2:])]
	}
}

// differs reports whether two parts of the window have means that differ.
func (a *ADWIN) differs() bool {
	n := a.window.n
	if n < 2 || a.window.square <= 0 {
		return false
	}
	ln := logistic.Log(2 * logistic.Log(float64(n)) / a.cfg.Delta) // ln(2/δ'), > 0
	variance := a.window.square / float64(n)
	n0, sum0 := 0, 0.0
	for i := len(a.rows) - 1; i >= 0; i-- {
		for _, b := range a.rows[i] {
			n0 += b.n
			sum0 += b.sum
			n1 := n - n0
			if n1 == 0 {
				return false
			}
			perM := 1/float64(n0) + 1/float64(n1)
			gap := math.Abs(sum0/float64(n0) - (a.window.sum-sum0)/float64(n1))
			if gap > math.Sqrt(2*perM*variance*ln)+float64(2./3*perM*ln) {
				return true
			}
		}
	}
	return false
}

// drop drops the oldest bucket and returns how many numbers were in it.
func (a *ADWIN) drop() int {
	last := len(a.rows) - 1
	row := a.rows[last]
	n := row[0].n
	a.rows[last] = row[:copy(row, row[1:])]
	for last >= 0 && len(a.rows[last]) == 0 {
		a.rows = a.rows[:last]
		last--
	}
	a.window = bucket{} // summed again, so that old rounding errors go
	for i := last; i >= 0; i-- {
		for _, b := range a.rows[i] {
			a.window = join(a.window, b)
		}
	}
	return n
}

// Mean returns the mean of the window, 0 if it is empty.
func (a *ADWIN) Mean() float64 {
	if a.window.n == 0 {
		return 0
	}
	return a.window.sum / float64(a.window.n)
}

// Len returns how many numbers the window holds.
func (a *ADWIN) Len() int { return a.window.n }
