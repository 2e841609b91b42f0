package blr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The bytes of a Posterior, version 1. Integers and float64 bits are
// little-endian; D inputs and n events in an unfinished block make
// 88 + 32·D + 8·D(D+1) + 16·n(D+1) bytes, no more and no less.
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
//	…             4·D(D+1)  V, the same, both without the events in the block
//	…             8·n       g of each event in the block: V is this + Σ g·uuᵀ
//	…             8·n       h: Λ is this + Σ h·xxᵀ
//	…             8·n·D     u = Vx
//	…             8·n·D     x
//
// V and w are saved although (Λ, η) determine them: made anew they would differ
// in the last bits, and going on would not be bit-equal.
const (
	magic      = "hblr"
	version    = 1
	headerSize = 88
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not a
// posterior of a version that this program reads. Take another copy.
var ErrFormat = errors.New("not the bytes of a blr posterior")

func binarySize(dim uint32) uint64 {
	d := uint64(dim)
	return headerSize + 32*d + 8*d*(d+1)
}

// blockSize is what one event in an unfinished block adds.
func blockSize(dim uint32) uint64 { return 16 * (uint64(dim) + 1) }

// AppendBinary appends the bytes of p. The error is always nil.
func (p *Posterior) AppendBinary(dst []byte) ([]byte, error) {
	le := binary.LittleEndian
	dst = append(dst, magic...)
	block := uint16(p.block.size)
	if block == 1 {
		block = 0
	}
	dst = append(dst, version, byte(p.site))
	dst = le.AppendUint16(dst, block)
	dst = le.AppendUint32(dst, uint32(p.dim))
	dst = le.AppendUint32(dst, uint32(p.refactor))
	for _, n := range [...]uint64{p.updates, p.scheduled, p.repaired, p.raised,
		math.Float64bits(p.logDetV), math.Float64bits(p.logEvidence), math.Float64bits(p.halfLife), p.corrections, math.Float64bits(p.xiStop)} {
		dst = le.AppendUint64(dst, n)
	}
	n := p.block.n
	for _, v := range [...][]float64{p.mean0, p.precision0, p.eta, p.mean, p.precision, p.cov,
		p.block.g[:n], p.block.h[:n], p.block.u[:n*p.dim], p.block.x[:n*p.dim]} {
		for _, x := range v {
			dst = le.AppendUint64(dst, math.Float64bits(x))
		}
	}
	return dst, nil
}

// MarshalBinary returns the bytes of p. The error is always nil.
func (p *Posterior) MarshalBinary() ([]byte, error) {
	return p.AppendBinary(make([]byte, 0, binarySize(uint32(p.dim))+blockSize(uint32(p.dim))*uint64(p.block.n)))
}

// UnmarshalBinary replaces p, which may be the zero value, by what b holds; it
// keeps no reference to b. Updates then go on bit for bit as if the posterior
// had never been saved. If b is of another version, cut short, too long, or
// holds what no posterior can (a variance that is not positive, a number that
// is not finite), the error wraps ErrFormat and p is as before.
func (p *Posterior) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:4]) != magic {
		return fmt.Errorf("read %d bytes: %w", len(b), ErrFormat)
	}
	if b[4] != version {
		return fmt.Errorf("read version %d, this program knows %d: %w", b[4], version, ErrFormat)
	}
	dim, refactor := le.Uint32(b[8:]), le.Uint32(b[12:])
	block := max(le.Uint16(b[6:]), 1)
	if le.Uint16(b[6:]) == 1 || block > MaxBlock {
		return fmt.Errorf("read block %d: %w", le.Uint16(b[6:]), ErrFormat)
	}
	if dim < 1 || dim > MaxDim || uint64(len(b)) < binarySize(dim) ||
		(uint64(len(b))-binarySize(dim))%blockSize(dim) != 0 || (uint64(len(b))-binarySize(dim))/blockSize(dim) >= uint64(block) {
		return fmt.Errorf("read %d bytes for %d inputs: %w", len(b), dim, ErrFormat)
	}
	if Site(b[5]) > ExactRVGA || refactor == 0 {
		return fmt.Errorf("read site %d, refactor %d: %w", b[5], refactor, ErrFormat)
	}
	halfLife := math.Float64frombits(le.Uint64(b[64:]))
	if le.Uint64(b[64:]) != 0 && !validHalfLife(halfLife) {
		return fmt.Errorf("read half-life %v: %w", halfLife, ErrFormat)
	}
	xiStop := math.Float64frombits(le.Uint64(b[80:]))
	if le.Uint64(b[80:]) != 0 && (!validTolerance(xiStop) || Site(b[5]) != JaakkolaJordan) {
		return fmt.Errorf("read xi tolerance %v: %w", xiStop, ErrFormat)
	}

	q := &Posterior{}
	q.allocate(int(dim), int(block))
	q.block.n = int((uint64(len(b)) - binarySize(dim)) / blockSize(dim))
	q.site, q.refactor = Site(b[5]), int(refactor)
	q.setHalfLife(halfLife)
	q.xiStop = xiStop
	q.corrections = le.Uint64(b[72:])
	q.updates, q.scheduled, q.repaired, q.raised = le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint64(b[40:])
	q.logDetV, q.logEvidence = math.Float64frombits(le.Uint64(b[48:])), math.Float64frombits(le.Uint64(b[56:]))
	finite := q.logDetV - q.logDetV + (q.logEvidence - q.logEvidence) // 0, or NaN
	b = b[headerSize:]
	n := q.block.n
	for _, v := range [...][]float64{q.mean0, q.precision0, q.eta, q.mean, q.precision, q.cov,
		q.block.g[:n], q.block.h[:n], q.block.u[:n*q.dim], q.block.x[:n*q.dim]} {
		for j := range v {
			v[j] = math.Float64frombits(le.Uint64(b))
			finite += v[j] - v[j]
			b = b[8:]
		}
	}
	if finite != 0 {
		return fmt.Errorf("read a number that is not finite: %w", ErrFormat)
	}
	for j, τ := range q.precision0 {
		if !validPrecision(τ) || !(q.precision.at(q.dim, j, j) > 0) || !(q.cov.at(q.dim, j, j) > 0) {
			return fmt.Errorf("read a variance of input %d that is not positive: %w", j, ErrFormat)
		}
	}
	*p = *q
	return nil
}
