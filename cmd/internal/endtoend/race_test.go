//go:build race

package endtoend

// Under the race detector the commands are built with it, too.
func init() { buildFlags = append(buildFlags, "-race") }
