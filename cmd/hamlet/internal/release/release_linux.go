package release

import (
	"os"

	"hamlet/cmd/hamlet/internal/help"
	"hamlet/cmd/internal/process/version"
)

// init ends the program if it was asked for its version alone. In all other cases kong answers.
func init() {
	if len(os.Args) != 2 || os.Args[1] != "--version" || !help.Plain() {
		return
	}
	if _, err := os.Stdout.WriteString(version.Text("hamlet") + "\n"); err == nil {
		os.Exit(0)
	}
}
