package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/web/page"
	"hamlet/state"
)

// Of the pages that read the newest model.
const (
	newestAgain = 15 * time.Second // a model is some 30 MB, and decoding it takes a tenth of a second
	newestTime  = 20 * time.Second
)

// A Derived is what was derived from a saved model.
type Derived[T any] struct {
	Facts T
	of    string // which version of which model
}

// Newest shares what pages derive from the newest saved model. The model itself does not stay in
// memory, and is decoded only if it is another version than before. Where none was saved, the
// answer is nil and the error state.ErrNone. With any other error the answer is the one before.
func Newest[T any](
	store state.Store, now func() time.Time, derive func(*model.Model, *state.Checkpoint) T,
) *page.Shared[*Derived[T]] {
	read := func(ctx context.Context, before *Derived[T]) (*Derived[T], error) {
		heading, err := store.Heading(ctx, state.Head)
		switch of := fmt.Sprintf("%d:%s", heading.Version, heading.Identity); {
		case errors.Is(err, state.ErrNone):
			return nil, err
		case err != nil:
			return before, err
		case before != nil && before.of == of:
			return before, nil
		default:
			m, c, err := RestoreHead(ctx, store)
			if errors.Is(err, state.ErrNone) {
				return nil, err
			}
			if err != nil {
				return before, err
			}
			return &Derived[T]{derive(m, c), of}, nil // of a newer version it is derived again
		}
	}
	return &page.Shared[*Derived[T]]{Read: read, Now: now, Again: newestAgain, Time: newestTime}
}

// RestoreHead loads and decodes the newest version. The error is state.ErrNone if none was saved.
func RestoreHead(ctx context.Context, store state.Store) (*model.Model, *state.Checkpoint, error) {
	if err := store.Layout(ctx); err != nil {
		return nil, nil, err
	}
	c, version, err := store.Load(ctx, state.Head)
	if err != nil {
		return nil, nil, err
	}
	m, err := model.Restore(c.Model)
	if err != nil {
		return nil, nil, fmt.Errorf("version %d: %w", version, err)
	}
	return m, c, nil
}
