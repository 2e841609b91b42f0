// Package exampletest plants panics in the parser of mail, for tests of what is done about a
// defect. Package plant does so in models. Tests that use it do not run in parallel with others
// of their package.
package exampletest

import (
	"testing"

	"hamlet/cmd/internal/service/example/internal/planted"
)

// PlantParser has every mail with word in it panic while it is parsed, until the test ends.
func PlantParser(t testing.TB, word string) {
	t.Helper()
	before := planted.Set(&word)
	t.Cleanup(func() { planted.Set(before) })
}
