package model

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hamlet/state"
)

// Kept is what the store keeps of a model.
type Kept struct {
	Model   string
	Answers *Answers // nil: the model answers by itself
	History
}

// A History lists the versions, newest first, and after them the lost ones. There is at least one version.
type History struct {
	Partition int       `json:"partition"`          // always 0
	Head      int64     `json:"head"`               // the newest version; 0: it cannot be read
	Served    int64     `json:"served"`             // the version that answers; 0: it cannot be read
	Pinned    int64     `json:"pinned,omitempty"`   // the version that an operator pinned
	PinLost   bool      `json:"pin_lost,omitempty"` // the store has lost the pinned version
	Versions  []Version `json:"versions"`
}

// A Version is a version of a model that the store keeps.
type Version struct {
	Version  int64     `json:"version"`
	Saved    time.Time `json:"saved"`
	Events   uint64    `json:"events"`   // learnt
	Position int64     `json:"position"` // next offset of the log
	SHA256   string    `json:"sha256"`   // of the model's bytes
	Bytes    int64     `json:"bytes"`    // of the model
	Head     bool      `json:"head"`
	Served   bool      `json:"served"`
	Pinned   bool      `json:"pinned"`
	Replaced bool      `json:"replaced,omitempty"` // by another model
	Lost     bool      `json:"lost,omitempty"`     // the log has lost records that this version learnt

	numerics string
}

// A NoneError says that the store keeps no version of a model.
type NoneError struct{ Model string }

// Error says what may be the cause.
func (e *NoneError) Error() string {
	return fmt.Sprintf("the store keeps no version of model %s: the learner has saved none yet, "+
		"or --model or --redis-db names another", e.Model)
}

// Read asks the store for all that it keeps of a model. If it keeps nothing, the error is a [NoneError].
func Read(ctx context.Context, store state.Store, model string) (Kept, error) {
	k := Kept{Model: model}
	if err := store.Layout(ctx); err != nil {
		return k, err
	}
	list, err := store.Versions(ctx)
	if errors.Is(err, state.ErrNone) {
		return k, &NoneError{model}
	}
	if err != nil {
		return k, err
	}
	if len(list) == 0 {
		return k, fmt.Errorf("model %s has versions, and none can be read", model)
	}
	if k.Pinned, err = store.Pinned(ctx); err != nil {
		return k, err
	}
	for _, v := range list {
		k.Versions = append(k.Versions, Version{
			Version: v.Version, Saved: v.Saved, Events: v.Events, Position: v.Position.Next,
			SHA256: hex.EncodeToString(v.SHA256[:]), Bytes: v.Bytes,
			Head: v.Head, Served: v.Served, Pinned: v.Pinned, Replaced: v.Replaced, Lost: v.Lost, numerics: v.Numerics,
		})
		if v.Head {
			k.Head = v.Version
		}
		if v.Served {
			k.Served = v.Version
		}
	}
	k.PinLost = k.Pinned != 0 && k.Find(k.Pinned) == nil
	k.Answers, err = ReadAnswers(ctx, store, model)
	return k, err
}

// Find returns a version, nil if it is not kept.
func (h *History) Find(number int64) *Version {
	for i := range h.Versions {
		if h.Versions[i].Version == number {
			return &h.Versions[i]
		}
	}
	return nil
}

func (h *History) numbers() string {
	var all []string
	for _, v := range h.Versions {
		number := strconv.FormatInt(v.Version, 10)
		if v.Lost {
			number += " (lost)"
		}
		all = append(all, number)
	}
	return strings.Join(all, ", ")
}

// Answers says which model answers in the place of another, because it was promoted.
type Answers struct {
	Model string    `json:"model"`
	Since time.Time `json:"since"`
	By    string    `json:"by,omitempty"`
}

// ReadAnswers returns which model answers in the place of the store's. It returns nil if none
// does, and also if the promotion is damaged: then scorers go on as before.
func ReadAnswers(ctx context.Context, store state.Store, model string) (*Answers, error) {
	p, err := store.Promotion(ctx)
	switch {
	case errors.Is(err, state.ErrNone), errors.Is(err, state.ErrCorrupt):
		return nil, nil
	case err != nil:
		return nil, err
	case p.Model == model:
		return nil, nil
	}
	return &Answers{Model: p.Model, Since: p.Since, By: p.By}, nil
}

// A Plan says what is to be pinned or unpinned. Do does it.
type Plan struct {
	From, To *Version // answers come from; From is nil if what is served cannot be read
	Pin      int64    // the version that is to be pinned; 0: unpin
}

// Pin plans to answer from a version until Unpin.
func (k Kept) Pin(number int64) (Plan, error) {
	to := k.Find(number)
	if to == nil {
		return Plan{}, fmt.Errorf("version %d of model %s is not kept: kept are %s", number, k.Model, k.numbers())
	}
	return Plan{k.Find(k.Served), to, number}, nil
}

// Rollback plans to pin the version before the one that is served. It skips lost versions, because
// they have learnt records that the log no longer has.
func (k Kept) Rollback() (Plan, error) {
	if k.Find(k.Served) == nil {
		return Plan{}, fmt.Errorf("the version that is served cannot be read: pin one of %s", k.numbers())
	}
	at := slices.IndexFunc(k.Versions, func(v Version) bool { return !v.Lost && v.Version < k.Served })
	if at < 0 {
		return Plan{}, fmt.Errorf("no version before the served one, %d, is kept: kept are %s", k.Served, k.numbers())
	}
	return k.Pin(k.Versions[at].Version)
}

// Unpin plans to answer from the newest version again. To is the one that is newest now.
func (k Kept) Unpin() Plan { return Plan{k.Find(k.Served), k.Find(k.Head), 0} }

// Do changes what scorers answer from.
func (p *Plan) Do(ctx context.Context, store state.Store) error {
	if p.Pin != 0 {
		return store.Pin(ctx, p.Pin)
	}
	return store.Unpin(ctx)
}
