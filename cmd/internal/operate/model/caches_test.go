package model

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// Models are decoded one at a time, once for all who ask, and the last four are remembered.
func TestFactsAreRemembered(t *testing.T) {
	var at, most, loads atomic.Int64
	c := factsCache{load: func(_ context.Context, p versionID) (*Facts, error) {
		if now := at.Add(1); now > most.Load() {
			most.Store(now)
		}
		defer at.Add(-1)
		loads.Add(1)
		if p.version == 9 {
			return nil, errors.New("damaged")
		}
		return &Facts{Side: Side{Version: p.version}}, nil
	}}
	get := func(version int64, hash string) {
		f, err := c.get(t.Context(), versionID{version, hash})
		if err != nil || f.Version != version {
			t.Errorf("version %d: %+v, %v", version, f, err)
		}
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() { get(int64(1+i%4), "a") })
	}
	all.Wait()
	if most.Load() != 1 || loads.Load() != 4 {
		t.Errorf("%d models were decoded, up to %d at once", loads.Load(), most.Load())
	}
	get(1, "a")
	get(5, "a") // version 1 was asked for last, another one goes
	get(1, "a")
	if loads.Load() != 5 || len(c.known) != mostFacts {
		t.Errorf("%d models were decoded, %d are remembered", loads.Load(), len(c.known))
	}
	get(1, "b") // Redis was emptied in between
	if loads.Load() != 6 {
		t.Error("another model of the same number was not decoded")
	}
	for range 2 {
		if _, err := c.get(t.Context(), versionID{9, "a"}); err == nil {
			t.Error("an error was lost")
		}
	}
	if loads.Load() != 8 {
		t.Error("a failure was remembered")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	c.decoding <- struct{}{} // somebody decodes
	if _, err := c.get(over, versionID{7, "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left waits: %v", err)
	}
}
