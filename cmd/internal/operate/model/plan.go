package model

import (
	"context"
	"fmt"
	"slices"

	"hamlet/state"
)

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

// Rollback plans to pin the version before the one that is served. It passes over lost ones: they
// have learnt records that the log no longer has. Versions lists them last, so the next element of it
// may be one.
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

// Unpin plans to answer from the newest version again. To is the newest of now.
func (k Kept) Unpin() Plan { return Plan{k.Find(k.Served), k.Find(k.Head), 0} }

// Do changes what scorers answer from.
func (p *Plan) Do(ctx context.Context, store state.Store) error {
	if p.Pin != 0 {
		return store.Pin(ctx, p.Pin)
	}
	return store.Unpin(ctx)
}
