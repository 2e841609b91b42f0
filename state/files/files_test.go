package files

import (
	"testing"

	"hamlet/state"
	"hamlet/state/storetest"
)

// A directory keeps the laws of a store.
func TestStoreKeepsTheLaws(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() state.Store {
		d, err := Open(t.TempDir(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return func() state.Store { return storeOf(t, d, "default") }
	})
}
