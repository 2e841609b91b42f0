// Package state holds what a partition's model is between two runs of a
// learner: a [Checkpoint], which is the model's bytes together with the place in
// the log whose records they have absorbed. The two are one value and are saved
// in one write, because an update is not idempotent: a model with the wrong
// position would learn records twice or lose them.
//
// A checkpoint is stored in two parts. [Split] cuts the model's bytes at fixed
// offsets into chunks of [ChunkSize] bytes, each named by its SHA-256, and
// describes them with a [Manifest] of a few hundred bytes. A chunk that did not
// change since the last version keeps its name and need not be written again.
// [Join] is the way back and verifies every hash.
//
// The package knows nothing about models: it sees only their bytes. Where
// checkpoints live is the business of the packages below it.
//
// # Invariants
//
//   - The model's SHA-256 covers the model's bytes alone. The position, the epoch
//     and the time of saving are outside of it, so that two learners that read
//     the same log have the same SHA-256, however often either was restarted.
//   - A position's chain depends on the records alone, never on how many of them
//     came in one fetch.
package state

import (
	"crypto/sha256"
	"time"
)

// A Checkpoint is a partition's model and the position in the partition's log
// that it has absorbed.
type Checkpoint struct {
	Schema   int       // version of the layout of Model, 0 to 2³¹−1; counted by whoever made the bytes
	Numerics string    // version of the mathematics, and architecture, that made Model
	Config   []byte    // the model's configuration as canonical JSON
	Epoch    int64     // the epoch under which the writer holds the partition, from 1
	Events   uint64    // events applied: the model's clock
	Position Position  // the records absorbed
	Model    []byte    // the model, opaque here
	Saved    time.Time // when it was saved, for people; decides which versions are kept, never what they hold
}

// ModelSHA256 returns the SHA-256 of the model's bytes, which is the model's
// name everywhere.
func (c *Checkpoint) ModelSHA256() [sha256.Size]byte {
	return sha256.Sum256(c.Model)
}
