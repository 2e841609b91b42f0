package boost

import (
	"errors"
	"math"
	"slices"

	"hamlet/algos/internal/codec"
)

// The bytes of an Ensemble, version 1. Integers and float64 bits are little-endian.
// No bytes follow the last hypothesis.
//
//	offset   size       field
//	0        4          "hbst"
//	4        1          version, 1
//	5        1          depth of the trees of a grove, 0 without one
//	6        2          zero
//	8        4          D
//	12       4          number of trees
//	16       4          number of profiles
//	20       4          number of trees of the grove
//	24       68 each    trees: feature (int32, −1 for none) and threshold of the
//	                    root, the left child and the right child; four leaves
//	…        variable   profiles: feature (uint32), number of edges E (uint32),
//	                    E edges, E+1 scores
//	…        variable   the grove's trees, as drawn in grove.go
const (
	magic      = "hbst"
	version    = 1
	headerSize = 24
	treeSize   = 3*12 + 4*8

	leastProfile = 4 + 4 + 8 // without edges
)

// ErrFormat is wrapped by every error of UnmarshalBinary: the bytes are not an
// ensemble in a known version. Build another.
var ErrFormat = errors.New("not the bytes of a boosted ensemble")

// AppendBinary appends the bytes of e. The error is always nil.
func (e *Ensemble) AppendBinary(dst []byte) ([]byte, error) {
	w := codec.NewWriter(dst)
	w.Header(magic, version)
	w.Uint8(uint8(e.grove.depth))
	w.Zeros(2)
	w.Uint32(uint32(e.dim), uint32(len(e.trees)), uint32(len(e.profiles)), uint32(e.grove.len()))
	for _, t := range e.trees {
		for _, s := range [...]Split{t.Root, t.Children[0], t.Children[1]} {
			w.Uint32(uint32(int32(s.Feature)))
			w.Float64(s.Threshold)
		}
		w.Float64(t.Leaves[:]...)
	}
	for _, p := range e.profiles {
		w.Uint32(uint32(p.Feature), uint32(len(p.Edges)))
		w.Float64(p.Edges...)
		w.Float64(p.Scores...)
	}
	e.grove.write(w)
	return w.Finish()
}

// UnmarshalBinary replaces e, which may be the zero value, by the ensemble in b. It
// keeps no reference to b. If b has another version, another length, or impossible
// content (a feature ≥ D, descending edges, a number that is not finite), the error
// wraps ErrFormat and e is unchanged.
func (e *Ensemble) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	r.Header(magic, version)
	depth := r.Uint8()
	r.Zeros(2)
	dim, trees, profiles, grown := r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32()
	if dim < 1 || dim > math.MaxInt32 {
		r.Fail("%d inputs", dim)
	}
	q := Ensemble{dim: int(dim)}
	if r.Fits(uint64(trees), treeSize) {
		q.trees = make([]Tree, trees)
	}
	for i := range q.trees {
		q.trees[i].read(r, q.dim)
	}
	if r.Fits(uint64(profiles), leastProfile) {
		q.profiles = make([]Profile, profiles)
	}
	for i := range q.profiles {
		q.profiles[i].read(r, dim)
	}
	q.grove = readGrove(r, grown, uint32(depth), q.dim)
	if err := r.Close(); err != nil {
		return err
	}
	*e = q
	return nil
}

// read reads a tree on dim inputs.
func (t *Tree) read(r *codec.Reader, dim int) {
	for _, s := range [...]*Split{&t.Root, &t.Children[0], &t.Children[1]} {
		s.Feature, s.Threshold = int(int32(r.Uint32())), r.Finite()
		if s.Feature < noFeature || s.Feature >= dim {
			r.Fail("a split of input %d of %d", s.Feature, dim)
		}
	}
	r.Fill(t.Leaves[:])
}

// read reads a profile on dim inputs.
func (p *Profile) read(r *codec.Reader, dim uint32) {
	feature, edges := r.Uint32(), r.Uint32()
	if feature >= dim || edges >= MaxBins {
		r.Fail("a profile of input %d of %d with %d edges", feature, dim, edges)
	}
	*p = Profile{Feature: int(feature), Edges: r.Finites(uint64(edges)), Scores: r.Finites(uint64(edges) + 1)}
	if !slices.IsSorted(p.Edges) {
		r.Fail("edges that descend")
	}
}
