package ensemble

import (
	"errors"
	"fmt"

	"hamlet/algos/internal/codec"
)

// The bytes of an Ensemble, version 1. Integers are little-endian.
//
//	offset  size  field
//	0       4     "hens"
//	4       1     version, 1
//	5       1     kind: its index in boosters
//	6       2     zero
//	8       4     D
//	12      4     L
//	16      L     the bytes of the booster's own ensemble, as its package documents them
const (
	magic   = "hens"
	version = 1
)

// ErrFormat is the cause of every error of UnmarshalBinary: the bytes are not an
// ensemble of a version that this program reads. Build another.
var ErrFormat = errors.New("not the bytes of an ensemble")

// AppendBinary appends the bytes of e. It returns an error if e is the zero value.
func (e *Ensemble) AppendBinary(dst []byte) ([]byte, error) {
	if e.function == nil {
		return dst, errors.New("write an ensemble: it was not built: want one of Build")
	}
	w := codec.NewWriter(dst)
	w.Header(magic, version)
	w.Uint8(uint8(e.kind.code()))
	w.Zeros(2)
	w.Uint32(uint32(e.dim))
	w.Part32(e.function)
	return w.Finish()
}

// UnmarshalBinary sets e, which may be the zero value, to the ensemble in b. It keeps no
// reference to b. If b is invalid or of an unknown kind or version, the error wraps
// ErrFormat and e is unchanged.
func (e *Ensemble) UnmarshalBinary(b []byte) error {
	r := codec.NewReader(b, ErrFormat)
	r.Header(magic, version)
	code := r.Uint8()
	r.Zeros(2)
	dim := r.Uint32()
	own := r.Part32()
	if int(code) >= len(boosters) {
		r.Fail("kind %d of %d", code, len(boosters))
	}
	if err := r.Close(); err != nil {
		return err
	}
	kind := boosters[code].kind
	f, err := boosters[code].read(own)
	if err != nil {
		return fmt.Errorf("read %s: %w: %w", kind, ErrFormat, err)
	}
	if uint64(f.Dim()) != uint64(dim) {
		return fmt.Errorf("read %s of %d inputs for %d: %w", kind, f.Dim(), dim, ErrFormat)
	}
	*e = Ensemble{kind: kind, dim: f.Dim(), function: f}
	return nil
}
