package blr

import (
	"errors"
	"fmt"
	"math"

	"hamlet/algos/internal/codec"
	"hamlet/algos/internal/logistic"
)

// The bytes of a Posterior, version 1. Integers and float64 bits are little-endian. D inputs
// and n events in an unfinished block make 88 + 32·D + 8·D(D+1) + 16·n(D+1) bytes.
//
//	offset        size      field
//	0             4         "hblr"
//	4             1         version, 1
//	5             1         site
//	6             2         block, 0 for 1
//	8             4         D
//	12            4         refactor
//	16            8         updates
//	24            8         factorings on schedule
//	32            8         factorings as repair
//	40            8         pivots raised
//	48            8         ln|V|
//	56            8         log evidence
//	64            8         half-life, 0 for none
//	72            8         corrections
//	80            8         ξ tolerance, 0 for the fixed point
//	88            8·D       prior mean
//	88 +  8·D     8·D       prior precision
//	88 + 16·D     8·D       η
//	88 + 24·D     8·D       w
//	88 + 32·D     4·D(D+1)  Λ, upper triangle by rows
//	…             4·D(D+1)  V, likewise; Λ and V lack the events in the block
//	…             8·n       g of each event in the block: V is this + Σ g·uuᵀ
//	…             8·n       h: Λ is this + Σ h·xxᵀ
//	…             8·n·D     u = Vx
//	…             8·n·D     x
//
// V and w are saved although (Λ, η) determine them: computed again they would differ in
// the last bits.
const (
	magic      = "hblr"
	version    = 1
	headerSize = 88
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not a
// posterior of a version that this program reads. Take another copy.
var ErrFormat = errors.New("not the bytes of a blr posterior")

// binarySize is the size of a posterior without events in a block.
func binarySize(dim uint32) uint64 {
	d := uint64(dim)
	return headerSize + 32*d + 8*d*(d+1)
}

// blockSize is what one event in an unfinished block adds.
func blockSize(dim uint32) uint64 { return 16 * (uint64(dim) + 1) }

// numbers returns the numbers after the header in the order of their bytes.
func (p *Posterior) numbers() [10][]float64 {
	n := p.block.n
	return [...][]float64{p.mean0, p.precision0, p.eta, p.mean, p.precision, p.cov,
		p.block.g[:n], p.block.h[:n], p.block.u[:n*p.dim], p.block.x[:n*p.dim]}
}

// AppendBinary appends the bytes of p. The error is always nil.
func (p *Posterior) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Header(magic, version)
	w.Uint8(byte(p.site))
	block := uint16(p.block.size)
	if block == 1 {
		block = 0
	}
	w.Uint16(block)
	w.Uint32(uint32(p.dim), uint32(p.refactor))
	w.Uint64(p.updates, p.scheduled, p.repaired, p.raised)
	w.Float64(p.logDetV, p.logEvidence, p.halfLife)
	w.Uint64(p.corrections)
	w.Float64(p.xiStop)
	for _, v := range p.numbers() {
		w.Float64(v...)
	}
	return w.Finish()
}

// UnmarshalBinary sets p, which may be the zero value, to the posterior in b. It keeps no
// reference to b. Later updates give the same bits as without saving. If b has a wrong
// version or length, or a number that is not finite, or a variance that is not positive,
// the error wraps ErrFormat and p is unchanged.
func (p *Posterior) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	r.Header(magic, version)
	site, block := Approximation(r.Uint8()), r.Uint16()
	dim, refactor := r.Uint32(), r.Uint32()
	q := &Posterior{site: site, refactor: int(refactor)}
	r.Uint64To(&q.updates, &q.scheduled, &q.repaired, &q.raised)
	r.FiniteTo(&q.logDetV, &q.logEvidence)
	halfLife := r.Float64()
	q.corrections = r.Uint64()
	q.xiStop = r.Float64()
	switch {
	case block == 1 || block > MaxBlock:
		r.Fail("block %d", block)
	case site > ExactRVGA || refactor == 0:
		r.Fail("site %d, refactor %d", site, refactor)
	case math.Float64bits(halfLife) != 0 && !validHalfLife(halfLife):
		r.Fail("half-life %v", halfLife)
	case math.Float64bits(q.xiStop) != 0 && (!validTolerance(q.xiStop) || site != JaakkolaJordan):
		r.Fail("xi tolerance %v", q.xiStop)
	case dim < 1 || dim > MaxDim || uint64(len(b)) < binarySize(dim):
		r.Fail("%d bytes for %d inputs", len(b), dim)
	}
	if r.Err() != nil {
		return r.Err()
	}
	n := (uint64(len(b)) - binarySize(dim)) / blockSize(dim)
	if n >= max(uint64(block), 1) {
		r.Fail("%d bytes for %d inputs and a block of %d", len(b), dim, block)
		return r.Err()
	}

	q.allocate(int(dim), int(max(block, 1)))
	q.block.n = int(n)
	q.setHalfLife(halfLife)
	for _, v := range q.numbers() {
		r.Fill(v)
	}
	for j, τ := range q.precision0 {
		if !validPrecision(τ) || !(q.precision.At(q.dim, j, j) > 0) || !(q.cov.At(q.dim, j, j) > 0) {
			r.Fail("a variance of input %d that is not positive", j)
		}
	}
	if err := r.Close(); err != nil {
		return err
	}
	*p = *q
	return nil
}

// HalfLife returns the half-life in events of a posterior whose evidence decays by the
// factor ρ with each event, 0 < ρ < 1: ρ^HalfLife = ½.
func HalfLife(ρ float64) float64 { return -math.Ln2 / logistic.Log(ρ) }

// sane bounds the weights and the log evidence of a restored posterior. Weights that were
// learnt are below 1,000.
const sane = 1e30

// Read reads a posterior that [codec.Writer.Part64] wrote: its length, then its bytes. If
// CheckAs refuses the posterior, r fails.
func Read(r *codec.Reader, fresh *Posterior) *Posterior {
	p := new(Posterior)
	r.Unmarshal64(p)
	if r.Err() == nil {
		if err := p.CheckAs(fresh); err != nil {
			r.Fail("%w", err)
		}
	}
	return p
}

// CheckAs returns an error if p and fresh have different configurations, or if p holds
// numbers that learning cannot produce. It costs as much as Check.
func (p *Posterior) CheckAs(fresh *Posterior) error {
	if !p.Alike(fresh) {
		return fmt.Errorf("a head of %d inputs and site %v does not match the configuration: "+
			"its prior, half-life or site is another", p.Dim(), p.Approximation())
	}
	for j, w := range p.mean {
		if !(math.Abs(w) <= sane) {
			return fmt.Errorf("head with weight %v of input %d", w, j)
		}
	}
	if !(math.Abs(p.LogEvidence()) <= sane) {
		return fmt.Errorf("head with log evidence %v", p.LogEvidence())
	}
	return p.Check()
}
