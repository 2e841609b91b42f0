package sources

import (
	"context"
	"errors"
	"sync"
	"time"

	list "hamlet/cmd/internal/sources"
	"hamlet/state"
	"hamlet/state/redis"
)

const (
	readAgain = 15 * time.Second // a model is some 30 MB, and decoding it takes a tenth of a second
	failAgain = 2 * time.Second
	readTime  = 5 * time.Second
)

// known is what the saved models say of sources. All readers share it. It is read again
// when somebody asks, at most every readAgain.
type known struct {
	store *redis.Store
	model string
	now   func() time.Time

	mu    sync.Mutex // held while one reads: the others wait for the same answer
	next  time.Time  // when to read again
	table *list.Table
	err   error // of the last reading; then table is older
}

// get returns the sources. After an error they are those of the last reading, nil if there
// was none. Where no model was saved the error is state.ErrNone. Nobody may change them.
func (k *known) get(ctx context.Context) (*list.Table, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); now.Before(k.next) {
		return k.table, k.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime) // the answer is for others too
	defer cancel()
	table, err := list.Read(ctx, k.store, k.model)
	k.next, k.err = k.now().Add(readAgain), err
	switch {
	case err == nil:
		k.table = table
	case errors.Is(err, state.ErrNone):
		k.table, k.next = nil, k.now().Add(failAgain)
	default:
		k.next = k.now().Add(failAgain)
	}
	return k.table, k.err
}
