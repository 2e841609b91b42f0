package blr

// A block holds the events since V and Λ were last written, at most K of them.
// In it
//
//	V = V₀ + Σ gⱼ·uⱼuⱼᵀ,   Λ = Λ₀ + Σ hⱼ·xⱼxⱼᵀ,   gⱼ = −hⱼ/(1+hⱼaⱼ),
//
// where V₀ and Λ₀ are the matrices as written. An event needs u = Vx, and
//
//	u = V₀x + Σ gⱼ(uⱼᵀx)·uⱼ,
//
// so that the semantics are those of events one by one. What is gained: V₀x can be
// computed for all events of a block that are known, reading V₀ once for many of
// them, and the two sums are added to the matrices in one go, which reads and
// writes them once in K events. w, η and ln|V| are kept up with every event.
//
// V₀x has the same bits whether it is computed alone or with others, so the
// posterior's bits depend on the events and on K alone, not on how many of them
// came at a time.
type block struct {
	size int // K, at least 1
	n    int // events in it, below K

	g, h []float64 // K
	u, x []float64 // K rows of D

	// Scratch: columns of V₀x under way, four by four, and packed vectors.
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
		axpy(u, -float64(b.g[j]*dot(uj, x)), uj)
	}
}

// variance is what the events in the block add to xᵀV₀x; it is not positive.
func (b *block) variance(x []float64) float64 {
	sum := 0.0
	for j := range b.n {
		s := dot(b.row(b.u, j), x)
		sum += float64(b.g[j] * float64(s*s))
	}
	return sum
}

// written returns a + Σ gⱼvⱼvⱼᵀ for the events in the block, a itself if there are
// none.
func (b *block) written(a triangle, g, v []float64, dim int) triangle {
	if b.n == 0 {
		return a
	}
	sum := append(triangle(nil), a...)
	sum.addRank(g[:b.n], v, make([]float64, b.n*(dim+8)), make([]float64, b.n*dim), dim)
	return sum
}

// covarianceNow returns V, the events in the block included.
func (p *Posterior) covarianceNow() triangle {
	return p.block.written(p.cov, p.block.g, p.block.u, p.dim)
}

// precisionNow returns Λ, the same.
func (p *Posterior) precisionNow() triangle {
	return p.block.written(p.precision, p.block.h, p.block.x, p.dim)
}

// vx sets u = Vx.
func (p *Posterior) vx(u, x []float64) {
	p.cov.mulVec(u, x)
	p.block.deflate(u, x)
}

// write ends the block.
func (p *Posterior) write() {
	b := &p.block
	if b.n == 0 {
		return
	}
	p.cov.addRank(b.g[:b.n], b.u, b.product, b.sums, p.dim)
	p.precision.addRank(b.h[:b.n], b.x, b.product, b.sums, p.dim)
	b.n = 0
	p.writes++
}

// add adds h·xxᵀ to Λ, for which V changes by g·uuᵀ, g = −h/(1+ha), now or when
// the block ends.
func (p *Posterior) add(x, u []float64, h, g float64) {
	b := &p.block
	if b.size == 1 {
		p.precision.addOuter(h, x)
		p.cov.addOuter(g, u)
		p.writes++
		return
	}
	b.g[b.n], b.h[b.n] = g, h
	copy(b.row(b.u, b.n), u)
	copy(b.row(b.x, b.n), x)
	b.n++
}
