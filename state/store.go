package state

import (
	"errors"
	"time"
)

// The errors of a store. A store wraps them; test with errors.Is.
var (
	// ErrNone says that nothing has been saved yet: start with an empty model at
	// the beginning of the log.
	ErrNone = errors.New("no checkpoint")

	// ErrStale says that another writer has taken the model or has read
	// further: drop the model and load the head, or stop.
	ErrStale = errors.New("stale checkpoint")

	// ErrLost says that a checkpoint is stale because the store lost its data: its
	// writer should take the model and save it again.
	ErrLost = errors.New("the store lost the state")

	// ErrCorrupt says that stored bytes are not what was saved: read an older
	// version. Nothing of the corrupt one may be used.
	ErrCorrupt = errors.New("corrupt checkpoint")

	// ErrPartitions says that hamlet 0.1.0 saved this from a log of several partitions. Nothing
	// of it can be used here; the error says how to make a log of one partition from it.
	ErrPartitions = errors.New("it is from a log of several partitions, and this program learns a log of one")

	// ErrTransient says that trying again may help: the store could not be reached or
	// was busy. A passed deadline is transient too: it may be that of one attempt. A
	// caller that retries checks its own context too.
	ErrTransient = errors.New("the store cannot be reached")
)

// Transient returns an error with err's text that also wraps [ErrTransient].
func Transient(err error) error { return transient{err} }

type transient struct{ error }

func (t transient) Unwrap() []error { return []error{t.error, ErrTransient} }

// A Pointer selects one of a model's versions.
type Pointer uint8

const (
	Head   Pointer = iota // the newest
	Served                // the one that scorers answer from: the head, unless an operator pinned another
)

// String returns the pointer's name: "head" or "served".
func (p Pointer) String() string {
	if p == Served {
		return "served"
	}
	return "head"
}

// A Heading describes a stored version without its bytes. A number alone does not identify a
// checkpoint. Where a model's bytes did not change, a save replaces epoch, position and time of
// the newest version under its number. And a store that lost its data gives old numbers to new
// versions.
//
// Pinned is about the model, not about the version. If it is neither 0 nor the version
// that Served names, the store has lost the pinned version.
type Heading struct {
	Version  int64
	Next     int64  // next offset of the log; 0 if the store lost it
	Identity string // differs between checkpoints that differ in more than Saved; "" if the store lost it
	Model    string // SHA-256 of the model's bytes, in hexadecimal digits; "" if the store lost it
	Pinned   int64  // the version that an operator pinned; 0: none
	Epoch    int64  // under which it was saved; 0 if the store lost it
	Writer   string // who held that epoch: see [Lease]; "" of a program before 0.2.0
}

// A Version is a version that a store keeps, without the model.
type Version struct {
	Number   int64
	Events   uint64
	Position Position
	Saved    time.Time
	Replaced bool // another model has taken its place
}
