package model

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"hamlet/algos/dedup"
	"hamlet/algos/text"
)

// WithFrozen returns c with f as the frozen expert: an input for mail and text that never
// learns. c.Frozen becomes the SHA-256 of f's bytes. The model's bytes hold f's, so that
// Restore needs nothing else. nil removes it.
func (c Config) WithFrozen(f *text.Frozen) Config {
	c.frozen, c.Frozen = f, ""
	if f != nil {
		c.Frozen = frozenName(f.Bytes())
	}
	return c
}

// FrozenExpert returns the frozen expert, nil without one.
func (c Config) FrozenExpert() *text.Frozen { return c.frozen }

func frozenName(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ErrNoExpert: a configuration names a frozen expert, and does not have it. Give it with [Config.WithFrozen].
var ErrNoExpert = errors.New("not here")

// checkFrozen reports a name without its expert, or with another.
func (c *Config) checkFrozen() error {
	switch {
	case c.frozen == nil && c.Frozen != "":
		return fmt.Errorf("frozen: the expert %s is %w", quote(c.Frozen), ErrNoExpert)
	case c.frozen != nil && c.Frozen != frozenName(c.frozen.Bytes()):
		return fmt.Errorf("frozen: %s is wanted, and the expert is %s", quote(c.Frozen), frozenName(c.frozen.Bytes()))
	}
	return nil
}

// restoreFrozen returns c with the frozen expert whose bytes are in section.
func (c Config) restoreFrozen(section []byte) (Config, error) {
	switch {
	case c.Frozen == "" && len(section) == 0:
		return c, nil
	case c.Frozen == "":
		return c, errors.New("a frozen expert that the configuration does not name")
	case c.Frozen != frozenName(section):
		return c, errors.New("the frozen expert is not that of the configuration")
	}
	f, err := text.DecodeFrozen(section)
	if err != nil {
		return c, err
	}
	return c.WithFrozen(f), nil
}

// frozenInput is what explanations call the frozen expert's input.
const frozenInput = "frozen: text 4-grams"

// frozen returns the frozen expert of a kind of body, nil if it has none.
func (s *spec) frozen() *text.Frozen {
	if s.kind != ofText {
		return nil
	}
	return s.cfg.frozen
}

// likeFrozen returns the first expert that reads what the frozen expert reads, −1 if none does.
func (s *spec) likeFrozen() int {
	return slices.IndexFunc(s.entries, func(e *text.Entry) bool {
		return e.Reads == text.FrozenReads && s.cfg.frozen.Bits() == s.cfg.TableBits+e.Reads.Bits
	})
}

// A Freezer makes a frozen expert from labelled mail and text. It is not safe for
// concurrent use.
type Freezer struct {
	freezer *text.Freezer
	pass    int
	seen    *dedup.Window
	parts   text.Parts
}

// frozenCopies is how many events back a Freezer recognises a copy.
const frozenCopies = 1 << 20

// NewFreezer returns a Freezer for models with these table bits.
func NewFreezer(tableBits int) (*Freezer, error) {
	f, err := text.NewFreezer(tableBits)
	if err != nil {
		return nil, err
	}
	return &Freezer{freezer: f, seen: dedup.New(frozenCopies)}, nil
}

// NextPass says that the events that follow have been learnt once, in the same order.
func (f *Freezer) NextPass() { f.pass, f.seen = f.pass+1, dedup.New(frozenCopies) }

// Learn learns ex. It skips copies of earlier events of a pass. Vectors and withdrawals are
// a *RefusedError.
func (f *Freezer) Learn(ex *Example) error {
	switch {
	case ex.Action != Learn:
		return &RefusedError{"a frozen expert cannot withdraw"}
	case ex.Body.Message == nil || ex.Body.Vector != nil:
		return &RefusedError{"a frozen expert reads mail and text only"}
	}
	key := f.seen.Key(ex.Body.Tenant, ex.Source, ex.ID)
	if f.seen.Has(key) {
		return nil
	}
	f.seen.Add(key)
	f.parts.Text = ex.Body.Message.AppendT(f.parts.Text[:0])
	f.freezer.Learn(&f.parts, ex.Spam, f.pass == 0)
	return nil
}

// Freeze returns the frozen expert: see [text.Freezer.Freeze].
func (f *Freezer) Freeze(minCount int) (*text.Frozen, error) { return f.freezer.Freeze(minCount) }
