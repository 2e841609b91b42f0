package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"hamlet/algos/dedup"
	"hamlet/algos/internal/defect"
)

// A panic in Apply is a defect of ours. Where it is met decides what becomes of the event:
//
//   - While the body is read, nothing has changed yet, and reading depends on the body and the
//     configuration alone. Apply returns a *Defect, and the event is a dead letter.
//   - Anywhere else the model may be half changed. Attempt returns a *PanicError, and the model
//     is lost. Its owner goes back to its last bytes, names the event with [Model.SetAside], and
//     learns the log from there on: Apply returns ErrSetAside, and the event is a dead letter.
//
// So the decision is in the model's bytes, as part of its configuration, and a model that had it
// from the beginning has the same bytes. The alternative was to keep it beside the log. Then a
// replay with another file, or none, would have made another model.

// MostSetAside is how many events [Config.SetAside] can name. A defect that many events meet is
// no matter of single events: it ends the learner.
const MostSetAside = 256

// ErrSetAside says that [Config.SetAside] names an event. It was not learnt, and nothing has
// changed.
var ErrSetAside = errors.New(defect.Prefix + "learning this event ended in a panic, and model.set_aside names it")

// A Defect is a panic while a body was read. Nothing has changed: the event is a dead letter.
type Defect = defect.Error

// Recovered returns the Defect of a value that recover has returned, for what is read outside
// of this package. The deferred function must call it.
func Recovered(doing string, value any) *Defect { return defect.Recovered(doing, value) }

// A PanicError is a panic while a model learnt an event. The model is damaged: only its bytes
// from before can be used.
type PanicError struct {
	*Defect
	Key string // of the event, for SetAside
}

func (e *PanicError) Unwrap() error { return e.Defect }

// IsRefused reports whether an error of Apply says that the event was refused, set aside or
// could not be read: it is a dead letter, and the model has not learnt it.
func IsRefused(err error) bool {
	var refused *RefusedError
	var defect *Defect
	var broken *PanicError
	return errors.As(err, &refused) || errors.Is(err, ErrSetAside) || errors.As(err, &defect) && !errors.As(err, &broken)
}

// Key returns the key of an event for [Config.SetAside]: that of tenant, source and ID in the
// duplicate window, as 16 hexadecimal digits.
func (ex *Example) Key() string {
	return formatKey(new(dedup.Window).Key(ex.Body.Tenant, ex.Source, ex.ID))
}

func formatKey(key uint64) string { return fmt.Sprintf("%016x", key) }

// parseKey returns the key that text names.
func parseKey(text string) (uint64, error) {
	key, err := strconv.ParseUint(text, 16, 64)
	if err != nil || key == 0 || formatKey(key) != text {
		return 0, fmt.Errorf("set_aside: %s is not the key of an event: 16 hexadecimal digits, as in a dead letter",
			quote(text))
	}
	return key, nil
}

// keysOf returns the keys in a configuration's set_aside, nil without any.
func keysOf(c *Config) (keys []uint64) {
	for _, text := range c.SetAside {
		if key, err := parseKey(text); err == nil { // validate has refused all others
			keys = append(keys, key)
		}
	}
	return keys
}

// checkSetAside returns what is wrong with the keys.
func (c Config) checkSetAside() (errs []error) {
	if n := len(c.SetAside); n > MostSetAside {
		errs = append(errs, fmt.Errorf("set_aside: %d events, more than %d: "+
			"a defect that so many events meet must be mended first", n, MostSetAside))
	}
	for _, text := range c.SetAside {
		if _, err := parseKey(text); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// SetAside adds an event to the configuration's SetAside, by its key. m must not have learnt the
// event: its bytes are then those of a model that had the key in its configuration from the
// beginning. It is an error if the duplicate window says that it has, or if there are
// MostSetAside.
func (m *Model) SetAside(key string) error {
	n, err := parseKey(key)
	if err != nil {
		return err
	}
	at, found := slices.BinarySearch(m.cfg.SetAside, key)
	if found {
		return nil
	}
	if m.seen.Has(n) {
		return fmt.Errorf("set_aside: event %s was learnt, and would stay: make a new model without it under another name",
			key)
	}
	cfg := m.cfg
	cfg.SetAside = slices.Insert(slices.Clone(cfg.SetAside), at, key)
	if errs := cfg.checkSetAside(); len(errs) > 0 {
		return errors.Join(errs...)
	}
	m.cfg, m.setAside = cfg, keysOf(&cfg)
	return nil
}
