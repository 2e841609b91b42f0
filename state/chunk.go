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

// Split returns a checkpoint's manifest and its model's chunks in order. c has no Source: the
// chunks alias c.Model. An empty model has no chunks. Equal chunks are not merged. It sets what
// Cut sets.
func Split(c *Checkpoint) (m *Manifest, chunks []Chunk) {
	m, err := Cut(c, func(chunk Chunk) error { chunks = append(chunks, chunk); return nil })
	if err != nil || c.Source != nil {
		panic("state: Split of a checkpoint with a Source")
	}
	return m, chunks
}

// Cut calls do with the chunks of a checkpoint's model in order, until it returns an error, and returns
// the manifest. A chunk's data is valid until do returns: of a Source, one chunk is in memory. Cut sets
// c.ModelSHA256 and c.Length.
func Cut(c *Checkpoint, do func(Chunk) error) (*Manifest, error) {
	m := &Manifest{
		Schema: c.Schema, Numerics: c.Numerics, Config: slices.Clone(c.Config),
		Epoch: c.Epoch, Writer: c.Writer, Events: c.Events, Position: c.Position, Saved: c.Saved,
	}
	whole := sha256.New()
	err := EachChunk(c, func(data []byte) error {
		chunk := Chunk{Name: sha256.Sum256(data), Data: data}
		_, _ = whole.Write(data)
		m.Chunks, m.Length = append(m.Chunks, chunk.Name), m.Length+int64(len(data))
		return do(chunk)
	})
	if err != nil {
		return nil, err
	}
	whole.Sum(m.Model[:0])
	c.ModelSHA256, c.Length = m.Model, m.Length
	return m, nil
}

// EachChunk calls do with the data of the chunks of a checkpoint's model, as [Cut] does, and names none.
func EachChunk(c *Checkpoint, do func(data []byte) error) error {
	if c.Source == nil {
		for data := range slices.Chunk(c.Model, ChunkSize) {
			if err := do(data); err != nil {
				return err
			}
		}
		return nil
	}
	w := cutter{buf: make([]byte, 0, ChunkSize), do: do}
	if _, err := c.Source.WriteTo(&w); err != nil {
		return err
	}
	if len(w.buf) > 0 {
		return do(w.buf)
	}
	return nil
}

// A cutter cuts what is written into chunks.
type cutter struct {
	buf []byte // a part of a chunk
	do  func(data []byte) error
}

func (w *cutter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		k := min(len(b)-n, ChunkSize-len(w.buf))
		w.buf = append(w.buf, b[n:n+k]...)
		n += k
		if len(w.buf) == ChunkSize {
			if err := w.do(w.buf); err != nil {
				return n, err
			}
			w.buf = w.buf[:0]
		}
	}
	return n, nil
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
		Position: m.Position, Model: model, Saved: m.Saved, ModelSHA256: m.Model, Length: m.Length,
	}, nil
}

// chunkCount returns how many chunks a model of n bytes has.
func chunkCount(n int64) int64 {
	return n/ChunkSize + min(n%ChunkSize, 1)
}
