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
//	manifest, chunks := state.Split(checkpoint)
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
	"crypto/sha256"
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
	Model    []byte    // the model, opaque here
	Saved    time.Time // decides which versions a store keeps; not part of the model

	// ModelSHA256 is the SHA-256 of Model, which names the model. Split computes it, and so a save
	// does. Join sets it, and so a load does. Before either it is zero.
	ModelSHA256 [sha256.Size]byte
}
