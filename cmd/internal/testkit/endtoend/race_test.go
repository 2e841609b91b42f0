//go:build race

package endtoend

// With the race detector the commands are built with it too, and are slow.
func init() {
	buildFlags = append(buildFlags, "-race")
}
