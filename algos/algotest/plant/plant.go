// Package plant plants panics in models, for tests of what is done about a defect. Tests that
// use it do not run in parallel with others of their package.
package plant

import (
	"testing"

	"hamlet/algos/internal/planted"
)

// Reading has every message whose text contains word panic while it is read, until the test ends.
func Reading(t testing.TB, word string) {
	t.Helper()
	change(t, func(p *planted.Plants) { p.Word = word })
}

// Learning has every event with one of these IDs panic while it is learnt, when the model is
// half changed, until the test ends.
func Learning(t testing.TB, ids ...string) {
	t.Helper()
	change(t, func(p *planted.Plants) { p.Events = ids })
}

func change(t testing.TB, do func(*planted.Plants)) {
	t.Helper()
	var now planted.Plants
	before := planted.Set(nil)
	if before != nil {
		now = *before
	}
	do(&now)
	planted.Set(&now)
	t.Cleanup(func() { planted.Set(before) })
}
