package sequencer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"hamlet/state"
	"hamlet/stream/order"
)

// The bytes of a State stand in a checkpoint. They are, with all integers big-endian,
//
//	at  bytes
//	 0   8    "hamletSQ"
//	 8   4    version of this layout: 1, or 2 with a lineage
//	12  72    position in the order log
//	84   4    P, number of partitions
//	88  76P   for each partition: position, and 4 bytes of accepted gaps
//	    32    only in version 2: the lineage, not zero
//
// A position is its next offset in 8 bytes, its chain in 32, and the chain before the last
// record in 32. Nothing follows. Each state has one encoding.
const (
	stateMagic    = "hamletSQ"
	stateVersion  = 2 // the newest; without a lineage, 1 is written
	positionBytes = 8 + 2*sha256.Size
	stateHeader   = 12 + positionBytes + 4
	placeBytes    = positionBytes + 4
)

var errCorrupt = errors.New("not the bytes of a place in an order log")

// AppendBinary appends the state's bytes to dst. No take may be unfinished.
func (s *State) AppendBinary(dst []byte) ([]byte, error) {
	if s.taking != nil {
		panic("sequencer: a take is not finished")
	}
	dst = append(dst, stateMagic...)
	version := uint32(stateVersion)
	if s.Lineage == [32]byte{} {
		version = 1
	}
	dst = binary.BigEndian.AppendUint32(dst, version)
	dst = appendPosition(dst, &s.Log)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s.Places)))
	for i := range s.Places {
		dst = appendPosition(dst, &s.Places[i].Position)
		dst = binary.BigEndian.AppendUint32(dst, s.Places[i].Gaps)
	}
	if version == stateVersion {
		dst = append(dst, s.Lineage[:]...)
	}
	return dst, nil
}

// UnmarshalBinary reads the bytes that AppendBinary wrote. On an error s is unchanged.
func (s *State) UnmarshalBinary(b []byte) error {
	if len(b) < stateHeader || !bytes.HasPrefix(b, []byte(stateMagic)) {
		return fmt.Errorf("%d bytes: %w", len(b), errCorrupt)
	}
	v := binary.BigEndian.Uint32(b[8:])
	if v == 0 || v > stateVersion {
		return fmt.Errorf("place in an order log has version %d, this program reads 1 and 2: use the hamlet that wrote it or a newer one", v)
	}
	n := binary.BigEndian.Uint32(b[stateHeader-4:])
	var lineage [32]byte
	if v == stateVersion {
		if len(b) < stateHeader+len(lineage) {
			return fmt.Errorf("%d bytes: %w", len(b), errCorrupt)
		}
		lineage = [32]byte(b[len(b)-len(lineage):])
		b = b[:len(b)-len(lineage)]
		if lineage == [32]byte{} {
			return fmt.Errorf("an empty lineage: %w", errCorrupt)
		}
	}
	if n > order.MaxPartitions || len(b) != stateHeader+int(n)*placeBytes {
		return fmt.Errorf("%d bytes for %d partitions: %w", len(b), n, errCorrupt)
	}
	got := State{Log: position(b[12:]), Lineage: lineage}
	ok := got.Log.Next >= 0
	for rest := b[stateHeader:]; len(rest) > 0; rest = rest[placeBytes:] {
		p := Place{Position: position(rest), Gaps: binary.BigEndian.Uint32(rest[positionBytes:])}
		ok = ok && p.Next >= 0
		got.Places = append(got.Places, p)
	}
	if !ok {
		return fmt.Errorf("an offset is above %d: %w", int64(math.MaxInt64), errCorrupt)
	}
	*s = got
	return nil
}

func appendPosition(dst []byte, p *state.Position) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Next))
	dst = append(dst, p.Chain[:]...)
	return append(dst, p.Before[:]...)
}

func position(b []byte) state.Position {
	return state.Position{
		Next:   int64(binary.BigEndian.Uint64(b)),
		Chain:  [sha256.Size]byte(b[8:]),
		Before: [sha256.Size]byte(b[8+sha256.Size:]),
	}
}
