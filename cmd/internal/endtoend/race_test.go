//go:build race

package endtoend

// Under the race detector the commands are built with it, too, and slow.
func init() {
	buildFlags = append(buildFlags, "-race")
	mortal = []string{"--session-timeout", "8s"}
}
