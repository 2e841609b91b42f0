package state

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// ChunkSize is the length of every chunk but the last, in bytes. Redis takes 512 MiB
// in one value; a name has 32 bytes.
const ChunkSize = 1 << 20

// A Chunk is a piece of a model's bytes under the SHA-256 that names it.
type Chunk struct {
	Name [sha256.Size]byte
	Data []byte // 1 to ChunkSize bytes
}

// Split returns a checkpoint's manifest and its model's chunks in order. The chunks
// alias c.Model. An empty model has no chunks. Equal chunks are not merged. It sets c.ModelSHA256.
func Split(c *Checkpoint) (*Manifest, []Chunk) {
	c.ModelSHA256 = sha256.Sum256(c.Model)
	m := &Manifest{
		Schema: c.Schema, Numerics: c.Numerics, Config: slices.Clone(c.Config),
		Epoch: c.Epoch, Writer: c.Writer, Events: c.Events,
		Position: c.Position, Saved: c.Saved, Model: c.ModelSHA256, Length: int64(len(c.Model)),
	}
	chunks := make([]Chunk, 0, chunkCount(m.Length))
	for data := range slices.Chunk(c.Model, ChunkSize) {
		name := sha256.Sum256(data)
		chunks = append(chunks, Chunk{Name: name, Data: data})
		m.Chunks = append(m.Chunks, name)
	}
	return m, chunks
}

// Join returns the checkpoint of a manifest and of its chunks' data in order. It
// verifies every chunk and the whole. The error wraps [ErrCorrupt] and names the
// first chunk that is missing (nil) or wrong. The checkpoint shares no memory with
// the arguments.
func Join(m *Manifest, data [][]byte) (*Checkpoint, error) {
	if len(data) != len(m.Chunks) {
		return nil, fmt.Errorf("%w: %d chunks for a manifest of %d", ErrCorrupt, len(data), len(m.Chunks))
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	for i, chunk := range data {
		switch {
		case chunk == nil:
			return nil, fmt.Errorf("%w: chunk %d of %d (%x) is missing", ErrCorrupt, i+1, len(data), m.Chunks[i])
		case int64(len(chunk)) != m.chunkLen(i):
			return nil, fmt.Errorf("%w: chunk %d of %d (%x) has %d bytes, not %d",
				ErrCorrupt, i+1, len(data), m.Chunks[i], len(chunk), m.chunkLen(i))
		case sha256.Sum256(chunk) != m.Chunks[i]:
			return nil, fmt.Errorf("%w: chunk %d of %d (%x) does not have the hash that names it",
				ErrCorrupt, i+1, len(data), m.Chunks[i])
		}
	}
	model := slices.Concat(data...)
	if got := sha256.Sum256(model); got != m.Model {
		return nil, fmt.Errorf("%w: the model's hash is %x, not %x", ErrCorrupt, got, m.Model)
	}
	return &Checkpoint{
		Schema: m.Schema, Numerics: m.Numerics, Config: slices.Clone(m.Config),
		Epoch: m.Epoch, Writer: m.Writer, Events: m.Events,
		Position: m.Position, Model: model, Saved: m.Saved, ModelSHA256: m.Model,
	}, nil
}

// chunkCount returns how many chunks a model of n bytes has.
func chunkCount(n int64) int64 {
	return n/ChunkSize + min(n%ChunkSize, 1)
}
