// Package state defines a [Checkpoint]: the bytes of a model and its position in
// the log. Both are saved in one write. A model with a wrong position would learn
// records twice or lose them.
//
// [Pointer], [Heading] and the errors belong to the contract of a store. Package
// storetest tests the contract; package redis is a store. To all of them a model is
// bytes.
//
// A checkpoint is stored in two parts: chunks of [ChunkSize] bytes of the model, each
// named by its SHA-256, and a [Manifest] of a few hundred bytes. A chunk that did not
// change keeps its name and need not be written again.
//
//	manifest, err := state.Cut(checkpoint, func(chunk state.Chunk) error { … })
//	b, err := manifest.AppendBinary(nil)
//	…
//	err = manifest.UnmarshalBinary(b)
//	checkpoint, err = state.Join(manifest, chunks) // verifies every hash
//
// # Invariants
//
//   - The model's SHA-256 covers the model's bytes alone, without position, epoch and
//     time. Two learners that read the same log have the same SHA-256, however often
//     either was restarted.
//   - A position's chain depends on the records alone, never on how many of them came
//     in one fetch.
package state

import (
	"bytes"
	"crypto/sha256"
	"io"
	"time"
)

// A Checkpoint is a model and the position in the log that it has absorbed.
type Checkpoint struct {
	Schema   int       // version of the layout of Model, 0 to 2³¹−1
	Numerics string    // version of the mathematics that made Model
	Config   []byte    // the model's configuration as canonical JSON
	Epoch    int64     // the epoch under which the writer holds the model, from 1
	Writer   string    // who held it: see Lease. A store keeps it beside the manifest; "" if it does not know
	Events   uint64    // events applied: the model's clock
	Position Position  // the records absorbed
	Model    []byte    // the model, opaque here; nil where Source writes it
	Saved    time.Time // decides which versions a store keeps; not part of the model

	// Source writes the model's bytes, the same each time, so that they need not be in memory all at once. nil:
	// they are in Model. A load gives none.
	Source io.WriterTo

	// ModelSHA256 is the SHA-256 of the model's bytes, which names the model, and Length is their number. Cut
	// computes them, and so a save does. Join sets them, and so a load does. Before either they are zero.
	ModelSHA256 [sha256.Size]byte
	Length      int64
}

// Bytes returns the model's bytes, also where Source writes them.
func (c *Checkpoint) Bytes() ([]byte, error) {
	if c.Source == nil {
		return c.Model, nil
	}
	var b bytes.Buffer
	_, err := c.Source.WriteTo(&b)
	return b.Bytes(), err
}
