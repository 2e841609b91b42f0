package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/state"
)

// A loaded is a checkpoint as it was read from Redis or from a file.
type loaded struct {
	version int64 // in Redis; 0: from a file
	*state.Checkpoint
	model *model.Model // what Model decodes to; decode writes it
}

func (l *loaded) sha256() string {
	sum := l.ModelSHA256
	return hex.EncodeToString(sum[:])
}

// Refer returns what a reference names: a model in Redis and its version, 0 for the newest; or a
// file, then model is "". Any other name than MODEL and MODEL@VERSION is a file.
func Refer(text string) (model string, version int64, err error) {
	model, number, versioned := strings.Cut(text, "@")
	if !state.IsModelName(model) {
		return "", 0, nil
	}
	if !versioned {
		return model, 0, nil
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return "", 0, nil
	}
	if n == 0 {
		return "", 0, cli.Usagef("%s: versions are numbered from 1", text)
	}
	return model, int64(n), nil
}

// load reads what a reference names. Every hash is verified.
func (s *session) load(ctx context.Context, text string) (*loaded, error) {
	name, version, err := Refer(text)
	if err != nil {
		return nil, err
	}
	if name == "" {
		c, err := ReadFile(text)
		return &loaded{Checkpoint: c}, err
	}
	store, err := s.store(ctx, name)
	if err != nil {
		return nil, err
	}
	version, c, err := Load(ctx, store, name, version)
	return &loaded{version: version, Checkpoint: c}, err
}

// Load reads a version of a model, or the newest if version is 0, and returns its number. Every
// hash is verified.
func Load(ctx context.Context, store state.Store, name string, version int64) (int64, *state.Checkpoint, error) {
	if err := store.Layout(ctx); err != nil {
		return 0, nil, err
	}
	if version != 0 {
		c, err := store.LoadVersion(ctx, version)
		return version, c, err
	}
	version, c, err := newest(ctx, store)
	if errors.Is(err, state.ErrNone) {
		err = None(name)
	}
	return version, c, err
}

// decoded is load with the model decoded.
func (s *session) decoded(ctx context.Context, text string) (*loaded, error) {
	l, err := s.load(ctx, text)
	if err != nil {
		return nil, err
	}
	if err := l.decode(); err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return l, nil
}

// None says that the store keeps no model of this name.
func None(name string) error {
	return fmt.Errorf("the store keeps no model %s: hamlet model list shows those that it keeps", name)
}

// OldKeys says how Redis is rid of a model of hamlet 0.1.0 that this release does not read. Who
// answers in its place stays: services that have its name still ask for that.
func OldKeys(model string) string {
	return fmt.Sprintf("once another model has learnt its log, delete its keys: "+
		"redis-cli --scan --pattern 'hamlet:{%s}:*' | grep -v ':promotion$' | xargs redis-cli del", model)
}

// newest returns the newest version itself, and none before it. While it reads, newer ones
// may push it out: then it begins again with the newest of that time.
func newest(ctx context.Context, store state.Store) (int64, *state.Checkpoint, error) {
	for {
		h, err := store.Heading(ctx, state.Head)
		if err != nil {
			return 0, nil, err
		}
		c, err := store.LoadVersion(ctx, h.Version)
		if err == nil {
			return h.Version, c, nil
		}
		if !errors.Is(err, state.ErrCorrupt) && !errors.Is(err, state.ErrNone) {
			return h.Version, nil, err
		}
		now, again := store.Heading(ctx, state.Head)
		if again != nil || now.Version == h.Version {
			return h.Version, nil, errors.Join(err, again)
		}
	}
}

// decode decodes the model and checks that it is what the checkpoint says.
func (l *loaded) decode() error {
	m, err := model.Restore(l.Model)
	if err != nil && l.Numerics != model.CurrentNumerics() {
		return fmt.Errorf("the model has numerics %s, this program has %s: %w", l.Numerics, model.CurrentNumerics(), err)
	}
	if err != nil {
		return err
	}
	if m.Events() != l.Events || m.Numerics() != l.Numerics {
		return fmt.Errorf("the checkpoint says %d events and numerics %s, its model %d and %s",
			l.Events, l.Numerics, m.Events(), m.Numerics())
	}
	l.model = m
	return nil
}

// encodesAlike returns an error unless the decoded model encodes to the same bytes.
func (l *loaded) encodesAlike() error {
	again, err := l.model.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("encode it again: %w", err)
	}
	if !bytes.Equal(again, l.Model) {
		return fmt.Errorf("it encodes to other bytes: their SHA-256 is %x, that of the model %s",
			sha256.Sum256(again), l.sha256())
	}
	return nil
}

// ErrOther says that a model is of other numerics, or of another layout, than this program's.
var ErrOther = errors.New("this program cannot go on with it")

// Fits returns an error unless this program's learner can go on with a checkpoint. It decodes
// the model, and encodes it again to the same bytes. A model of other numerics or of another
// layout is not decoded: the error wraps [ErrOther].
func Fits(c *state.Checkpoint) error {
	if here := model.CurrentNumerics(); c.Numerics != here || c.Schema != schema {
		return fmt.Errorf("%w: the model is of numerics %s and layout %d, this program of %s and %d",
			ErrOther, c.Numerics, c.Schema, here, schema)
	}
	l := loaded{Checkpoint: c}
	if err := l.decode(); err != nil {
		return err
	}
	return l.encodesAlike()
}
