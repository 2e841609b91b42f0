package models

import (
	"context"
	"errors"
	"time"

	"hamlet/state"
	"hamlet/state/redis"
)

// Answers says which model answers in the place of another, because it was promoted.
type Answers struct {
	Model string    `json:"model"`
	Since time.Time `json:"since"`
	By    string    `json:"by,omitempty"`
}

// ReadAnswers returns which model answers in the place of the store's. It returns nil if none
// does, and if that cannot be read: scorers go on as before then.
func ReadAnswers(ctx context.Context, store *redis.Store, model string) (*Answers, error) {
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
