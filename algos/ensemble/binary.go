package ensemble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"hamlet/algos/bblr"
	"hamlet/algos/boost"
	"hamlet/algos/poeboost"
	"hamlet/algos/viboost"
)

// The bytes of an Ensemble, version 1. Integers are little-endian; there are no
// more and no fewer bytes than drawn.
//
//	offset  size  field
//	0       4     "hens"
//	4       1     version, 1
//	5       1     kind, its place in Kinds from 0
//	6       2     zero
//	8       4     D
//	12      4     L
//	16      L     the bytes of the booster's own ensemble, as its package draws them
const (
	magic      = "hens"
	version    = 1
	headerSize = 16
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not an
// ensemble of a version that this program reads. Build it anew.
var ErrFormat = errors.New("not the bytes of an ensemble")

// largest bounds what a booster's ensemble may answer, so that no answer is beyond
// float64. The most that Build can make is 2·MaxRounds leaves of some hundreds.
const largest = math.MaxFloat64 / 4

// AppendBinary appends the bytes of e. The error says that e is the zero value.
func (e *Ensemble) AppendBinary(dst []byte) ([]byte, error) {
	if e.function == nil {
		return dst, errors.New("write an ensemble: it was not built: want one of Build")
	}
	start := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, version, byte(slices.Index(kinds[:], e.kind)), 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(e.dim))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst, err := e.function.AppendBinary(dst)
	if err != nil {
		return dst, err
	}
	binary.LittleEndian.PutUint32(dst[start+12:], uint32(len(dst)-start-headerSize))
	return dst, nil
}

// MarshalBinary returns the bytes of e. The error says that e is the zero value.
func (e *Ensemble) MarshalBinary() ([]byte, error) { return e.AppendBinary(nil) }

// UnmarshalBinary replaces e, which may be the zero value, by what b holds; it
// keeps no reference to b. If b is of another version, cut short, too long, of an
// unknown kind, or holds what no ensemble of the kind can, the error wraps
// ErrFormat and e is as before.
func (e *Ensemble) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:4]) != magic {
		return fmt.Errorf("read %d bytes: %w", len(b), ErrFormat)
	}
	if b[4] != version {
		return fmt.Errorf("read version %d, this program knows %d: %w", b[4], version, ErrFormat)
	}
	if int(b[5]) >= len(kinds) || b[6]|b[7] != 0 {
		return fmt.Errorf("read kind %d of %d: %w", b[5], len(kinds), ErrFormat)
	}
	kind, dim, size := kinds[b[5]], le.Uint32(b[8:]), le.Uint32(b[12:])
	if uint64(len(b)) != headerSize+uint64(size) {
		return fmt.Errorf("read %d bytes of %s for a length of %d: %w", len(b), kind, size, ErrFormat)
	}
	f, d, err := readFunction(kind, b[headerSize:])
	if err != nil {
		return fmt.Errorf("read %s: %w: %w", kind, ErrFormat, err)
	}
	if uint64(d) != uint64(dim) {
		return fmt.Errorf("read %s of %d inputs for %d: %w", kind, d, dim, ErrFormat)
	}
	*e = Ensemble{kind: kind, dim: d, function: f}
	return nil
}

// readFunction reads the bytes of a kind's own ensemble and returns its number of
// inputs with it. The error says what an ensemble of that kind cannot be.
func readFunction(kind Kind, b []byte) (f function, dim int, err error) {
	switch kind {
	case POEBoostDS, POEBoostCS:
		m := new(poeboost.Ensemble)
		if err := m.UnmarshalBinary(b); err != nil {
			return nil, 0, err
		}
		if votes := kind == POEBoostDS; votes && len(m.Opinions()) > 0 || !votes && len(m.Votes()) > 0 {
			return nil, 0, errors.New("the experts are those of another kind")
		}
		return m, m.Dim(), nil
	case VIBoost:
		m := new(viboost.Ensemble)
		if err := m.UnmarshalBinary(b); err != nil {
			return nil, 0, err
		}
		sum := 0.0
		for _, t := range m.Terms() {
			sum += math.Abs(t.Alpha)
		}
		return m, m.Dim(), checkSize(sum)
	case BBLR:
		m := new(bblr.Linear)
		if err := m.UnmarshalBinary(b); err != nil {
			return nil, 0, err
		}
		w, _ := m.Weights()
		return m, len(w), checkLinear(m)
	}
	m := new(boost.Ensemble)
	if err := m.UnmarshalBinary(b); err != nil {
		return nil, 0, err
	}
	return m, m.Dim(), checkBoost(kind, m)
}

// checkBoost says how an ensemble of package boost is not one of the kind.
func checkBoost(kind Kind, m *boost.Ensemble) error {
	sum := 0.0
	for _, t := range m.Trees() {
		if kind == BHBoost || kind == AdaBoost && t.Depth() != 1 {
			return errors.New("the trees are those of another kind")
		}
		sum += max(math.Abs(t.Leaves[0]), math.Abs(t.Leaves[1]), math.Abs(t.Leaves[2]), math.Abs(t.Leaves[3]))
	}
	for _, p := range m.Profiles() {
		if kind != BHBoost {
			return errors.New("the profiles are those of another kind")
		}
		most := 0.0
		for _, s := range p.Scores {
			most = max(most, math.Abs(s))
		}
		sum += most
	}
	return checkSize(sum)
}

// checkLinear says whether a mixture is certain of one label, so that its log-odds
// are infinite far out.
func checkLinear(m *bblr.Linear) error {
	l := m.Likelihood()
	return checkSize(max(math.Abs(l.LogOdds(math.MaxFloat64)), math.Abs(l.LogOdds(-math.MaxFloat64))))
}

// checkSize says whether answers may be larger than float64 holds.
func checkSize(most float64) error {
	if !(most <= largest) {
		return fmt.Errorf("answers up to %v: want at most %v", most, largest)
	}
	return nil
}
