package boost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The bytes of an Ensemble, version 1. Integers and float64 bits are
// little-endian; there is nothing behind the last hypothesis.
//
//	offset   size       field
//	0        4          "hbst"
//	4        1          version, 1
//	5        3          zero
//	8        4          D
//	12       4          number of trees
//	16       4          number of profiles
//	20       4          zero
//	24       68 each    trees: feature (int32, −1 for none) and threshold of the
//	                    root, the left child and the right child; four leaves
//	…        variable   profiles: feature (uint32), number of edges E (uint32),
//	                    E edges, E+1 scores
const (
	magic      = "hbst"
	version    = 1
	headerSize = 24
	treeSize   = 3*12 + 4*8
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not an
// ensemble of a version that this program reads. Build it anew.
var ErrFormat = errors.New("not the bytes of a boosted ensemble")

// AppendBinary appends the bytes of e. The error is always nil.
func (e *Ensemble) AppendBinary(dst []byte) ([]byte, error) {
	le := binary.LittleEndian
	dst = append(dst, magic...)
	dst = append(dst, version, 0, 0, 0)
	for _, n := range [...]int{e.dim, len(e.trees), len(e.profiles), 0} {
		dst = le.AppendUint32(dst, uint32(n))
	}
	number := func(v float64) { dst = le.AppendUint64(dst, math.Float64bits(v)) }
	for _, t := range e.trees {
		for _, s := range [...]Split{t.Root, t.Children[0], t.Children[1]} {
			dst = le.AppendUint32(dst, uint32(int32(s.Feature)))
			number(s.Threshold)
		}
		for _, v := range t.Leaves {
			number(v)
		}
	}
	for _, p := range e.profiles {
		dst = le.AppendUint32(dst, uint32(p.Feature))
		dst = le.AppendUint32(dst, uint32(len(p.Edges)))
		for _, v := range p.Edges {
			number(v)
		}
		for _, v := range p.Scores {
			number(v)
		}
	}
	return dst, nil
}

// MarshalBinary returns the bytes of e. The error is always nil.
func (e *Ensemble) MarshalBinary() ([]byte, error) { return e.AppendBinary(nil) }

// UnmarshalBinary replaces e, which may be the zero value, by what b holds; it
// keeps no reference to b. If b is of another version, cut short, too long, or
// holds what no ensemble can (a feature beyond D, edges that descend, a number
// that is not finite), the error wraps ErrFormat and e is as before.
func (e *Ensemble) UnmarshalBinary(b []byte) error {
	r := reader{rest: b}
	if len(b) < headerSize || string(b[:4]) != magic {
		return fmt.Errorf("read %d bytes: %w", len(b), ErrFormat)
	}
	if b[4] != version {
		return fmt.Errorf("read version %d, this program knows %d: %w", b[4], version, ErrFormat)
	}
	r.rest = b[8:]
	zeros := binary.LittleEndian.Uint32(b[4:]) >> 8
	dim, trees, profiles := r.uint32(), r.uint32(), r.uint32()
	if zeros|r.uint32() != 0 || dim < 1 || dim > math.MaxInt32 {
		return fmt.Errorf("read a header for %d inputs: %w", dim, ErrFormat)
	}
	if uint64(trees)*treeSize+uint64(profiles)*16 > uint64(len(r.rest)) {
		return fmt.Errorf("read %d bytes for %d trees and %d profiles: %w", len(b), trees, profiles, ErrFormat)
	}

	q := Ensemble{dim: int(dim), trees: make([]Tree, trees), profiles: make([]Profile, profiles)}
	for i := range q.trees {
		t := &q.trees[i]
		for _, s := range [...]*Split{&t.Root, &t.Children[0], &t.Children[1]} {
			s.Feature, s.Threshold = int(int32(r.uint32())), r.float64()
			if s.Feature < noFeature || s.Feature >= q.dim {
				return fmt.Errorf("read a split of input %d of %d in tree %d: %w", s.Feature, dim, i, ErrFormat)
			}
		}
		for k := range t.Leaves {
			t.Leaves[k] = r.float64()
		}
	}
	for i := range q.profiles {
		p := &q.profiles[i]
		feature, edges := r.uint32(), r.uint32()
		if feature >= dim || edges >= MaxBins || uint64(edges)*16+8 > uint64(len(r.rest)) {
			return fmt.Errorf("read profile %d of input %d with %d edges: %w", i, feature, edges, ErrFormat)
		}
		*p = Profile{Feature: int(feature), Edges: make([]float64, edges), Scores: make([]float64, edges+1)}
		for k := range p.Edges {
			p.Edges[k] = r.float64()
			if k > 0 && p.Edges[k] < p.Edges[k-1] {
				return fmt.Errorf("read edges that descend in profile %d: %w", i, ErrFormat)
			}
		}
		for k := range p.Scores {
			p.Scores[k] = r.float64()
		}
	}
	if len(r.rest) != 0 || r.short {
		return fmt.Errorf("read %d bytes for %d trees and %d profiles: %w", len(b), trees, profiles, ErrFormat)
	}
	if r.finite != 0 {
		return fmt.Errorf("read a number that is not finite: %w", ErrFormat)
	}
	*e = q
	return nil
}

// A reader takes numbers off bytes; beyond their end it yields zeros.
type reader struct {
	rest   []byte
	short  bool    // the bytes have ended too early
	finite float64 // 0, or NaN once a number was not finite
}

func (r *reader) uint32() uint32 {
	if len(r.rest) < 4 {
		r.short = true
		return 0
	}
	v := binary.LittleEndian.Uint32(r.rest)
	r.rest = r.rest[4:]
	return v
}

func (r *reader) float64() float64 {
	if len(r.rest) < 8 {
		r.short = true
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.rest))
	r.rest = r.rest[8:]
	r.finite += v - v
	return v
}
