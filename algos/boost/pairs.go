package boost

import "math"

// A pairs is a histogram by class. Entry 2b is the weight of the positive examples in
// bin b. Entry 2b+1 is minus the weight of the negative ones.
type pairs [2 * (MaxBins + 1)]int64

// slot returns the entry of pairs that counts a row of bin b and signed weight v.
func slot(b byte, v int64) int {
	return (int(b)<<1 | int(uint64(v)>>63)) & (2*(MaxBins+1) - 1)
}

// bySign returns the sums of the positive and of the negative weights.
func bySign(w []int64) (positive, negative int64) {
	for _, v := range w {
		if v < 0 {
			negative += v
		} else {
			positive += v
		}
	}
	return positive, negative
}

// pairsTo writes the histogram by class of each column j that is not constant to
// dst[j]. If rows is not nil, it lists all rows whose w is not 0.
func (b *binned) pairsTo(dst []pairs, w []int64, rows []int32) {
	dense := b.dense
	for ; len(dense) >= group; dense = dense[group:] {
		j0, j1, j2, j3 := dense[0].feature, dense[1].feature, dense[2].feature, dense[3].feature
		h0, h1, h2, h3 := &dst[j0], &dst[j1], &dst[j2], &dst[j3]
		*h0, *h1, *h2, *h3 = pairs{}, pairs{}, pairs{}, pairs{}
		b0, b1, b2, b3 := b.column(j0), b.column(j1), b.column(j2), b.column(j3)
		b0, b1, b2, b3 = b0[:len(w)], b1[:len(w)], b2[:len(w)], b3[:len(w)]
		if rows == nil {
			for i, v := range w {
				h0[slot(b0[i], v)] += v
				h1[slot(b1[i], v)] += v
				h2[slot(b2[i], v)] += v
				h3[slot(b3[i], v)] += v
			}
			continue
		}
		for _, i := range rows {
			v := w[i]
			h0[slot(b0[i], v)] += v
			h1[slot(b1[i], v)] += v
			h2[slot(b2[i], v)] += v
			h3[slot(b3[i], v)] += v
		}
	}
	for _, c := range dense {
		j := c.feature
		h, bins := &dst[j], b.column(j)[:len(w)]
		*h = pairs{}
		for i, v := range w {
			h[slot(bins[i], v)] += v
		}
	}
	b.sparsePairsTo(dst, w)
}

func (b *binned) sparsePairsTo(dst []pairs, w []int64) {
	positive, negative := bySign(w)
	for k := range b.sparse {
		s := &b.sparse[k]
		h := &dst[s.feature]
		*h = pairs{}
		bins := s.bins[:len(s.rows)]
		for at, i := range s.rows {
			v := w[i]
			h[slot(bins[at], v)] += v
		}
		p, n := positive, negative
		for at := 0; at < 2*s.used; at += 2 {
			p -= h[at]
			n -= h[at+1]
		}
		at := 2 * int(s.dominant)
		h[at], h[at+1] = p, n
	}
}

// subtract subtracts the first bins of part.
func (h *pairs) subtract(part *pairs, bins int) {
	for k, v := range part[:2*bins] {
		h[k] -= v
	}
}

// root2 returns √(p·|n|) for the weights p ≥ 0 and n ≤ 0 of the two classes in one
// part.
func root2(p, n int64) float64 { return math.Sqrt(float64(p) * -float64(n)) }

// A divide is the best cut found in a column: the one with the least Σ√(W⁺W⁻) over
// both sides, in units of fixed point.
type divide struct {
	cut  int
	cost float64
}

// undivided stands for a constant column.
var undivided = divide{cut: -1, cost: math.Inf(1)}

// A divider finds the best cut of one column.
type divider struct {
	p, n  int64 // the weights of the two classes in all rows
	slack float64
	limit float64 // (cost−slack)²
	best  divide
}

func newDivider(p, n int64) divider {
	return divider{p: p, n: n, slack: float64(tieIn(p - n)), limit: math.Inf(1), best: undivided}
}

// parts returns W⁺W⁻ below and above a cut, from the weights lp and ln at or below
// it. Since (√a+√b)² ≥ a+b, the caller calls weigh, with its square roots, only where
// a+b < limit.
func (d *divider) parts(lp, ln int64) (a, b float64) {
	return float64(float64(lp) * -float64(ln)), float64(float64(d.p-lp) * -float64(d.n-ln))
}

func (d *divider) weigh(cut int, a, b float64) {
	if cost := math.Sqrt(a) + math.Sqrt(b); cost < d.best.cost-d.slack {
		d.best = divide{cut: cut, cost: cost}
		least := max(cost-d.slack, 0)
		d.limit = least * least
	}
}

// divideBins finds the best cut of a column from its histogram by class. It skips the
// cut above an empty bin, because it divides the rows as the cut before does.
func divideBins(h *pairs, cuts int) divide {
	var p, n int64
	for k := 0; k < 2*cuts+2; k += 2 {
		p += h[k]
		n += h[k+1]
	}
	d := newDivider(p, n)
	var lp, ln int64
	for c := range cuts {
		bp, bn := h[2*c], h[2*c+1]
		if bp|bn == 0 && c > 0 {
			continue
		}
		lp += bp
		ln += bn
		if a, b := d.parts(lp, ln); a+b < d.limit {
			d.weigh(c, a, b)
		}
	}
	return d.best
}

// tieIn returns the largest difference between candidates that count as equal: 2⁻⁴⁶
// of the total weight in fixed point.
func tieIn(total int64) int64 { return total >> (fixedBits - tieBits) }

// least returns the column with the best cut. Of columns that differ by less than 2⁻⁴⁶ of
// the total weight the first wins. It returns false if all columns are constant.
func least(columns []divide, total int64) (feature int, best divide, ok bool) {
	best = undivided
	slack := float64(tieIn(total))
	for j, c := range columns {
		if c.cut >= 0 && (best.cut < 0 || c.cost < best.cost-slack) {
			feature, best = j, c
		}
	}
	return feature, best, best.cut >= 0
}
