package sources

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	list "hamlet/cmd/internal/sources"
	"hamlet/state"
	"hamlet/state/redis"
)

const (
	readAgain = 30 * time.Second // a model is some 30 MB, and decoding it takes a tenth of a second
	failAgain = 2 * time.Second
	readTime  = 30 * time.Second // of a model
)

// known is what the saved model says of sources. All readers share it. It is read again
// when somebody asks, at most every readAgain, and only where there is another version. After
// an error it is read again after failAgain, but after readAgain where readTime was too short.
type known struct {
	store *redis.Store
	model string
	now   func() time.Time

	mu    sync.Mutex // held while one reads: the others wait for the same answer
	next  time.Time  // when to read again
	of    string     // the version that table is of
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
	err := k.read(ctx)
	k.err, k.next = err, k.now().Add(pause(ctx, err))
	if errors.Is(err, state.ErrNone) {
		k.table = nil
	}
	return k.table, k.err
}

// pause returns how long nothing is read after a reading within ctx.
func pause(ctx context.Context, err error) time.Duration {
	if err != nil && ctx.Err() == nil {
		return failAgain
	}
	return readAgain
}

// read reads the model if there is another version than before.
func (k *known) read(ctx context.Context) error {
	heading, err := k.store.Heading(ctx, state.Head)
	if err != nil && !errors.Is(err, state.ErrNone) {
		return err
	}
	of := fmt.Sprintf("%d:%s", heading.Version, heading.Identity)
	if k.table != nil && of == k.of {
		return nil
	}
	table, err := list.Read(ctx, k.store, k.model)
	if err != nil {
		return err
	}
	k.table, k.of = table, of // the version may be newer than of; then it is read again
	return nil
}
