package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// IsModelName reports whether a model may have the name: 1 to 64 of a–z, 0–9 and the hyphen. Package
// stream has the same.
func IsModelName(name string) bool {
	return 1 <= len(name) && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// A Store keeps the checkpoints of one model. Package storetest has its laws. Its methods may be
// called concurrently.
type Store interface {
	// Save writes a checkpoint, sets its ModelSHA256, and moves the head to it. The epoch must be the last
	// that was acquired or seized, and the offset not before the head's; else the error wraps
	// ErrStale.
	Save(ctx context.Context, c *Checkpoint) (version int64, err error)
	// Load returns the checkpoint that a pointer names, and its version. Before the
	// first save the error wraps ErrNone.
	Load(ctx context.Context, which Pointer) (*Checkpoint, int64, error)
	// LoadVersion returns a version. If the store does not keep it, the error wraps ErrNone.
	LoadVersion(ctx context.Context, version int64) (*Checkpoint, error)
	// Manifest returns the manifest of the version that a pointer names, and its number. Where
	// that is corrupt, it may be of a version before. Before the first save the error wraps ErrNone.
	Manifest(ctx context.Context, which Pointer) (*Manifest, int64, error)
	// Heading describes what a pointer names, at little cost.
	Heading(ctx context.Context, which Pointer) (Heading, error)
	// Versions returns the kept versions, newest first, and behind them the lost ones. It leaves
	// out those whose manifest cannot be read. Before the first save the error wraps ErrNone.
	Versions(ctx context.Context) ([]VersionInfo, error)
	// Layout returns an error that wraps ErrPartitions if 0.1.0 saved several models for this one.
	Layout(ctx context.Context) error

	// Lease reads who is active. Before the first writer it is the zero Lease. It counts a save of
	// 0.1.0 as a beat, for the one who asks.
	Lease(ctx context.Context) (Lease, error)
	// Holder is Lease for who may only read.
	Holder(ctx context.Context) (Lease, error)
	// Acquire makes writer the only one, under the next epoch, if the lease is as seen. Else the
	// error wraps ErrStale.
	Acquire(ctx context.Context, seen Lease, writer string) (Lease, error)
	// Seize is Acquire whatever the lease is.
	Seize(ctx context.Context, writer string) (Lease, error)
	// Beat says that the holder of mine lives. If another one has the lease, the error wraps
	// ErrStale.
	Beat(ctx context.Context, mine Lease) (Lease, error)
	// Release frees the lease that mine holds.
	Release(ctx context.Context, mine Lease) (Lease, error)
	// StepBack moves the head to an older version, which mine's writer goes on from. If another
	// one has the epoch the error wraps ErrStale; if the version is not kept, or was stepped
	// back from, ErrNone.
	StepBack(ctx context.Context, mine Lease, to int64) error

	// Pin points Served at a version. If the store does not keep it, the error wraps ErrNone.
	Pin(ctx context.Context, version int64) error
	// Unpin moves Served to the head again.
	Unpin(ctx context.Context) error
	// Pinned returns the version that an operator pinned, 0 if there is none. It may be one that
	// is no longer kept: then the pin is lost, and the head is served.
	Pinned(ctx context.Context) (int64, error)
	// MarkReplaced keeps a version because another model takes its place, until the model was saved
	// on 30 further days.
	MarkReplaced(ctx context.Context, version int64) error
	// Promote says which model answers in the place of the store's. It changes no version.
	Promote(ctx context.Context, p Promotion) error
	// Promotion returns what Promote said last. Before that the error wraps ErrNone.
	Promotion(ctx context.Context) (Promotion, error)

	// Beside returns the store of another model of the same place. It need not be closed, and is
	// of use until this one is.
	Beside(model string) (Store, error)
	// Models returns the names of all models of the place that have a checkpoint, in order.
	Models(ctx context.Context) ([]string, error)
	// Ping returns why the place cannot be reached.
	Ping(ctx context.Context) error
	// Close ends the connections.
	Close() error
}

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
	// of it can be used here: make a log of one partition from it.
	ErrPartitions = errors.New("it is from a log of several partitions, and this program learns a log of one")

	// ErrTransient says that trying again may help: the store could not be reached or
	// was busy. A passed deadline is transient too: it may be that of one attempt. A
	// caller that retries checks its own context too.
	ErrTransient = errors.New("the store cannot be reached")
)

// A PartitionsError says which model of hamlet 0.1.0 is one for each partition. It wraps [ErrPartitions].
type PartitionsError struct {
	Model      string
	Partitions []int
}

func (e *PartitionsError) Error() string {
	return fmt.Sprintf("model %s of hamlet 0.1.0 is a model for each of the partitions %d: %v",
		e.Model, e.Partitions, ErrPartitions)
}

// Unwrap returns ErrPartitions.
func (e *PartitionsError) Unwrap() error { return ErrPartitions }

// ErrOrdered says that hamlet 0.1.0 learnt a model from several partitions, in an order that another
// log held. It wraps [ErrPartitions].
var ErrOrdered = fmt.Errorf("%w: hamlet 0.1.0 learnt it from several partitions in the order of another log",
	ErrPartitions)

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

// A VersionInfo describes one kept version of a model.
type VersionInfo struct {
	Version  int64
	Epoch    int64
	Events   uint64 // the model's event count
	Position Position
	Saved    time.Time // UTC
	SHA256   [32]byte  // of the model
	Bytes    int64     // length of the model

	Numerics string // version of the mathematics that made the model
	Config   []byte // the model's configuration as canonical JSON

	Pinned bool // an operator pinned it
	Head   bool // it is the newest
	Served bool // scorers answer from it

	Replaced bool // another model took its place: see MarkReplaced of [Store]
	Lost     bool // the log has lost what it learnt: see StepBack of [Store]
}
