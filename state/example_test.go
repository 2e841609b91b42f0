package state_test

import (
	"fmt"

	"hamlet/state"
)

// A learner advances the position with each record that it consumes, whether the
// model learnt from it or not, and saves both as one value.
func ExamplePosition_Advance() {
	var p state.Position
	p = p.Advance(0, []byte("example.org/alice"), []byte("first"))
	p = p.Advance(1, []byte("example.org/bob"), []byte("second"))
	fmt.Println(p)
	// Output: 2 (856a8fef4f7e)
}
