package blr

import (
	"fmt"
	"iter"

	"hamlet/algos/internal/triangle"
)

// UpdateAll learns known events: row i of xs with label ys[i] and power phis[i], or 1 if phis is nil. Each step of
// the iterator learns one event, and yields its index and site. The posterior then holds the bits that Update would
// have left. The loop may read p but not change it; UpdateAll panics if it did. Events after a break are not learnt.
//
// With Config.Block of K, V is read once for all events of a block. MEASURED.md says what that saves. A loop allocates
// some 16·K·D bytes. With K = 1 it saves nothing.
//
// UpdateAll panics at once, before any change, if Update would panic for an event, or if lengths differ.
func (p *Posterior) UpdateAll(xs [][]float64, ys, phis []float64) iter.Seq2[int, Site] {
	if len(ys) != len(xs) || phis != nil && len(phis) != len(xs) {
		panic(fmt.Sprintf("blr: %d labels and %d powers for %d events", len(ys), len(phis), len(xs)))
	}
	short := make([][]float64, len(xs))
	power := func(i int) float64 {
		if phis == nil {
			return 1
		}
		return phis[i]
	}
	for i, x := range xs {
		p.checkLength(len(x))
		short[i], _ = Shortened(x)
		checkLabel(ys[i], power(i))
	}
	return func(yield func(int, Site) bool) {
		var next ahead
		for i, x := range short {
			next.vx(p, short[i:])
			m, a := p.momentsAlong(x)
			site := p.absorb(x, m, a, ys[i], power(i))
			updates, corrections := p.updates, p.corrections
			if !yield(i, site) {
				return
			}
			if p.updates != updates || p.corrections != corrections {
				panic("blr: the posterior was changed in a loop over UpdateAll")
			}
		}
	}
}

// An ahead computes Vx of the events that follow, while V₀ stays as it is. Rows p.block.n to end−1 of p.block.u wait
// for their events and hold V₀x. Rows before near also hold the sum Σ gⱼ(uⱼᵀx)·uⱼ of the events before row from.
type ahead struct {
	from, near, end int
	changes         uint64 // p.block.changes when V₀ was read
	scratch         []float64
}

// deflated is how many rows an ahead deflates at once, and by how many events at once. 24 rows of 1,024 inputs fit
// the second cache.
const deflated = 8

// vx sets p.u = Vx for the first of the events that follow.
func (a *ahead) vx(p *Posterior, xs [][]float64) {
	b := &p.block
	if b.size == 1 {
		p.vx(p.u, xs[0])
		return
	}
	if b.n >= a.end || b.changes != a.changes {
		a.read(p, xs[:min(len(xs), b.size-b.n, p.untilWritten())])
	}
	if b.n == a.near {
		a.deflate(b)
	}
	copy(p.u, b.row(b.u, b.n))
	b.deflateBy(p.u, xs[0], a.from, b.n)
}

// read sets the rows that follow to V₀x for each x of xs.
func (a *ahead) read(p *Posterior, xs [][]float64) {
	b := &p.block
	a.near, a.end, a.changes = b.n, b.n+len(xs), b.changes
	for j, x := range xs {
		copy(b.row(b.x, b.n+j), x)
	}
	if need := triangle.VectorsScratch(p.dim, len(xs)); need > len(a.scratch) {
		a.scratch = make([]float64, need)
	}
	p.cov.MulVecs(b.rows(b.u, b.n, a.end), b.rows(b.x, b.n, a.end), p.dim, len(xs), a.scratch)
}

// deflate adds the events in the block to the next rows.
func (a *ahead) deflate(b *block) {
	a.from, a.near = b.n, min(b.n+deflated, a.end)
	for first := 0; first < b.n; first += deflated {
		for j := a.from; j < a.near; j++ {
			b.deflateBy(b.row(b.u, j), b.row(b.x, j), first, min(first+deflated, b.n))
		}
	}
}

// untilWritten returns after how many updates V changes at the latest, if the block does not fill before.
func (p *Posterior) untilWritten() int {
	until := func(every uint64) uint64 { return every - p.updates%every }
	least := min(until(probeEvery), until(uint64(p.refactor)))
	if p.halfLife != 0 {
		least = min(least, until(forgetEvery))
	}
	return int(least)
}
