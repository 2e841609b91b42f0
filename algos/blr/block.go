package blr

import "hamlet/algos/internal/triangle"

// A block holds the events since V and Λ were last written, at most K of them. In it
//
//	V = V₀ + Σ gⱼ·uⱼuⱼᵀ,   Λ = Λ₀ + Σ hⱼ·xⱼxⱼᵀ,   gⱼ = −hⱼ/(1+hⱼaⱼ),
//
// where V₀ and Λ₀ are the matrices as written. An event needs
//
//	u = Vx = V₀x + Σ gⱼ(uⱼᵀx)·uⱼ.
//
// V₀x can be computed for all known events of a block in one pass over V₀, and the sums
// are added to the matrices once in K events. V₀x has the same bits whether it is computed
// alone or with others, so the posterior's bits depend on the events and K alone. With
// K = 1, which the product uses, the block is always empty.
type block struct {
	size int // K, at least 1
	n    int // events in it, below K

	g, h []float64 // K
	u, x []float64 // K rows of D

	// Scratch: interleaved columns of x and V₀x, and packed vectors.
	known, product, sums []float64
}

// MaxBlock bounds Config.Block: V is probed at every 64th event, and written first.
const MaxBlock = probeEvery

func newBlock(size, dim int) block {
	b := block{size: size}
	if size > 1 {
		columns := (size + 3) &^ 3
		b.g, b.h = make([]float64, size), make([]float64, size)
		b.u, b.x = make([]float64, size*dim), make([]float64, size*dim)
		b.known, b.product, b.sums = make([]float64, columns*dim), make([]float64, columns*(dim+8)), make([]float64, columns*dim)
	}
	return b
}

func (b *block) row(of []float64, j int) []float64 {
	dim := len(b.u) / b.size
	return of[j*dim : (j+1)*dim]
}

// deflate turns u = V₀x into Vx.
func (b *block) deflate(u, x []float64) {
	for j := range b.n {
		uj := b.row(b.u, j)
		triangle.Axpy(u, -float64(b.g[j]*triangle.Dot(uj, x)), uj)
	}
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
func (b *block) written(a triangle.Matrix, g, v []float64, dim int) triangle.Matrix {
	if b.n == 0 {
		return a
	}
	sum := append(triangle.Matrix(nil), a...)
	sum.AddRank(g[:b.n], v, make([]float64, b.n*(dim+8)), make([]float64, b.n*dim), dim)
	return sum
}

// covarianceNow returns V with the events in the block.
func (p *Posterior) covarianceNow() triangle.Matrix {
	return p.block.written(p.cov, p.block.g, p.block.u, p.dim)
}

// precisionNow returns Λ with the events in the block.
func (p *Posterior) precisionNow() triangle.Matrix {
	return p.block.written(p.precision, p.block.h, p.block.x, p.dim)
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
	p.cov.AddRank(b.g[:b.n], b.u, b.product, b.sums, p.dim)
	p.precision.AddRank(b.h[:b.n], b.x, b.product, b.sums, p.dim)
	b.n = 0
	p.writes++
}

// add adds h·xxᵀ to Λ and g·uuᵀ to V, g = −h/(1+ha), now or in the next write.
func (p *Posterior) add(x, u []float64, h, g float64) {
	b := &p.block
	if b.size == 1 {
		p.precision.AddOuter(h, x)
		p.cov.AddOuter(g, u)
		p.writes++
		return
	}
	b.g[b.n], b.h[b.n] = g, h
	copy(b.row(b.u, b.n), u)
	copy(b.row(b.x, b.n), x)
	b.n++
}

// UpdateMany absorbs the events xs in order, to the same bits as Update does, and
// appends their sites to dst. With Config.Block above 1 it multiplies V by all
// events of a block at once. For each event label gets its number and the moments m and a
// of its log-odds under the belief before it, and returns y and phi. label may not touch
// p. UpdateMany panics before any change if an event has a wrong length or an entry that
// is not finite. It panics at an invalid label when it reaches the event.
func (p *Posterior) UpdateMany(dst []Site, xs [][]float64, label func(k int, m, a float64) (y, phi float64)) []Site {
	vectors := make([][]float64, len(xs))
	for k, x := range xs {
		p.checkLength(len(x))
		vectors[k], _ = Shortened(x)
	}
	b := &p.block
	for k := 0; k < len(vectors); {
		n := min(b.size-b.n, len(vectors)-k)
		together := n > 1
		if together {
			triangle.Interleave(b.known, vectors[k:k+n], p.dim)
			columns := 4 * p.dim * ((n + 3) / 4)
			p.cov.MulColumns(b.product, b.known[:columns], b.sums, p.dim)
		}
		for c, writes := 0, p.writes; c < n && p.writes == writes; c++ {
			x := vectors[k]
			if together {
				column := b.product[4*p.dim*(c/4)+c%4:]
				for j := range p.u {
					p.u[j] = column[4*j]
				}
				b.deflate(p.u, x)
			} else {
				p.vx(p.u, x)
			}
			m, a := p.momentsAlong(x)
			y, phi := label(k, m, a)
			checkLabel(y, phi)
			dst = append(dst, p.absorb(x, m, a, y, phi))
			k++
		}
	}
	return dst
}
