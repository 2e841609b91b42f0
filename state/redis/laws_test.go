package redis

import (
	"testing"

	"hamlet/state"
	"hamlet/state/storetest"
)

// The store obeys the laws of all stores, on a Redis in this process and, if the
// environment variable HAMLET_REDIS names one, on a real one.
func TestLaws(t *testing.T) {
	eachServer(t, func(t *testing.T, srv server) {
		storetest.Run(t, func(t *testing.T) func() state.Store {
			own := connect(t, srv.addr, nil) // a model of its own
			return func() state.Store { return own.open(t, nil) }
		})
	})
}
