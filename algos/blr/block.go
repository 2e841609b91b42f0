package blr

import (
	"slices"

	"hamlet/algos/internal/triangle"
)

// A block holds the events since V and Λ were last written, at most K of them. In it
//
//	V = V₀ + Σ gⱼ·uⱼuⱼᵀ,   Λ = Λ₀ + Σ hⱼ·xⱼxⱼᵀ,   gⱼ = −hⱼ/(1+hⱼaⱼ),
//
// where V₀ and Λ₀ are the matrices as written. An event needs
//
//	u = Vx = V₀x + Σ gⱼ(uⱼᵀx)·uⱼ.
//
// The sums are added to the matrices once in K events. With K = 1, which the product uses,
// the block is always empty.
type block struct {
	size int // K, at least 1
	n    int // events in it, below K

	g, h    []float64 // K
	u, x    []float64 // K rows of D
	scratch []float64 // of write

	changes uint64 // how often V₀ has changed; UpdateAll compares it
}

// MaxBlock bounds Config.Block: V is probed at every 64th event, and written first.
const MaxBlock = probeEvery

func newBlock(size, dim int) block {
	b := block{size: size}
	if size > 1 {
		b.g, b.h = make([]float64, size), make([]float64, size)
		b.u, b.x = make([]float64, size*dim), make([]float64, size*dim)
		b.scratch = make([]float64, triangle.OutersScratch(dim, size))
	}
	return b
}

func (b *block) row(of []float64, j int) []float64 { return b.rows(of, j, j+1) }

func (b *block) rows(of []float64, first, end int) []float64 {
	dim := len(b.u) / b.size
	return of[first*dim : end*dim]
}

// deflate turns u = V₀x into Vx.
func (b *block) deflate(u, x []float64) { b.deflateBy(u, x, 0, b.n) }

// deflateBy adds Σ gⱼ(uⱼᵀx)·uⱼ of the events first to end−1 to u.
func (b *block) deflateBy(u, x []float64, first, end int) {
	if first == end {
		return
	}
	var room [MaxBlock]float64
	by, uj := room[:end-first], b.rows(b.u, first, end)
	triangle.Dots(by, uj, x)
	for j := range by {
		by[j] = float64(b.g[first+j] * by[j])
	}
	triangle.AddRows(u, by, uj)
}

// variance returns what the events in the block add to xᵀV₀x: at most 0.
func (b *block) variance(x []float64) float64 {
	sum := 0.0
	for j := range b.n {
		s := triangle.Dot(b.row(b.u, j), x)
		sum += float64(b.g[j] * float64(s*s))
	}
	return sum
}

// written returns a + Σ gⱼvⱼvⱼᵀ for the events in the block.
func (b *block) written(a triangle.Matrix, g, v []float64) triangle.Matrix {
	if b.n == 0 {
		return a
	}
	sum, dim := slices.Clone(a), len(b.u)/b.size
	sum.AddOuters(dim, g[:b.n], v, make([]float64, triangle.OutersScratch(dim, b.n)))
	return sum
}

// covarianceNow returns V with the events in the block.
func (p *Posterior) covarianceNow() triangle.Matrix {
	return p.block.written(p.cov, p.block.g, p.block.u)
}

// precisionNow returns Λ with the events in the block.
func (p *Posterior) precisionNow() triangle.Matrix {
	return p.block.written(p.precision, p.block.h, p.block.x)
}

// vx sets u = Vx.
func (p *Posterior) vx(u, x []float64) {
	p.cov.MulVec(u, x)
	p.block.deflate(u, x)
}

// write adds the block's events to V and Λ and empties the block.
func (p *Posterior) write() {
	b := &p.block
	if b.n == 0 {
		return
	}
	p.cov.AddOuters(p.dim, b.g[:b.n], b.u, b.scratch)
	p.precision.AddOuters(p.dim, b.h[:b.n], b.x, b.scratch)
	b.n = 0
	b.changes++
}

// add adds h·xxᵀ to Λ and g·uuᵀ to V, g = −h/(1+ha), now or in the next write.
func (p *Posterior) add(x, u []float64, h, g float64) {
	b := &p.block
	if b.size == 1 {
		p.precision.AddOuter(h, x)
		p.cov.AddOuter(g, u)
		return
	}
	b.g[b.n], b.h[b.n] = g, h
	copy(b.row(b.u, b.n), u)
	copy(b.row(b.x, b.n), x)
	b.n++
}
