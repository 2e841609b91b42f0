//go:build race

package endtoend

// Under the race detector the commands are built with it, too, and slow: two fifths
// of the session timeout is all that a learner has for its last save.
func init() {
	buildFlags = append(buildFlags, "-race")
	sessionTimeout = "8s"
}
