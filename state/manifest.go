package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// A Manifest is a checkpoint with the names of the model's chunks in place of its
// bytes. It is stored, with all integers big-endian, as
//
//	 at  bytes
//	  0   8    "hamletMF"
//	  8   4    version of this layout: 2
//	 12   4    schema
//	 16   8    epoch
//	 24   8    events
//	 32   8    position: next offset
//	 40  32    position: chain
//	 72  32    position: chain before the last record
//	104   8    saved: seconds since 1970-01-01 UTC, signed
//	112   4    saved: nanoseconds, below 10⁹
//	116  32    SHA-256 of the model
//	148   8    length of the model
//	156   4    N, length of numerics
//	160   4    C, length of config
//	164   4    K, number of chunks: ⌈length / 1 MiB⌉
//	168   N    numerics
//	      C    config
//	      32K  names of the chunks, in order
//	      32   SHA-256 of all bytes before
//
// Nothing may follow. Each manifest has one encoding. Version 3 is hamlet 0.1.0's, of one model of
// several partitions: [ErrPartitions]. Version 1 was never released.
type Manifest struct {
	Schema   int
	Numerics string
	Config   []byte
	Epoch    int64
	Writer   string // not in the manifest's bytes: a store keeps it beside them
	Events   uint64
	Position Position
	Chunks   [][sha256.Size]byte // names of the model's chunks, in order
	Model    [sha256.Size]byte   // SHA-256 of the model
	Length   int64               // length of the model, in bytes
	Saved    time.Time           // UTC
}

const (
	manifestMagic   = "hamletMF"
	manifestVersion = 2   // the one that is written and read
	manifestHeader  = 168 // bytes before numerics
	orderedVersion  = 3   // of hamlet 0.1.0, which this program does not read
)

// AppendBinary appends the manifest's bytes to dst. It is an error if the layout
// cannot hold a field, or if Length needs another number of chunks.
func (m *Manifest) AppendBinary(dst []byte) ([]byte, error) {
	if err := m.check(); err != nil {
		return dst, fmt.Errorf("encode manifest: %w", err)
	}
	start := len(dst)
	dst = append(dst, manifestMagic...)
	dst = binary.BigEndian.AppendUint32(dst, manifestVersion)
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.Schema))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Epoch))
	dst = binary.BigEndian.AppendUint64(dst, m.Events)
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Position.Next))
	dst = append(dst, m.Position.Chain[:]...)
	dst = append(dst, m.Position.Before[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Saved.Unix()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.Saved.Nanosecond()))
	dst = append(dst, m.Model[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Length))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(m.Numerics)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(m.Config)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(m.Chunks)))
	dst = append(dst, m.Numerics...)
	dst = append(dst, m.Config...)
	for i := range m.Chunks {
		dst = append(dst, m.Chunks[i][:]...)
	}
	sum := sha256.Sum256(dst[start:])
	return append(dst, sum[:]...), nil
}

// UnmarshalBinary reads the bytes that AppendBinary wrote; m aliases none of them.
// The error wraps [ErrCorrupt], except for a version that this program does not know.
// On an error m is unchanged.
func (m *Manifest) UnmarshalBinary(b []byte) error {
	if len(b) < manifestHeader || !bytes.HasPrefix(b, []byte(manifestMagic)) {
		return fmt.Errorf("%w: %d bytes that are not a manifest", ErrCorrupt, len(b))
	}
	version := binary.BigEndian.Uint32(b[8:])
	if version == orderedVersion {
		return ErrOrdered
	}
	if version != manifestVersion {
		return fmt.Errorf("manifest has version %d, this program reads %d: use the hamlet that wrote it or a newer one",
			version, manifestVersion)
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return fmt.Errorf("%w: a manifest's hash is %x, not %x", ErrCorrupt, got, sum)
	}
	if len(body) < manifestHeader {
		return fmt.Errorf("%w: a manifest of %d bytes", ErrCorrupt, len(b))
	}
	numerics := uint64(binary.BigEndian.Uint32(body[156:]))
	config := uint64(binary.BigEndian.Uint32(body[160:]))
	chunks := uint64(binary.BigEndian.Uint32(body[164:]))
	if want := manifestHeader + numerics + config + sha256.Size*chunks; uint64(len(body)) != want {
		return fmt.Errorf("%w: a manifest of %d bytes announces %d bytes before its hash; it has %d",
			ErrCorrupt, len(b), want, len(body))
	}
	nanoseconds := binary.BigEndian.Uint32(body[112:])
	if nanoseconds >= 1e9 {
		return fmt.Errorf("%w: a manifest was saved at %d nanoseconds in a second", ErrCorrupt, nanoseconds)
	}
	got := Manifest{
		Schema: int(binary.BigEndian.Uint32(body[12:])),
		Epoch:  int64(binary.BigEndian.Uint64(body[16:])),
		Events: binary.BigEndian.Uint64(body[24:]),
		Position: Position{
			Next:   int64(binary.BigEndian.Uint64(body[32:])),
			Chain:  [sha256.Size]byte(body[40:72]),
			Before: [sha256.Size]byte(body[72:104]),
		},
		Saved:  time.Unix(int64(binary.BigEndian.Uint64(body[104:])), int64(nanoseconds)).UTC(),
		Model:  [sha256.Size]byte(body[116:148]),
		Length: int64(binary.BigEndian.Uint64(body[148:])),
	}
	rest := body[manifestHeader:]
	got.Numerics = string(rest[:numerics])
	if config > 0 {
		got.Config = bytes.Clone(rest[numerics : numerics+config])
	}
	for rest = rest[numerics+config:]; len(rest) > 0; rest = rest[sha256.Size:] {
		got.Chunks = append(got.Chunks, [sha256.Size]byte(rest))
	}
	if err := got.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	*m = got
	return nil
}

// check reports every field that the layout cannot hold.
func (m *Manifest) check() error {
	var errs []error
	if m.Schema < 0 || m.Schema > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("schema %d is not within 0 and 2³¹−1", m.Schema))
	}
	if m.Epoch < 0 {
		errs = append(errs, fmt.Errorf("epoch %d is negative", m.Epoch))
	}
	if m.Position.Next < 0 {
		errs = append(errs, fmt.Errorf("next offset %d is negative", m.Position.Next))
	}
	if m.Length < 0 || int64(len(m.Chunks)) != chunkCount(max(m.Length, 0)) {
		errs = append(errs, fmt.Errorf("a model of %d bytes in %d chunks", m.Length, len(m.Chunks)))
	}
	for _, field := range []struct {
		name   string
		length int
	}{{"numerics", len(m.Numerics)}, {"config", len(m.Config)}, {"chunk list", len(m.Chunks)}} {
		if int64(field.length) > math.MaxUint32 {
			errs = append(errs, fmt.Errorf("%s of length %d", field.name, field.length))
		}
	}
	return errors.Join(errs...)
}

// chunkLen returns the length of chunk i.
func (m *Manifest) chunkLen(i int) int64 {
	return min(ChunkSize, m.Length-int64(i)*ChunkSize)
}
