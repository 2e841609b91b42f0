package promise

import (
	"fmt"
	"math"
	"sort"

	"hamlet/algos/confseq"
)

// Level is the probability with which a promise holds.
const Level = 0.9

// evidence is ln(1/(1−Level)), what a threshold needs.
var evidence = -math.Log1p(-Level)

// A Bound is what a table says about a budget.
type Bound struct {
	// LogOdds is the threshold: what has this log-odds or more may be called spam. It is +Inf as long
	// as nothing can be promised.
	LogOdds float64
	// Missing is the least number of further ham of weight 1, all of them below the highest threshold,
	// after which something can be promised; 0 if it can be now. It is +Inf if no ham is enough: one of a weight
	// above 1 has the highest log-odds.
	Missing float64
	// Broken says that nothing can be promised although there is ham enough: too much of it lies at the top.
	// Nothing may then be called spam.
	Broken bool
	// Lost is the weight of ham at or above the threshold, of Ham in all.
	Lost, Ham float64
}

// Promised reports whether the budget can be promised now. If not, the answer is "not yet".
func (b Bound) Promised() bool { return b.Missing == 0 }

// Threshold returns the smallest threshold that keeps the budget: at most this fraction of ham lies at
// or above it, with a probability of [Level] for all moments of an era together. It panics unless
// 0 < budget < 1. A larger budget never has a higher threshold. It costs O(cells), some 8 µs, and
// may be called concurrently with itself.
func (t *Table) Threshold(budget float64) Bound {
	if !(budget > 0 && budget < 1) {
		panic(fmt.Sprintf("promise: budget %v is not between 0 and 1", budget))
	}
	below := confseq.NewBelow(budget, float64(max(t.largest, unit))/unit)
	bound := Bound{LogOdds: math.Inf(1), Ham: t.Ham()}
	keeps := func(above uint64) bool {
		return below.Log(float64(above)/unit, float64(t.total-above)/unit) >= evidence
	}
	var above [cells]uint64 // weight of ham in this cell or higher
	sum := uint64(0)
	for c := cells - 1; c >= 0; c-- {
		sum += t.cells[c]
		above[c] = sum
	}
	// The last cell has no upper edge, so the highest threshold is at its lower one.
	enough := below.Log(0, float64(t.total)/unit) >= evidence
	if t.floor >= cells {
		bound.Broken = enough
		bound.Missing = math.Inf(1)
		return bound
	}
	if !keeps(above[cells-1]) {
		bound.Broken = enough
		ones := float64(float64(above[cells-1]) / unit)
		bound.Missing = max(1, below.Zeros(ones, evidence)-bound.Ham+ones)
		return bound
	}
	// The evidence falls as the threshold does (confseq.Below).
	c := t.floor + sort.Search(cells-1-t.floor, func(i int) bool { return keeps(above[t.floor+i]) })
	bound.LogOdds, bound.Lost = edge(c), float64(above[c])/unit
	return bound
}
